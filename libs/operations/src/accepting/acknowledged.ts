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

const MISSING = sql(
  'operations_missing',
  `SELECT given.id FROM unnest($1::uuid[]) AS given (id)
    WHERE NOT EXISTS (SELECT FROM trivet.operation o WHERE o.id = given.id)`,
);
const NOTE = sql('note_lost_operations', 'SELECT trivet.note_lost_operations($1::jsonb) AS noted');

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
  private checking = Promise.resolve();

  constructor(private readonly database: Pick<Database, 'engine'>) {}

  add({ id, tenantId, kind, resourceName }: NewOperation): void {
    this.remembered.set(id, { tenant: tenantId, id, kind, name: resourceName, at: Date.now() });
    for (const [oldest, { at }] of this.remembered) {
      if (this.remembered.size <= MOST && at > Date.now() - REMEMBERED_MS) break;
      this.remembered.delete(oldest);
    }
  }

  /** One after the other; what could not be asked is asked after the next connection. */
  check(): Promise<void> {
    this.checking = this.checking.then(() => this.look()).catch(() => {});
    return this.checking;
  }

  private async look(): Promise<void> {
    if (this.remembered.size === 0) return;
    const missing = await this.database.engine<{ id: string }>(MISSING, [[...this.remembered.keys()]]);
    const lost = missing.flatMap(({ id }) => this.remembered.get(id) ?? []);
    if (lost.length === 0) return;
    const given = lost.map(({ at, ...one }) => ({ ...one, acceptedAt: new Date(at).toISOString() }));
    const [row] = await this.database.engine<{ noted: number }>(NOTE, [JSON.stringify(given)]);
    for (const { id } of lost) this.remembered.delete(id);
    lostOperationsTotal.inc(row!.noted);
    for (const { tenant, id, kind, name, acceptedAt } of given)
      log.error(
        { operationId: id, tenantId: tenant, kind, resource: name, acceptedAt },
        'the database has lost an operation that a caller was promised',
      );
  }
}
