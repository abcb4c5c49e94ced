import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';

const CLAIM = sql('pool_claim', 'SELECT home, alive FROM trivet.claim_pool($1, $2, $3, $4)');
const DRAINING = sql('host_draining', 'SELECT draining FROM trivet.storage_host WHERE name = $1');
const ELSEWHERE = sql(
  'pools_elsewhere',
  'SELECT pool FROM trivet.pool_home WHERE tenant_id = $1 AND backend_id = $2 AND host <> $3',
);
const HOMES = sql(
  'pool_homes',
  `SELECT pool, host FROM trivet.pool_home WHERE tenant_id = $1 AND backend_id = $2 AND pool = ANY ($3)
    ORDER BY pool COLLATE "C"`,
);

interface Place {
  tenantId: string;
  backendId: string;
}

/** @returns whether a person takes this host out of use: it takes no further pool into use */
export async function isDraining(database: Database, host: string): Promise<boolean> {
  const [row] = await database.engine<{ draining: boolean }>(DRAINING, [host]);
  return row?.draining ?? false;
}

/**
 * Makes the pool this host's own unless it is another one's already, or may not be its.
 * @returns whose it is, undefined: still nobody's; isShared: that host lives and says that it has the file system, too
 */
export async function claimPool(
  database: Database,
  host: string,
  { tenantId, backendId }: Place,
  pool: string,
): Promise<{ home: string | undefined; isShared: boolean }> {
  const claim = [host, tenantId, backendId, pool];
  const [row] = await database.engine<{ home: string | null; alive: boolean | null }>(CLAIM, claim);
  return { home: row!.home ?? undefined, isShared: row!.home !== host && row!.alive === true };
}

/** @param host undefined: of a worker that is on none, which works on all */
export async function poolsElsewhere(
  database: Database,
  { tenantId, backendId }: Place,
  host: string | undefined,
): Promise<ReadonlySet<string>> {
  if (host === undefined) return new Set();
  const rows = await database.withTenant(tenantId, tx =>
    tx.query<{ pool: string }>(ELSEWHERE, [tenantId, backendId, host]),
  );
  return new Set(rows.map(({ pool }) => pool));
}

/** What one operation works on must be on one host. A pool that nobody has found yet is on none. */
export async function requireOneHost(tx: Tx, { tenantId, backendId }: Place, pools: readonly string[]): Promise<void> {
  const distinct = [...new Set(pools)];
  if (distinct.length < 2) return;
  const homes = await tx.query<{ pool: string; host: string }>(HOMES, [tenantId, backendId, distinct]);
  if (new Set(homes.map(({ host }) => host)).size < 2) return;
  const where = homes.map(({ pool, host }) => `pool ${pool} is on ${host}`).join(', ');
  throw new StorageError('failed_precondition', `one operation cannot work on several storage hosts: ${where}`);
}
