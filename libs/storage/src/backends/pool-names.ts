import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';

/** Until the end of the transaction: two backends that are registered at once must see each other's pools. */
const ONE_AT_A_TIME = sql(
  'backend_pool_names_lock',
  `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'pool-names', $1::uuid), 0))`,
);
const POOLS = `CROSS JOIN LATERAL jsonb_array_elements(
  CASE jsonb_typeof(b.config -> 'pools') WHEN 'array' THEN b.config -> 'pools' ELSE '[]' END) AS pool`;
const TAKEN = sql(
  'backend_pool_names_taken',
  `SELECT b.name AS backend, pool ->> 'name' AS pool FROM trivet.backend b ${POOLS}
    WHERE b.tenant_id = $1 AND b.id <> $2 AND pool ->> 'name' = ANY ($3) ORDER BY 1, 2 LIMIT 1`,
);
const TWICE = sql(
  'backend_pool_names_twice',
  `SELECT pool ->> 'name' AS pool, array_agg(b.name ORDER BY b.name) AS backends FROM trivet.backend b ${POOLS}
    WHERE b.tenant_id = $1 GROUP BY 1 HAVING count(*) > 1 ORDER BY 1`,
);

/**
 * Throws `failed_precondition` where another backend of the tenant has a pool of one of these names: a tgtd and its folder
 * are one for each tenant and pool (invariant I4). What the backend had already may stay.
 */
export async function requirePoolNames(
  tx: Tx,
  tenant: { id: string; name: string },
  backendId: string,
  pools: readonly string[] = [],
  had: readonly string[] = [],
): Promise<void> {
  const added = pools.filter(pool => !had.includes(pool));
  if (added.length === 0) return;
  await tx.query(ONE_AT_A_TIME, [tenant.id]);
  const [taken] = await tx.query<{ backend: string; pool: string }>(TAKEN, [tenant.id, backendId, added]);
  if (taken)
    throw new StorageError(
      'failed_precondition',
      `tenant ${tenant.name} has a pool ${taken.pool} already, of backend ${taken.backend}, and one iSCSI daemon would serve both: ` +
        'give this pool another name',
      { field: 'config' },
    );
}

/** Pools of one name that several backends of a tenant have, from releases that did not refuse them. */
export const poolsOfOneName = (database: Database, tenantId: string): Promise<{ pool: string; backends: string[] }[]> =>
  database.withTenant(tenantId, tx => tx.query<{ pool: string; backends: string[] }>(TWICE, [tenantId]));
