/**
 * A share of a pool of files is a folder in it, with a marker of the tenant's own: images of two tenants cannot meet, and the
 * audit of each sees its own only. Each is served by a tgtd of its own (invariant I4), at portals of its own: the next of
 * those that the shared pool has for its shares; where none are named, the next free port after the pool's own.
 */
import { join } from 'node:path';
import type { BlockCapabilities, PoolConfig } from '#backends/block-backend';
import { type ReflinkConfig, reflinkConfig, reflinkCredentials } from '#backends/reflink/reflink-config';
import type { Registration, Share } from '#backends/registration';
import { StorageError } from '#platform/errors';

/** Sizes go through Node's file calls as numbers; a file of that size is beyond ext4, and 4 PiB. */
const MAX_SIZE_BYTES = 2n ** 52n;
/** What an initiator addresses. */
const BLOCK_BYTES = 512;
/** In the root of a shared pool. */
const SHARES = 'tenants';
const MAX_PORT = 65_535;

export const REFLINK_CAPABILITIES: BlockCapabilities = {
  blockBytes: BLOCK_BYTES,
  maxSizeBytes: MAX_SIZE_BYTES,
  thick: true,
  encryption: false,
  deduplication: false,
  limitIops: false,
  limitMbps: false,
  accessProtocols: ['iscsi'],
};

export const reflinkRegistration: Registration<ReflinkConfig> = {
  config: reflinkConfig,
  credentials: reflinkCredentials,
  fixed: [],
  addresses: () => ({}),
  capabilities: ({ exporter }) => ({
    ...REFLINK_CAPABILITIES,
    maxSizeBytes: `${MAX_SIZE_BYTES}`,
    accessProtocols: exporter.kind === 'none' ? [] : REFLINK_CAPABILITIES.accessProtocols,
    snapshots: true,
    changedBlocks: true,
  }),
  share: (config, share) => ({ ...config, pools: sharedPools(config.pools, poolShare(share)) }),
};

type Pools = readonly PoolConfig[];

interface PoolShare {
  ownerId: string;
  tenantId: string;
  before: Pools;
  others: readonly Pools[];
}

export const poolShare = ({ ownerId, tenant, before, others }: Share<{ pools: Pools }>): PoolShare => ({
  ownerId,
  tenantId: tenant.id,
  before: before?.pools ?? [],
  others: others.map(({ pools }) => pools),
});

export function sharedPools(pools: ReflinkConfig['pools'], { ownerId, tenantId, before, others }: PoolShare) {
  const taken = new Set([...pools, ...others.flat()].flatMap(({ portals }) => portals));
  return pools.map(pool => {
    if (pool.within)
      throw new StorageError('failed_precondition', `pool ${pool.name} is a share itself`, { field: 'share' });
    const known = before.find(({ name }) => name === pool.name)?.portals ?? [];
    // A form that names none sends an empty list.
    const { sharePortals: named = [], ...own } = pool;
    const portals = pool.portals.map((base, n) => {
      const kept = known[n];
      const fits = kept !== undefined && (named.length > 0 ? named.includes(kept) : sameHost(kept, base));
      const portal = fits && !taken.has(kept) ? kept : nextOf(pool.name, named, base, taken);
      taken.add(portal);
      return portal;
    });
    return { ...own, path: join(pool.path, SHARES, tenantId), portals, within: { path: pool.path, ownerId } };
  });
}

const split = (portal: string): [host: string, port: number] => {
  const at = portal.lastIndexOf(':');
  return [portal.slice(0, at), Number(portal.slice(at + 1))];
};

const sameHost = (one: string, other: string): boolean => split(one)[0] === split(other)[0];

function nextOf(pool: string, named: readonly string[], base: string, taken: ReadonlySet<string>): string {
  if (named.length === 0) return nextFree(base, taken);
  const next = named.find(portal => !taken.has(portal));
  if (next !== undefined) return next;
  throw new StorageError('failed_precondition', `pool ${pool} has no portal left for another share: name one more`, {
    field: 'share',
  });
}

function nextFree(base: string, taken: ReadonlySet<string>): string {
  const [host, from] = split(base);
  for (let port = from + 1; port <= MAX_PORT; port++) if (!taken.has(`${host}:${port}`)) return `${host}:${port}`;
  throw new StorageError('failed_precondition', `no port above ${from} is free at ${host} for another share`, {
    field: 'share',
  });
}
