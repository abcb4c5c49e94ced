import { shownAudit } from '#admin/events/audit-view';
import { eventId, type PlacedEvent } from '#admin/events/event-id';
import { oldestOpen, readOperationEvents } from '#operations/administration/event-log';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { AuditReader } from '#tenancy/audit-log/audit-reader';
import type { Names } from '#tenancy/names';

/** One message, ready to send, and what filters go by. */
export interface Told {
  place: PlacedEvent;
  tenantId: string;
  operationId: string | null;
  text: string;
}

export interface Page {
  events: Told[];
  /** Where the next page begins; undefined when there is none below the bound. */
  next: PlacedEvent | undefined;
}

const ROWS = 500;
const LIVING = sql('events_living_tokens', 'SELECT id FROM trivet.living_admin_tokens($1)');

/** Events of operations and of the audit log in their one order, read from Postgres. */
export class EventSource {
  constructor(
    private readonly database: Database,
    private readonly audit: AuditReader,
    private readonly names: Names,
  ) {}

  /** Below it everything that will ever be told is there. */
  bound(): Promise<bigint> {
    return oldestOpen(this.database);
  }

  /** Which of these logins and tokens may go on listening. */
  async living(tokenIds: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.database.call<{ id: string }>(LIVING, [[...new Set(tokenIds)]]);
    return new Set(rows.map(({ id }) => id));
  }

  async page(after: PlacedEvent, bound: bigint, tenantId?: string): Promise<Page> {
    const xid = BigInt(after.xid);
    const ofOperations = after.source === 'o' ? { xid, seq: after.seq } : { xid: xid + 1n, seq: '0' };
    const ofAudit = { xid, seq: after.source === 'a' ? after.seq : '0' };
    const [operations, entries] = await Promise.all([
      readOperationEvents(this.database, ofOperations, bound, ROWS, tenantId),
      this.audit.after(ofAudit, bound, ROWS, tenantId),
    ]);
    const tenants = await this.names.ofTenants([...new Set(operations.map(event => event.tenantId))]);
    const events: Told[] = [
      ...operations.map(event =>
        told(
          { xid: event.xid, seq: event.seq, source: 'o', at: event.at },
          event.tenantId,
          event.operationId,
          'operation',
          {
            type: 'operation',
            at: event.at.toISOString(),
            tenant: tenants.get(event.tenantId) ?? '',
            operation: {
              id: event.operationId,
              kind: event.kind,
              state: event.state,
              event: event.type,
              resource: { kind: event.resourceKind, id: event.resourceId, name: event.resourceName },
              error: event.error,
            },
          },
        ),
      ),
      ...entries.map(entry =>
        told(
          { xid: entry.xid, seq: entry.seq, source: 'a', at: entry.at },
          entry.tenantId,
          entry.operationId,
          'audit',
          {
            type: 'audit',
            at: entry.at.toISOString(),
            tenant: entry.tenantName,
            audit: shownAudit(entry),
          },
        ),
      ),
    ].sort((one, other) => compare(one.place, other.place));
    // A source that gave all it may has more behind its last: what the other one has behind that comes later.
    const ends = [operations, entries].flatMap((rows, n) => {
      const last = rows.length === ROWS ? rows.at(-1)! : undefined;
      return last ? [{ xid: last.xid, seq: last.seq, source: n === 0 ? 'o' : 'a', at: last.at } as PlacedEvent] : [];
    });
    const [end] = ends.sort(compare);
    if (!end) return { events, next: undefined };
    return { events: events.filter(({ place }) => compare(place, end) <= 0), next: end };
  }
}

const told = (place: PlacedEvent, tenantId: string, operationId: string | null, type: string, data: object): Told => ({
  place,
  tenantId,
  operationId,
  text: `id: ${eventId(place)}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`,
});

/** By transaction, then operations before the audit log, then by number. */
export function compare(one: PlacedEvent, other: PlacedEvent): number {
  const [a, b] = [BigInt(one.xid), BigInt(other.xid)];
  if (a !== b) return a < b ? -1 : 1;
  if (one.source !== other.source) return one.source === 'o' ? -1 : 1;
  const [m, n] = [BigInt(one.seq), BigInt(other.seq)];
  return m === n ? 0 : m < n ? -1 : 1;
}
