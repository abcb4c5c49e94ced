/** A Ceph of the test run, seen by other means than the port: the `ceph` program, and librbd by names of images. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { BlockBackend, ImageRef } from '#backends/block-backend';
import type { ExtentSourceHarness } from '#backends/conformance/extent-bench';
import type { ApplianceIdentity } from '#backends/object-backend';
import { CephProcess } from '#backends/rbd/ceph-process';
import { RbdBackend } from '#backends/rbd/rbd-backend';
import { type RbdPoolConfig, rbdConfig } from '#backends/rbd/rbd-config';
import { RbdExtents } from '#backends/rbd/rbd-extents';
import { unleased } from '#platform/lease-signal';
import { parts } from '#test/support/parts';

const run = promisify(execFile);

/** Undefined without a Ceph with librbd; TRIVET_REQUIRE decides whether that may be. */
export const rbdParts = (): { configuration: string } | undefined => parts().rbd ?? undefined;

export const OWNER: ApplianceIdentity = { applianceId: 'appliance', tenantId: 'tenant' };
/** An object is what is shared and counted. */
export const OBJECT_BYTES = 4 * 1024 * 1024;
const CAPACITY = 2 ** 40;

export interface TestCluster {
  ceph(...args: string[]): Promise<string>;
  /** As the administrator. */
  admin: CephProcess;
  monitors: string[];
  makePool(): Promise<string>;
  /** With the caps that documents ask for, or others; gives name and key. */
  makeUser(cephPools: readonly string[], caps?: readonly string[]): Promise<{ user: string; key: string }>;
  close(): void;
}

export function testCluster(configuration: string): TestCluster {
  const ceph = async (...args: string[]) => (await run('ceph', ['-c', configuration, ...args])).stdout;
  const [, monitors = ''] = /^mon host = (.+)$/m.exec(readFileSync(configuration, 'utf8')) ?? [];
  const [, keyring = ''] = /^keyring = (.+)$/m.exec(readFileSync(configuration, 'utf8')) ?? [];
  const [, key = ''] = /key = (\S+)/.exec(readFileSync(keyring, 'utf8')) ?? [];
  const admin = new CephProcess({ user: 'admin', key, monitors: [monitors] });
  return {
    ceph,
    admin,
    monitors: [monitors],
    async makePool() {
      const name = `rbd-${randomUUID().slice(0, 8)}`;
      await ceph('osd', 'pool', 'create', name, '8', '8', 'replicated');
      await ceph('osd', 'pool', 'application', 'enable', name, 'rbd');
      return name;
    },
    async makeUser(cephPools, caps) {
      const user = `trivet-${randomUUID().slice(0, 8)}`;
      const osd = cephPools.map(pool => `profile rbd pool=${pool}`).join(', ');
      const made = await ceph(
        'auth',
        'get-or-create',
        `client.${user}`,
        ...(caps ?? ['mon', 'profile rbd', 'osd', osd]),
      );
      return { user, key: /key = (\S+)/.exec(made)![1]! };
    },
    close: () => admin.close(),
  };
}

export const poolOf = (name: string, cephPool: string): RbdPoolConfig => ({
  name,
  cephPool,
  capacityBytes: CAPACITY,
  portals: [],
  furtherPortals: [],
  withoutChap: false,
});

/** `pool/name`, or `pool/name@snapshot`. */
export function placeOf(path: string): { cephPool: string; at: { name: string; snapshot?: string } } {
  const [cephPool = '', rest = ''] = path.split('/');
  const [name = '', snapshot] = rest.split('@');
  return { cephPool, at: { name, ...(snapshot === undefined ? {} : { snapshot }) } };
}

const soon = () => AbortSignal.timeout(30_000);

export interface RbdHarness extends ExtentSourceHarness {
  cluster: TestCluster;
  cephPool: string;
  open(pools: readonly RbdPoolConfig[], owner?: ApplianceIdentity): RbdBackend;
}

export async function rbdHarness(configuration: string): Promise<RbdHarness> {
  const cluster = testCluster(configuration);
  const { admin, monitors } = cluster;
  const [cephPool, fresh] = [await cluster.makePool(), await cluster.makePool()];
  const { user, key } = await cluster.makeUser([cephPool, fresh]);
  const opened: { close(): void }[] = [];
  const extentsOf = new Map<BlockBackend, RbdExtents>();
  const open = (pools: readonly RbdPoolConfig[], owner = OWNER) => {
    const config = rbdConfig.parse({ monitors, user, pools, exporter: { kind: 'none' } });
    const [backend, extents] = [new RbdBackend(config, key, owner), new RbdExtents(config, key, owner)];
    opened.push(backend, extents);
    extentsOf.set(backend, extents);
    return backend;
  };
  const down = poolOf('down', 'not-there');
  const pools = [poolOf('pool', cephPool), poolOf('fresh', fresh), down];
  const backend = open(pools);
  await backend.preparePool('pool', unleased(AbortSignal.timeout(30_000)));
  const [unusable, otherTenant] = [open([down]), open(pools, { ...OWNER, tenantId: 'another' })];
  return {
    cluster,
    cephPool,
    open,
    backend,
    pool: 'pool',
    downPool: 'down',
    freshPool: 'fresh',
    unusable,
    otherTenant,
    method: 'extents',
    extents: extentsOf.get(backend)!,
    unusableExtents: extentsOf.get(unusable)!,
    otherTenantExtents: extentsOf.get(otherTenant)!,
    async punch(image, offset, length) {
      await admin.call(soon(), 'discard', cephPool, placeOf(backend.pathOf(image)).at, offset, length);
    },
    // Nothing of it stays open between two windows.
    openFiles: async () => 0,
    extentBytes: OBJECT_BYTES,
    async write(image, offset, data) {
      await admin.call(soon(), 'write', cephPool, placeOf(backend.pathOf(image)).at, offset, data);
    },
    async read(image, offset, length) {
      return Buffer.from(await admin.call(soon(), 'read', cephPool, placeOf(backend.pathOf(image)).at, offset, length));
    },
    async seedForeign() {
      const names = ['theirs', `trivet-v-${randomUUID()}`, `trivet-s-${randomUUID()}+team`, 'trivet-v-x'];
      for (const name of names) await admin.call(soon(), 'create', cephPool, name, OBJECT_BYTES);
      return async () => {
        const there = await admin.call(soon(), 'names', cephPool);
        return names.every(name => there.includes(name));
      };
    },
    async close() {
      await removeAll(backend);
      for (const one of opened) one.close();
      cluster.close();
    },
  };
}

async function removeAll(backend: BlockBackend): Promise<void> {
  const signal = unleased(AbortSignal.timeout(60_000));
  const found: ImageRef[] = [];
  for await (const { kind, id, folder } of backend.listImages('pool', signal))
    if (kind !== 'temporary') found.push({ pool: 'pool', kind, id, folder });
  for (const image of found) await backend.removeImage(image, '9000000000000000000', signal);
}
