import type { EntityManager } from 'typeorm';
import { ConfigError } from '#platform/config/config';

/** The same lock as of a registration over the API: two that come at once must see each other's pools. */
const ONE_AT_A_TIME = `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'pool-names', $1::uuid), 0))`;
const OTHERS = 'SELECT name, config FROM trivet.backend WHERE tenant_id = $1 AND id <> $2 ORDER BY name';

type Settings = Readonly<Record<string, unknown>> | undefined;

const poolsOf = (config: Settings): string[] =>
  Array.isArray(config?.pools) ? config.pools.map(({ name }: { name: string }) => name) : [];

/**
 * As a registration over the API is refused: a tgtd and its folder are one for each tenant and pool (invariant I4). What the
 * backend had already may stay; `doctor` tells of it.
 */
export async function requireOwnPools(
  tx: EntityManager,
  tenantId: string,
  backendId: string,
  backend: { name: string; config: Settings },
  had: Settings,
): Promise<void> {
  const added = poolsOf(backend.config).filter(pool => !poolsOf(had).includes(pool));
  if (added.length === 0) return;
  await tx.query(ONE_AT_A_TIME, [tenantId]);
  const others: { name: string; config: Settings }[] = await tx.query(OTHERS, [tenantId, backendId]);
  for (const { name, config } of others) {
    const pool = poolsOf(config).find(one => added.includes(one));
    if (pool !== undefined)
      throw new ConfigError(
        `${backend.name === 'local' ? 'TRIVET_POOLS' : 'TRIVET_RBD_POOL'}: backend ${name} has a pool ${pool} already, and one iSCSI daemon would ` +
          `serve it and that of backend ${backend.name}: give one of them another name`,
      );
  }
}
