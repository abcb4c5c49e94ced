import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';

const log = createLogger('audit');

/** In one transaction, with the entry that says so: some tenths of a second. */
const PORTION = 10_000;

const PRUNE = sql('audit_prune', 'SELECT trivet.prune_audit($1, $2) AS removed');

/** Removes what is older than the audit log is kept, as a periodic task; each portion is an entry of its own. */
export class AuditRetention {
  readonly name = 'audit-retention';
  readonly everyMs = 3_600_000;
  readonly scope = 'appliance';

  /** @param days 0: all is kept */
  constructor(
    private readonly database: Pick<Database, 'engine'>,
    private readonly days: number,
    private readonly portion = PORTION,
  ) {}

  /** One portion; says whether there are more. */
  async run(): Promise<'more' | undefined> {
    if (this.days === 0) return undefined;
    const [row] = await this.database.engine<{ removed: number }>(PRUNE, [this.days, this.portion]);
    const { removed } = row!;
    if (removed > 0) log.info({ removed, keptDays: this.days }, 'old entries of the audit log are removed');
    return removed < this.portion ? undefined : 'more';
  }
}
