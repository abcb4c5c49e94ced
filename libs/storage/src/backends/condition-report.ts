import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { CircuitState } from '#storage/shared/backend-health';
import type { BackendState } from '#storage/shared/backend-state';

export interface BackendCondition {
  tenant: string;
  name: string;
  kind: string;
  state: BackendState;
  isBlock: boolean;
  circuit: CircuitState | null;
  circuitReason: string | null;
  /** Operations, while it does not answer. */
  waiting: number;
  openedAt: Date | null;
  answeredAt: Date | null;
  fault: string | null;
  faultAt: Date | null;
}

export interface PoolCondition {
  tenant: string;
  backend: string;
  pool: string;
  state: 'up' | 'down';
  reason: string | null;
  total: string;
  used: string;
  trend: { at: string; used: string }[];
  /** Seconds since a worker looked. */
  age: number;
  growth: number | null;
}

export interface FindingCount {
  tenant: string;
  backend: string;
  kind: string;
  found: number;
  example: string;
}

export interface ResourceCount {
  tenant: string;
  kind: 'volume' | 'snapshot' | 'bucket';
  found: number;
  name: string;
  message: string;
}

const BACKENDS = sql(
  'report_backends',
  `SELECT tenant, name, b.kind, b.state, b.is_block AS "isBlock", k.state AS circuit, b.reason AS "circuitReason",
          b.opened_at AS "openedAt", b.answered_at AS "answeredAt", b.fault, b.fault_at AS "faultAt",
          coalesce(k.waiting, 0)::int AS waiting
     FROM trivet.backend_conditions($1) b LEFT JOIN trivet.circuits($1) k USING (tenant, name)`,
);
const POOLS = sql(
  'report_pools',
  'SELECT tenant, backend, pool, state, reason, total::text, used::text, trend, age, growth FROM trivet.pool_conditions($1)',
);
const FINDINGS = sql(
  'report_findings',
  'SELECT tenant, backend, kind, found::int, example FROM trivet.overview_findings($1)',
);
const RESOURCES = sql(
  'report_resources',
  'SELECT tenant, kind, found::int, name, message FROM trivet.overview_conditions($1)',
);

/** What is there and what is wrong with it; of one tenant, or of all. */
export async function readConditions(database: Database, tenantId?: string) {
  const which = [tenantId ?? null];
  const [backends, pools, findings, resources] = await Promise.all([
    database.call<BackendCondition>(BACKENDS, which),
    database.call<PoolCondition>(POOLS, which),
    database.call<FindingCount>(FINDINGS, which),
    database.call<ResourceCount>(RESOURCES, which),
  ]);
  return { backends, pools, findings, resources };
}

export type Conditions = Awaited<ReturnType<typeof readConditions>>;
