import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';
import { talliesMendedTotal } from '#platform/metrics/worker-metrics';

const log = createLogger('tallies');

const TENANTS = sql('tally_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants() ORDER BY tenant_id');
const RECOUNT = sql(
  'tally_recount',
  `SELECT kind, backend_id AS "backendId", pool, things::text AS things, bytes::text AS bytes FROM trivet.recount($1)`,
);

/** What a tally lacked, and has now. */
interface Lacking {
  kind: string;
  backendId: string;
  pool: string;
  things: string;
  bytes: string;
}

/**
 * Compares tallies with what is there, one tenant in a statement, and sets right those that differ, which only a defect can
 * make: it is logged, and counted for an alert. The next run goes on behind the last tenant that was looked at.
 */
export class TallyCheck {
  readonly name = 'tally-check';
  readonly everyMs = 3_600_000;
  readonly scope = 'appliance';
  private lookedAt = '';

  constructor(private readonly database: Pick<Database, 'engine'>) {}

  async run(signal: AbortSignal): Promise<void> {
    const tenants = await this.database.engine<{ tenantId: string }>(TENANTS);
    const later = tenants.findIndex(({ tenantId }) => tenantId > this.lookedAt);
    const errors: unknown[] = [];
    for (const { tenantId } of [...tenants.slice(Math.max(later, 0)), ...tenants.slice(0, Math.max(later, 0))]) {
      if (signal.aborted) break;
      // Before it: one that cannot be counted does not keep the others waiting.
      this.lookedAt = tenantId;
      await this.look(tenantId).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0)
      throw errors.length === 1 ? errors[0] : new AggregateError(errors, 'tallies were not counted');
  }

  private async look(tenantId: string): Promise<void> {
    for (const lacking of await this.database.engine<Lacking>(RECOUNT, [tenantId])) {
      talliesMendedTotal.inc({ kind: lacking.kind });
      log.error({ tenantId, ...lacking }, 'a tally differed from what is there, and was set right: a defect');
    }
  }
}
