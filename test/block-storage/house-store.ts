import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BlockBackend, BlockBackendKind } from '#backends/block-backend';
import type { ExtentSource } from '#backends/extent-source';
import type { ApplianceIdentity } from '#backends/object-backend';
import { RbdBackend } from '#backends/rbd/rbd-backend';
import { rbdConfig } from '#backends/rbd/rbd-config';
import { RbdExtents } from '#backends/rbd/rbd-extents';
import { rbdKind } from '#backends/rbd/rbd-kind';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { ReflinkExtents } from '#backends/reflink/reflink-extents';
import { reflinkKind } from '#backends/reflink/reflink-kind';
import { removeFolder } from '#test/block-backend/file-harness';
import { poolOf, rbdParts, type TestCluster, testCluster } from '#test/block-backend/rbd-harness';

/** What the images of a house lie on. */
export interface HouseStore {
  kind: BlockBackendKind;
  config: object;
  /** Of the pool `default`; '' where it has no folder. */
  poolPath: string;
  /** A call of an operation has a third of it. */
  leaseMs: number;
  open(owner: ApplianceIdentity): { volumes: BlockBackend; extents: ExtentSource };
  remove(volumes: BlockBackend): Promise<void>;
}

export interface FilesOptions {
  /** Where the pool's folder is made; by default in the temporary folder. */
  under?: string;
  portals?: string[];
  withoutChap?: boolean;
  /** Beside the pool `default`, each in a folder of its own. */
  morePools?: string[];
}

export function filesStore(options: FilesOptions): HouseStore {
  const { under = tmpdir(), portals = ['127.0.0.1:3260'], withoutChap = false, morePools = [] } = options;
  const folder = () => mkdtempSync(join(under, 'trivet-pool-'));
  const poolPath = folder();
  const config = {
    pools: [
      { name: 'default', path: poolPath, portals, withoutChap },
      ...morePools.map(name => ({ name, path: folder(), portals: [], withoutChap })),
    ],
    exporter: { kind: 'none' },
  };
  const { pools } = reflinkKind.parseConfig(config);
  return {
    kind: reflinkKind,
    config,
    poolPath,
    leaseMs: 3_000,
    open: owner => ({ volumes: new ReflinkBackend(pools, owner), extents: new ReflinkExtents(pools, owner) }),
    async remove(volumes) {
      for (const { name, path } of pools) await removeFolder(path, volumes, [name]);
    },
  };
}

/** Images of the run's Ceph, in a pool of its own, which goes with the run. */
export interface CephStore extends HouseStore {
  cluster: TestCluster;
  cephPool: string;
}

export async function cephStore(): Promise<CephStore> {
  const cluster = testCluster(rbdParts()!.configuration);
  const { monitors } = cluster;
  const cephPool = await cluster.makePool();
  const { user, key } = await cluster.makeUser([cephPool]);
  const config = { monitors, user, pools: [poolOf('default', cephPool)], exporter: { kind: 'none' } };
  const parsed = rbdConfig.parse(config);
  const opened: RbdExtents[] = [];
  return {
    kind: rbdKind as BlockBackendKind,
    config,
    poolPath: '',
    leaseMs: 15_000,
    cluster,
    cephPool,
    open(owner) {
      const extents = new RbdExtents(parsed, key, owner);
      opened.push(extents);
      return { volumes: new RbdBackend(parsed, key, owner), extents };
    },
    async remove(volumes) {
      volumes.close();
      for (const extents of opened) extents.close();
      cluster.close();
    },
  };
}
