import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rbdParts, type TestCluster, testCluster } from '#test/block-backend/rbd-harness';
import { PoolOfCeph } from '#test/block-crash/pool-of-ceph';
import { keptPort } from '#test/support/free-port';
import { parts } from '#test/support/parts';
import { endDaemons } from '#test/support/tgt-daemons';

/** Of the tenant's first user, `csp`. */
export const CSP_PASSWORD = 'a-password-of-tests';

/**
 * xfs: clones, over tgt. copy: no clones, over tgt. fake and fake-xfs: the same files behind the fake's faults. rbd: images of the
 * run's Ceph, over tgt.
 */
export type BlockKind = 'xfs' | 'copy' | 'fake' | 'fake-xfs' | 'rbd';

/** What an appliance with block volumes has of its own on disk: a pool, and the folder of its tgtd. */
export class BlockFolders {
  private constructor(
    readonly poolPath: string,
    readonly tgtPath: string,
    readonly portal: string,
    /** Absent without faults. */
    readonly fakeFile: string | undefined,
    readonly env: Record<string, string>,
    private readonly cluster: TestCluster | undefined,
    /** Present where the pool is one of Ceph; then nothing is below its path. */
    readonly ceph: PoolOfCeph | undefined,
  ) {}

  static async make(folder: string, kind: BlockKind, ceph = rbdParts()?.configuration): Promise<BlockFolders> {
    const { xfs } = parts();
    const clones = kind === 'xfs' || kind === 'fake-xfs';
    if (clones && !xfs) throw new Error('this test needs the XFS of the run');
    const poolPath = mkdtempSync(join(clones ? xfs!.path : folder, 'pool-'));
    const tgtPath = join(folder, 'tgt');
    mkdirSync(tgtPath, { mode: 0o700 });
    const passwordFile = join(folder, 'csp-password');
    writeFileSync(passwordFile, CSP_PASSWORD, { mode: 0o600 });
    const portal = `127.0.0.1:${await keptPort()}`;
    const fakeFile = kind === 'fake' || kind === 'fake-xfs' ? join(folder, 'fake-block.db') : undefined;
    const cluster = kind === 'rbd' ? testCluster(ceph!) : undefined;
    const cephPool = await cluster?.makePool();
    const env: Record<string, string> = {
      ...(cluster && cephPool
        ? await imagesIn(cluster, cephPool, folder, portal)
        : { TRIVET_POOLS: `default=${poolPath}`, TRIVET_ISCSI_PORTALS: portal }),
      TRIVET_TGT_DIR: tgtPath,
      TRIVET_CSP_PASSWORD_FILE: passwordFile,
    };
    const images = cluster && cephPool ? new PoolOfCeph(cluster, cephPool) : undefined;
    return new BlockFolders(poolPath, tgtPath, portal, fakeFile, env, cluster, images);
  }

  async remove(): Promise<void> {
    await endDaemons(this.tgtPath);
    this.cluster?.close();
    // Snapshots are immutable; what is not there is no error.
    await promisify(execFile)('chattr', ['-R', '-f', '-i', this.poolPath]).catch(() => {});
    rmSync(this.poolPath, { recursive: true, force: true });
  }
}

/** By a user of its own, who goes with the Ceph of the run, and so does the pool. */
async function imagesIn(
  cluster: TestCluster,
  cephPool: string,
  folder: string,
  portal: string,
): Promise<Record<string, string>> {
  const { user, key } = await cluster.makeUser([cephPool]);
  const keyFile = join(folder, 'rbd-key');
  writeFileSync(keyFile, key, { mode: 0o600 });
  return {
    TRIVET_RBD_MONITORS: cluster.monitors.join(','),
    TRIVET_RBD_USER: user,
    TRIVET_RBD_KEY_FILE: keyFile,
    TRIVET_RBD_POOL: cephPool,
    TRIVET_RBD_CAPACITY_BYTES: `${2 ** 40}`,
    TRIVET_RBD_PORTALS: portal,
  };
}
