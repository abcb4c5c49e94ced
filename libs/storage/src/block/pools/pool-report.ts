import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { daysToFull, GROWTH } from '#storage/block/pools/days-to-full';
import { PROMISED_OF_POOL } from '#storage/block/pools/pool-capacity';
import { type BackendHealth, CIRCUIT_REASON, type HealthFacts, healthOf } from '#storage/shared/backend-health';

const TENANTS = sql(
  'report_tenants',
  `SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()
   UNION ALL SELECT tenant_id FROM trivet.appliance_tenant()`,
);
const BACKENDS = sql(
  'pool_report_backends',
  `SELECT t.name AS tenant, b.id AS "backendId", b.name, b.kind, b.config,
          k.state AS circuit, ${CIRCUIT_REASON} AS "circuitReason", c.opened_at AS "openedAt", c.probed_at AS "answeredAt",
          c.fault, c.fault_at AS "faultAt", coalesce(k.waiting, 0)::int AS waiting
     FROM trivet.backend b
     JOIN trivet.tenant t ON t.id = b.tenant_id
     LEFT JOIN trivet.backend_circuit c ON c.tenant_id = b.tenant_id AND c.backend_id = b.id
     LEFT JOIN trivet.circuits($1) k ON k.backend_id = b.id
    WHERE b.tenant_id = $1 ORDER BY b.name`,
);
const POOLS = sql(
  'pool_report_pools',
  `SELECT p.backend_id AS "backendId", p.name, p.uuid, p.state, p.reason, p.clone, p.portals,
          p.without_chap AS "withoutChap", p.total_bytes::text AS "totalBytes", p.used_bytes::text AS "usedBytes",
          coalesce((SELECT ratio FROM trivet.pool_thin_ratio(b.shared_from, p.name)), p.thin_ratio) AS "thinRatio",
          (${GROWTH}) AS growth, p.checked_at AS "checkedAt",
          extract(epoch FROM now() - p.checked_at)::float8 AS "ageSeconds",
          (SELECT coalesce(sum(CASE y.kind WHEN 'binned' THEN -y.things ELSE y.things END), 0)::int FROM trivet.tally y
            WHERE y.tenant_id = p.tenant_id AND y.kind IN ('volume', 'binned') AND y.backend_id = p.backend_id
              AND y.pool = p.name) AS volumes,
          ${PROMISED_OF_POOL}::text AS "promisedBytes"
     FROM trivet.pool p JOIN trivet.backend b ON b.tenant_id = p.tenant_id AND b.id = p.backend_id
    WHERE p.tenant_id = $1 ORDER BY p.backend_id, p.position`,
);

/** A pool as a worker last saw it. Bytes are decimal text. */
export interface PoolReport {
  name: string;
  uuid: string | null;
  state: 'up' | 'down';
  reason: string | null;
  clone: 'reflink' | 'copy';
  portals: string[];
  withoutChap: boolean;
  totalBytes: string;
  usedBytes: string;
  promisedBytes: string;
  thinRatio: number;
  /** If it goes on as in the last week. */
  daysToFull: number | null;
  volumes: number;
  checkedAt: Date;
  /** Since then, by the database's clock: a worker looks every few seconds. */
  ageSeconds: number;
}

export interface BackendReport {
  tenantId: string;
  tenant: string;
  backendId: string;
  name: string;
  kind: string;
  config: Record<string, unknown>;
  /** Operations, while it does not answer. */
  waiting: number;
  health: BackendHealth;
  /** Empty for object stores. */
  pools: PoolReport[];
}

type BackendFacts = Omit<BackendReport, 'tenantId' | 'pools' | 'health'> & Omit<HealthFacts, 'isBlock' | 'pools'>;
type PoolFacts = Omit<PoolReport, 'daysToFull'> & { backendId: string; growth: number | null };

/** Every registered backend of every tenant, for operators. */
export async function reportBackends(database: Database): Promise<BackendReport[]> {
  const found: BackendReport[] = [];
  for (const { tenantId } of await database.call<{ tenantId: string }>(TENANTS, [])) {
    const [backends, pools] = await database.withTenant(tenantId, async tx => [
      await tx.query<BackendFacts>(BACKENDS, [tenantId]),
      await tx.query<PoolFacts>(POOLS, [tenantId]),
    ]);
    for (const backend of backends) {
      const own = pools.filter(({ backendId }) => backendId === backend.backendId);
      const { tenant, backendId, name, kind, config, waiting } = backend;
      const seen = own.map(pool => ({ ...pool, age: pool.ageSeconds }));
      const health = healthOf({ ...backend, isBlock: 'pools' in config, pools: seen });
      found.push({ tenantId, tenant, backendId, name, kind, config, health, waiting, pools: own.map(shown) });
    }
  }
  return found;
}

const shown = ({ backendId: _backendId, growth, ...pool }: PoolFacts): PoolReport => ({
  ...pool,
  daysToFull: daysToFull({ total: pool.totalBytes, used: pool.usedBytes, growth }),
});

/** A part of 1; 0 for a pool that nobody has seen yet. */
export const usedShare = ({ totalBytes, usedBytes }: Pick<PoolReport, 'totalBytes' | 'usedBytes'>): number =>
  totalBytes === '0' ? 0 : Number(usedBytes) / Number(totalBytes);
