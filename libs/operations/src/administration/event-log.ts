import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/**
 * A place in the order in which events are told: transactions by their numbers, in each those of operations before those of
 * the audit log, and both by their own. Numbers of an identity alone would not do: they are drawn before the commit, so who
 * goes by them misses what commits late.
 */
export interface EventPlace {
  /** Decimal: beyond 2^53 in the long run. */
  xid: string;
  source: 'o' | 'a';
  seq: string;
}

export interface LoggedOperationEvent {
  tenantId: string;
  xid: string;
  seq: string;
  at: Date;
  type: string;
  error: string | null;
  operationId: string;
  kind: string;
  state: string;
  resourceKind: string;
  resourceId: string;
  resourceName: string;
}

const OLDEST_OPEN = sql('events_oldest_open', 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xid');
const READ = (which: string) =>
  sql(
    `events_after_${which === '' ? 'all' : which.replace(/\W+/g, '_')}`,
    `SELECT e.tenant_id AS "tenantId", e.xid::text, e.seq::text, e.at, e.type, e.detail -> 'error' ->> 'message' AS error,
            o.id AS "operationId", o.kind, o.state, o.resource_kind AS "resourceKind", o.resource_id AS "resourceId",
            o.resource_name AS "resourceName"
       FROM (SELECT * FROM trivet.operation_event
              WHERE xid >= $1::text::xid8 AND (xid > $1::text::xid8 OR seq > $2::text::bigint) AND xid < $3::text::xid8 ${which}
              ORDER BY xid, seq LIMIT $4) AS e
       JOIN trivet.operation o ON o.id = e.operation_id AND (o.tenant_id = e.tenant_id) IS TRUE
      ORDER BY e.xid, e.seq`,
  );
const AFTER = READ('');
const AFTER_OF_TENANT = READ('AND tenant_id = $5::uuid');

/** Every transaction with a lower number has ended, and what it wrote can be seen. Of the whole server: an old one anywhere holds it. */
export async function oldestOpen(database: Database): Promise<bigint> {
  const [row] = await database.engine<{ xid: string }>(OLDEST_OPEN);
  return BigInt(row!.xid);
}

/** What operations did, from a place on, of transactions below `before`; of one tenant or of all. */
export function readOperationEvents(
  database: Database,
  after: { xid: bigint; seq: string },
  before: bigint,
  limit: number,
  tenantId?: string,
): Promise<LoggedOperationEvent[]> {
  const place = [String(after.xid), after.seq, String(before), limit];
  return tenantId === undefined
    ? database.engine(AFTER, place)
    : database.engine(AFTER_OF_TENANT, [...place, tenantId]);
}
