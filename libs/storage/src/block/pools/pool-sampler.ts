import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const TENANTS = sql(
  'pool_sampler_tenants',
  `SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()
   UNION ALL SELECT tenant_id FROM trivet.appliance_tenant()`,
);
/** The first of each hour is kept, whichever worker takes it. */
const SAMPLE = sql(
  'pool_sample',
  `WITH old AS (DELETE FROM trivet.pool_sample WHERE tenant_id = $1 AND at < now() - interval '29 days')
   INSERT INTO trivet.pool_sample (tenant_id, backend_id, pool, at, used_bytes, total_bytes)
   SELECT tenant_id, backend_id, name, date_trunc('hour', now()), used_bytes, total_bytes
     FROM trivet.pool WHERE tenant_id = $1 AND state = 'up'
   ON CONFLICT DO NOTHING`,
);

/** Notes each hour how full each pool is, for trends and forecasts (FORECAST_DAYS); a day longer than those look back. */
export class PoolSampler implements PeriodicTask {
  readonly name = 'pool-samples';
  readonly everyMs = 300_000;
  readonly scope = 'appliance';
  readonly after = 'pools';

  constructor(private readonly database: Database) {}

  async run(signal: AbortSignal): Promise<void> {
    for (const { tenantId } of await this.database.engine<{ tenantId: string }>(TENANTS)) {
      if (signal.aborted) return;
      await this.database.withTenant(tenantId, tx => tx.query(SAMPLE, [tenantId]));
    }
  }
}
