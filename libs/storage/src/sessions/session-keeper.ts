import type { Database } from '#platform/database';
import { sql } from '#platform/sql';
import type { SnapshotSessionService } from '#storage/sessions/snapshot-session-service';

const EVERY_MS = 10_000;
const PORTION = 200;

const TENANTS = sql('session_keeper_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()');

/**
 * The rounds of the KEP's session manager: pending sessions that nobody looks at are decided, expired ones are removed
 * with their tokens. Any number of workers may do this at once.
 */
export class SessionKeeper {
  private doneAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly database: Database,
    private readonly sessions: SnapshotSessionService,
  ) {}

  async round(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.doneAt < EVERY_MS) return;
    let all = true;
    for (const { tenantId } of await this.database.engine<{ tenantId: string }>(TENANTS)) {
      if (signal.aborted) return;
      all = (await this.sessions.tidy(tenantId, PORTION)) && all;
    }
    if (all) this.doneAt = performance.now();
  }
}
