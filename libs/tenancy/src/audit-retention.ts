import type { Database } from '#platform/database';
import { createLogger } from '#platform/log';
import { sql } from '#platform/sql';

const log = createLogger('audit');

const EVERY_MS = 3_600_000;
/** In one transaction, with the entry that says so: some tenths of a second. */
const PORTION = 10_000;

const PRUNE = sql('audit_prune', 'SELECT trivet.prune_audit($1, $2) AS removed');

/** Removes what is older than the audit log is kept; each portion is an entry of its own. */
export class AuditRetention {
  private doneAt = Number.NEGATIVE_INFINITY;

  /** @param days 0: all is kept */
  constructor(
    private readonly database: Pick<Database, 'engine'>,
    private readonly days: number,
    private readonly portion = PORTION,
  ) {}

  /** One portion, as often as there are more, and else now and then. */
  async round(): Promise<void> {
    if (this.days === 0 || performance.now() - this.doneAt < EVERY_MS) return;
    const [row] = await this.database.engine<{ removed: number }>(PRUNE, [this.days, this.portion]);
    const { removed } = row!;
    if (removed > 0) log.info({ removed, keptDays: this.days }, 'old entries of the audit log are removed');
    if (removed < this.portion) this.doneAt = performance.now();
  }
}
