import type { Database, Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { type Statement, sql } from '#platform/database/sql';
import { StorageError, type StoredError } from '#platform/errors';
import type { BulkSubject } from '#storage/bulk/bulk-actions';

/** What is done of one item and by which operation; no row is begun twice. */
export interface BulkItem {
  nth: number;
  subjectId: string;
  name: string;
  /** As it was when the bulk was accepted. */
  version: string | null;
  tries: number;
}

/**
 * What the item `given` is called, and as it is now, looked up one by one. A publication changes nothing but its progress, and
 * another one has another id. A bucket's row has times of what was found at its store, too: by what people set alone. A volume
 * that is being deleted is another one soon, in the bin or gone, and was chosen for that.
 */
const FOUND: Record<BulkSubject, string> = {
  volume: `SELECT o.name, CASE WHEN o.state <> 'deleting' THEN o.updated_at::text END AS version
             FROM trivet.volume o WHERE o.tenant_id = $1 AND o.id = given.id`,
  snapshot:
    'SELECT o.name, o.updated_at::text AS version FROM trivet.snapshot o WHERE o.tenant_id = $1 AND o.id = given.id',
  bucket: `SELECT o.name, o.origin || ' ' || md5(o.desired::text) AS version
             FROM trivet.bucket o WHERE o.tenant_id = $1 AND o.id = given.id`,
  publication: `SELECT v.name || ' to ' || h.name AS name, NULL AS version
                  FROM trivet.publication o
                  JOIN trivet.volume v ON v.tenant_id = o.tenant_id AND v.id = o.volume_id
                  JOIN trivet.host h ON h.tenant_id = o.tenant_id AND h.id = o.host_id
                 WHERE o.tenant_id = $1 AND o.id = given.id`,
  operation: `SELECT o.kind || ' ' || o.resource_name AS name, o.state AS version
                FROM trivet.operation o WHERE o.tenant_id = $1 AND o.id = given.id`,
};

/** The OFFSET keeps them apart: joined, all that the tenant has would be read for a few. */
const inserting = (subject: BulkSubject): Statement =>
  sql(
    `bulk_insert_${subject}s`,
    `INSERT INTO trivet.bulk_item (tenant_id, bulk_id, nth, subject_id, name, version)
     SELECT $1, $2, given.nth, given.id, coalesce(found.name, ''), found.version
       FROM unnest($3::uuid[]) WITH ORDINALITY AS given (id, nth)
       LEFT JOIN LATERAL (${FOUND[subject]} OFFSET 0) AS found ON true`,
  );
const INSERT: Record<BulkSubject, Statement> = {
  volume: inserting('volume'),
  snapshot: inserting('snapshot'),
  bucket: inserting('bucket'),
  publication: inserting('publication'),
  operation: inserting('operation'),
};

const looking = (subject: BulkSubject): Statement =>
  sql(
    `bulk_version_${subject}`,
    `SELECT found.version FROM (VALUES ($2::uuid)) AS given (id), LATERAL (${FOUND[subject]}) AS found`,
  );
const VERSION: Record<BulkSubject, Statement> = {
  volume: looking('volume'),
  snapshot: looking('snapshot'),
  bucket: looking('bucket'),
  publication: looking('publication'),
  operation: looking('operation'),
};

/** As it is now, in the terms of `BulkItem.version`; lock it before, so that it stays so. Undefined: it is gone. */
export async function versionNow(
  tx: Tx,
  tenantId: string,
  subject: BulkSubject,
  id: string,
): Promise<string | null | undefined> {
  const [row] = await tx.query<{ version: string | null }>(VERSION[subject], [tenantId, id]);
  return row?.version;
}

/** Within the transaction that accepts their bulk. */
export async function insertItems(
  tx: Tx,
  tenantId: string,
  bulkId: string,
  subject: BulkSubject,
  ids: readonly string[],
): Promise<void> {
  await tx.query(INSERT[subject], [tenantId, bulkId, ids]);
}

const WAITING = sql(
  'bulk_waiting',
  `SELECT nth, subject_id AS "subjectId", name, version, tries FROM trivet.bulk_item
    WHERE tenant_id = $1 AND bulk_id = $2 AND state = 'waiting' AND try_at <= now() ORDER BY nth LIMIT $3`,
);
/** Of what the item `i` is about, looked up one by one. */
const BACKEND: Partial<Record<BulkSubject, string>> = {
  volume: 'SELECT o.backend_id FROM trivet.volume o WHERE o.tenant_id = $1 AND o.id = i.subject_id',
  snapshot: 'SELECT o.backend_id FROM trivet.snapshot o WHERE o.tenant_id = $1 AND o.id = i.subject_id',
  bucket: 'SELECT o.backend_id FROM trivet.bucket o WHERE o.tenant_id = $1 AND o.id = i.subject_id',
  publication: `SELECT v.backend_id FROM trivet.publication o
                  JOIN trivet.volume v ON v.tenant_id = o.tenant_id AND v.id = o.volume_id
                 WHERE o.tenant_id = $1 AND o.id = i.subject_id`,
};
const of = <Made>(make: (subject: BulkSubject, backend: string) => Made): ReadonlyMap<BulkSubject, Made> =>
  new Map(
    Object.entries(BACKEND).map(([subject, backend]) => [
      subject as BulkSubject,
      make(subject as BulkSubject, backend),
    ]),
  );
const WAITING_ELSEWHERE = of((subject, backend) =>
  sql(
    `bulk_waiting_${subject}s`,
    `SELECT i.nth, i.subject_id AS "subjectId", i.name, i.version, i.tries FROM trivet.bulk_item i
      WHERE i.tenant_id = $1 AND i.bulk_id = $2 AND i.state = 'waiting' AND i.try_at <= now()
        AND (${backend}) = ANY ($4::uuid[]) IS NOT TRUE ORDER BY i.nth LIMIT $3`,
  ),
);
/** Once each: what waits for its backend says so. */
const SILENT = of((subject, backend) =>
  sql(
    `bulk_silent_${subject}s`,
    `UPDATE trivet.bulk_item i SET error = $3
      WHERE i.tenant_id = $1 AND i.bulk_id = $2 AND i.state = 'waiting' AND i.error IS NULL
        AND (${backend}) = ANY ($4::uuid[])`,
  ),
);
/** An operation `o` that its backend holds up: until that answers it has no place, and is counted for none. */
export const HELD_UP = `o.state = 'pending' AND EXISTS (
  SELECT FROM trivet.backend_circuit c
   WHERE c.tenant_id = o.tenant_id AND c.backend_id = o.backend_id AND trivet.circuit_state(c.open_until) <> 'closed')`;

/** What has ended is noted, so that a round does not read it again. What waits for a person is not waited for. */
const SETTLE = sql(
  'bulk_settle',
  `WITH found AS MATERIALIZED (
     SELECT i.nth, o.state, o.error, ${HELD_UP} AS held
       FROM trivet.bulk_item i LEFT JOIN trivet.operation o ON o.tenant_id = i.tenant_id AND o.id = i.operation_id
      WHERE i.tenant_id = $1 AND i.bulk_id = $2 AND i.state = 'begun'
   ), settled AS (
     UPDATE trivet.bulk_item i
        SET state = CASE WHEN found.state IN ('failed', 'cancelled') THEN 'failed' ELSE 'done' END, error = found.error
       FROM found
      WHERE i.tenant_id = $1 AND i.bulk_id = $2 AND i.nth = found.nth AND i.state = 'begun'
        AND (found.state IS NULL OR found.state IN ('succeeded', 'failed', 'cancelled'))
     RETURNING i.nth
   )
   SELECT (SELECT count(*)::int FROM settled) AS settled,
          (SELECT count(*)::int FROM found WHERE state IN ('pending', 'running') AND NOT held) AS running,
          (SELECT count(*)::int FROM found WHERE held) AS held,
          (SELECT count(*)::int FROM found WHERE state = 'needs_attention') AS parked`,
);
const LEFT = sql(
  'bulk_left',
  "SELECT FROM trivet.bulk_item WHERE tenant_id = $1 AND bulk_id = $2 AND state = 'waiting' LIMIT 1",
);

export interface Round {
  /** Ended since the last look. */
  settled: number;
  /** Begun, and neither at their end nor before a person, nor held up. */
  running: number;
  /** Begun before their backends fell silent. */
  held: number;
  /** Before a person. */
  parked: number;
}

export const settleItems = (database: Database, tenantId: string, bulkId: string): Promise<Round> =>
  database.withTenant(tenantId, async tx => (await tx.query<Round>(SETTLE, [tenantId, bulkId]))[0]!);

export interface Wanted {
  subject: BulkSubject;
  limit: number;
  /** Backends whose items are not begun: they would only be held up, and be counted in a place of others. */
  silent: readonly string[];
}

/** Whose time has come, in their order. Those that wait for a backend use up no try. */
export async function waitingItems(
  database: Database,
  tenantId: string,
  bulkId: string,
  { subject, limit, silent }: Wanted,
): Promise<BulkItem[]> {
  const elsewhere = silent.length > 0 && WAITING_ELSEWHERE.get(subject);
  if (!elsewhere) return database.withTenant(tenantId, tx => tx.query<BulkItem>(WAITING, [tenantId, bulkId, limit]));
  return database.withTenant(tenantId, async tx => {
    const found = await tx.query<BulkItem>(elsewhere, [tenantId, bulkId, limit, silent]);
    if (found.length < limit) await tx.query(SILENT.get(subject)!, [tenantId, bulkId, JSON.stringify(SAID), silent]);
    return found;
  });
}

const SAID = new StorageError('unavailable', 'its backend does not answer; it is begun when that does', {
  retry: 'later',
}).toJSON();

export const someWait = (database: Database, tenantId: string, bulkId: string): Promise<boolean> =>
  database.withTenant(tenantId, async tx => (await tx.query(LEFT, [tenantId, bulkId])).length > 0);

const REFUSE = sql(
  'bulk_refuse',
  `UPDATE trivet.bulk_item SET state = 'failed', error = $4
    WHERE tenant_id = $1 AND bulk_id = $2 AND nth = $3 AND state = 'waiting'`,
);
const PUT_OFF = sql(
  'bulk_put_off',
  `UPDATE trivet.bulk_item SET error = $4, tries = tries + 1, try_at = now() + $5::float8 * interval '1 ms'
    WHERE tenant_id = $1 AND bulk_id = $2 AND nth = $3 AND state = 'waiting'`,
);

/** Behind those whose turn it is: what takes away more than it adds needs no room. */
const HOLD = sql(
  'bulk_hold',
  `UPDATE trivet.bulk_item SET error = $4, try_at = now() + interval '2 s'
    WHERE tenant_id = $1 AND bulk_id = $2 AND nth = $3 AND state = 'waiting'`,
);

/** It waits for room, and says so. */
export async function holdItem(
  database: Database,
  tenantId: string,
  bulkId: string,
  { nth }: BulkItem,
  error: StoredError,
): Promise<void> {
  await database.withTenant(tenantId, tx => tx.query(HOLD, [tenantId, bulkId, nth, JSON.stringify(error)]));
}

const HOLD_NEXT = sql(
  'bulk_hold_next',
  `UPDATE trivet.bulk_item SET error = $3
    WHERE tenant_id = $1 AND bulk_id = $2 AND state = 'waiting'
      AND nth = (SELECT nth FROM trivet.bulk_item
                  WHERE tenant_id = $1 AND bulk_id = $2 AND state = 'waiting' ORDER BY nth LIMIT 1)
      AND error IS DISTINCT FROM $3::jsonb`,
);

/** The first of those that wait says why none begins. */
export async function holdNext(
  database: Database,
  tenantId: string,
  bulkId: string,
  error: StoredError,
): Promise<void> {
  await database.withTenant(tenantId, tx => tx.query(HOLD_NEXT, [tenantId, bulkId, JSON.stringify(error)]));
}

/** @param againMs busy now: tried again after so long; absent: it has failed */
export async function refuseItem(
  database: Database,
  tenantId: string,
  bulkId: string,
  { nth }: BulkItem,
  error: StoredError,
  againMs?: number,
): Promise<void> {
  const given = [tenantId, bulkId, nth, JSON.stringify(error)];
  await database.withTenant(tenantId, tx =>
    againMs === undefined ? tx.query(REFUSE, given) : tx.query(PUT_OFF, [...given, againMs]),
  );
}

/** For the transaction that ends or stops the bulk: what has not begun never does. */
export const SKIP = sql(
  'bulk_skip',
  "UPDATE trivet.bulk_item SET state = 'skipped' WHERE tenant_id = $1 AND bulk_id = $2 AND state = 'waiting'",
);

const LOSE = sql(
  'bulk_lose',
  "UPDATE trivet.bulk_item SET state = 'skipped', error = $3 WHERE tenant_id = $1 AND bulk_id = $2 AND state = 'waiting'",
);

/** What has not begun never does, and says why. */
export async function skipItems(
  database: Database,
  tenantId: string,
  bulkId: string,
  error: StoredError,
): Promise<void> {
  await database.withTenant(tenantId, tx => tx.query(LOSE, [tenantId, bulkId, JSON.stringify(error)]));
}

export const ITEM_STATES = ['waiting', 'running', 'done', 'failed', 'skipped'] as const;
export type ItemState = (typeof ITEM_STATES)[number];

/** By its own operation, as long as that goes on. */
const STATE = `CASE WHEN i.state <> 'begun' THEN i.state
    WHEN o.state IN ('pending', 'running') THEN 'running'
    WHEN o.state IN ('failed', 'cancelled', 'needs_attention') THEN 'failed' ELSE 'done' END`;
const FROM = `FROM trivet.bulk_item i
    LEFT JOIN trivet.operation o ON i.state = 'begun' AND o.tenant_id = i.tenant_id AND o.id = i.operation_id`;

const COUNTS = sql(
  'bulk_counts',
  `SELECT ${STATE} AS state, count(*)::int AS items ${FROM} WHERE i.tenant_id = $1 AND i.bulk_id = $2 GROUP BY 1`,
);

export type ItemCounts = Record<ItemState | 'total', number>;

export async function countItems(tx: Pick<Tx, 'query'>, tenantId: string, bulkId: string): Promise<ItemCounts> {
  const counts: ItemCounts = { total: 0, waiting: 0, running: 0, done: 0, failed: 0, skipped: 0 };
  for (const { state, items } of await tx.query<{ state: ItemState; items: number }>(COUNTS, [tenantId, bulkId])) {
    counts[state] = items;
    counts.total += items;
  }
  return counts;
}

export interface ListedItem {
  nth: number;
  subjectId: string;
  name: string;
  state: ItemState;
  operationId: string | null;
  error: StoredError | null;
}

const SELECT = `SELECT * FROM (
   SELECT i.tenant_id, i.bulk_id, i.nth, i.subject_id AS "subjectId", i.name, ${STATE} AS state, i.operation_id AS "operationId",
          coalesce(o.error, i.error) AS error ${FROM}) AS item`;
const ORDER = { columns: [{ sql: 'item.nth', type: 'bigint' }] } as const;

/** In their order. */
export function listItems(
  tx: Tx,
  { tenantId, bulkId }: { tenantId: string; bulkId: string },
  state: ItemState | undefined,
  request: PageRequest,
): Promise<PageOf<ListedItem>> {
  const query = new ListQuery()
    .where('item.tenant_id = ?', tenantId)
    .where('item.bulk_id = ?', bulkId)
    .where('item.state = ?', state);
  return readPage<ListedItem>(tx, query, SELECT, ORDER, request);
}
