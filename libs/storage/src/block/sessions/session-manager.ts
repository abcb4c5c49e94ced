import { type PeriodicTask, WOKEN_SELDOM } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';

const PORTION = 200;

const TENANTS = sql('session_manager_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()');

/**
 * The rounds of the KEP's session manager: pending sessions that nobody looks at are decided, expired ones are removed
 * with their tokens. Any number of workers may do this at once.
 */
export class SnapshotSessionManager implements PeriodicTask {
  readonly name = 'snapshot-sessions';
  readonly everyMs = 10_000;
  readonly scope = 'appliance';
  readonly calm = WOKEN_SELDOM;

  constructor(
    private readonly database: Database,
    private readonly sessions: SnapshotSessionService,
  ) {}

  async run(signal: AbortSignal): Promise<'more' | 'calm'> {
    let all = true;
    for (const { tenantId } of await this.database.engine<{ tenantId: string }>(TENANTS)) {
      if (signal.aborted) break;
      all = (await this.sessions.tidy(tenantId, PORTION)) && all;
    }
    return all ? 'calm' : 'more';
  }
}
