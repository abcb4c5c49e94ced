import type { NewOperation } from '#operations/accepting/accept';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';
import { lostOperationsTotal } from '#platform/metrics/metrics';

const log = createLogger('database');

/** A standby that is further behind than this is none to promote. */
const REMEMBERED_MS = 600_000;
/** At a thousand a second the last ten seconds, in some 2 MB. */
const MOST = 10_000;
/** The others of a database that has just been promoted have the same to ask. */
const PAUSE_MS = 1_000;

const MISSING = sql(
  'operations_missing',
  `SELECT given.id FROM unnest($1::uuid[]) AS given (id)
    WHERE NOT EXISTS (SELECT FROM trivet.operation o WHERE o.id = given.id)`,
);
const NOTE = sql('note_lost_operations', 'SELECT trivet.note_lost_operations($1::jsonb) AS id');

interface Acknowledged {
  tenant: string;
  id: string;
  kind: string;
  name: string;
  at: number;
}

/**
 * What this gateway was told to be committed not long ago. After its connection was lost it looks whether all of that is still
 * there: a standby that is promoted without having followed to the last has none of it, and nobody else would ever know (P1).
 */
export class AcknowledgedOperations {
  /** In the order of their acceptance. */
  private readonly remembered = new Map<string, Acknowledged>();
  /** A connection came that nothing has been asked over yet. */
  private asked = true;
  private checking: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(
    private readonly database: Pick<Database, 'engine'>,
    private readonly pauseMs = PAUSE_MS,
  ) {}

  add({ id, tenantId, kind, resourceName }: NewOperation): void {
    this.remembered.set(id, { tenant: tenantId, id, kind, name: resourceName, at: Date.now() });
    this.forget();
  }

  /** After each connection; again and again, until it has been asked once. */
  check(): void {
    this.asked = false;
    clearTimeout(this.timer);
    this.checking ??= this.lookOnce().finally(() => {
      this.checking = undefined;
      if (this.asked || this.closed) return;
      this.timer = setTimeout(() => this.check(), this.pauseMs);
      this.timer.unref();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.timer);
    await this.checking;
  }

  private async lookOnce(): Promise<void> {
    // A connection that comes meanwhile may be to another server.
    this.asked = true;
    await this.look().catch((error: unknown) => {
      this.asked = false;
      log.debug({ err: error }, 'could not look for operations that the database has lost');
    });
  }

  /** What is older may have been removed in good order. */
  private forget(): void {
    for (const [oldest, { at }] of this.remembered) {
      if (this.remembered.size <= MOST && at > Date.now() - REMEMBERED_MS) break;
      this.remembered.delete(oldest);
    }
  }

  private async look(): Promise<void> {
    this.forget();
    if (this.remembered.size === 0) return;
    const missing = await this.database.engine<{ id: string }>(MISSING, [[...this.remembered.keys()]]);
    const lost = missing.flatMap(({ id }) => this.remembered.get(id) ?? []);
    if (lost.length === 0) return;
    const given = lost.map(({ at, ...one }) => ({ ...one, acceptedAt: new Date(at).toISOString() }));
    const rows = await this.database.engine<{ id: string }>(NOTE, [JSON.stringify(given)]);
    const noted = new Set(rows.map(({ id }) => id));
    for (const { id } of lost) this.remembered.delete(id);
    lostOperationsTotal.inc(noted.size);
    for (const { tenant, id, kind, name, acceptedAt } of given)
      if (noted.has(id))
        log.error(
          { operationId: id, tenantId: tenant, kind, resource: name, acceptedAt },
          'the database has lost an operation that a caller was promised',
        );
  }
}
