import type { OperationKinds } from '#operations/definitions/operation-kinds';
import type { OperationState, QueueClass } from '#operations/operation';
import { PROBE_EVERY_MS } from '#operations/running/circuit';
import type { PageOf, PageRequest } from '#platform/database/keyset';
import { type Statement, sql } from '#platform/database/sql';
import type { StoredError } from '#platform/errors';
import { invalid } from '#platform/errors';
import { isUuid } from '#platform/uuid';

/** Sends one statement, as a role and in a tenant that decide what it sees. */
export type Read = <Row>(statement: Statement, params: readonly unknown[]) => Promise<Row[]>;

export interface OperationFilter {
  /** Whose; undefined: all that the reader sees. */
  tenantId?: string;
  /** All there are, for who sees them all: each has an index of its kinds. */
  everyTenant?: readonly string[];
  states?: readonly OperationState[];
  /** A kind, or its part before the dot. */
  kind?: string;
  backendIds?: readonly string[];
  /** Id or name of what it is about. */
  resource?: string;
  /** Ids of what it is about: one of these. */
  resourceIds?: readonly string[];
  /** Kind of the last error. */
  error?: string;
  /** Of the acceptance: from, and before. */
  since?: Date;
  until?: Date;
  /** Waits for a person, or has failed more than three times. */
  stuck?: boolean;
}

export interface OperationRow {
  tenantId: string;
  id: string;
  kind: string;
  class: QueueClass;
  state: OperationState;
  resourceKind: string;
  resourceId: string;
  resourceName: string;
  backendId: string;
  actor: string | null;
  step: string | null;
  attempt: number;
  crashes: number;
  error: StoredError | null;
  cancelRequested: boolean;
  createdAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
  nextRunAt: Date | null;
  waitsForBackend: WaitsForBackend | null;
  /** Why the storage host of its pool cannot do it now: it stays where it is until that is back. */
  waitsForHost: string | null;
}

/** Its backend does not answer: it stays where it is until a probe is answered, whatever its own time was. */
export interface WaitsForBackend {
  reason: string;
  nextProbeAt: Date;
}

export const COLUMNS = `o.tenant_id AS "tenantId", o.id, o.kind, o.class, o.state, o.resource_kind AS "resourceKind",
  o.resource_id AS "resourceId", o.resource_name AS "resourceName", o.backend_id AS "backendId", o.actor, o.step, o.attempt,
  o.crashes, o.error, o.cancel_requested_at IS NOT NULL AS "cancelRequested", o.created_at AS "createdAt",
  o.started_at AS "startedAt", o.finished_at AS "finishedAt", CASE o.state WHEN 'pending' THEN nullif(o.next_run_at, 'infinity') END AS "nextRunAt",
  CASE WHEN o.host IS NOT NULL AND trivet.no_worker_has(o.state, o.lease_until) THEN trivet.host_silence(o.host, o.pool) END AS "waitsForHost",
  (SELECT json_build_object('reason', coalesce(c.detail, c.reason),
                            'nextProbeAt', greatest(now(), c.probed_at + interval '${PROBE_EVERY_MS} ms'))
     FROM trivet.backend_circuit c
    WHERE c.tenant_id = o.tenant_id AND c.backend_id = o.backend_id AND trivet.circuit_state(c.open_until) <> 'closed'
      AND trivet.no_worker_has(o.state, o.lease_until)) AS "waitsForBackend"`;

/** What COLUMNS and filters read: a portion is kept for a moment, and the rest of a row is most of it. */
const LOOKED_AT = `o.tenant_id, o.id, o.kind, o.class, o.state, o.resource_kind, o.resource_id, o.resource_name, o.backend_id, o.actor,
  o.step, o.attempt, o.crashes, o.error, o.cancel_requested_at, o.created_at, o.started_at, o.finished_at,
  o.next_run_at, o.lease_until, o.host, o.pool`;

const STUCK = `(o.finished_at IS NULL AND o.error IS NOT NULL AND (o.state = 'needs_attention' OR o.attempt > 3))`;

/**
 * Rows that one statement looks at for conditions that no index is for: few at first, since each may lie on a page of its own
 * that nobody has read lately; then as many as that speed lets expect in the time that is left.
 */
const PORTION = { first: 100, least: 100, most: 5_000 };
/** How long a page looks for more before it says where the next one goes on. */
const PATIENCE_MS = 15;
/** Of a tenant and a kind each: beyond so many the ends of all would take longer than to look at rows. */
const MOST_LINES = 2_000;
/** By how much clocks of gateways may differ from the database's. */
const SKEW_MS = 3_600_000;

/** As the predicates of their indexes: one of each tenant, one over all, told apart so that the planner has no choice. */
const FAILED = 'o.error IS NOT NULL';
const CANCELLED = 'o.cancel_requested_at IS NOT NULL';
const overAll = (predicate: string): string => `coalesce(${predicate}, false)`;
const UNFINISHED: readonly OperationState[] = ['pending', 'running', 'needs_attention'];
const LEAST = '00000000-0000-0000-0000-000000000000';
const GREATEST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * A page of operations, by their ids: those are UUIDs of version 7, which grow with the time of acceptance. Which index it
 * walks along is decided here and not by the planner, by the most telling filter. Filters that this index does not know are
 * tried on a bounded number of rows: a page takes no longer because little fits. It may hold fewer rows than asked for, even
 * none, before the end; `next` says where it goes on.
 */
export async function listOperations(
  read: Read,
  kinds: OperationKinds,
  filter: OperationFilter,
  { limit, after }: PageRequest,
  { descending }: { descending: boolean },
): Promise<PageOf<OperationRow>> {
  if (after && (after.length !== 1 || !isUuid(after[0]!)))
    throw invalid('cursor', 'it is not one that a page of this list gave');
  if (filter.backendIds?.length === 0) return { rows: [], next: undefined };
  const until = performance.now() + PATIENCE_MS;
  const rows: OperationRow[] = [];
  let place = after?.[0];
  for (let portion = PORTION.first; ; ) {
    const walk = new Walk(kinds, filter, place, descending, portion);
    const begin = performance.now();
    const found = await read<FoundRow>(...walk.page(limit + 1 - rows.length));
    const now = performance.now();
    for (const { end: _, ...row } of found) if (row.id !== null) rows.push(row);
    if (rows.length > limit) {
      rows.length = limit;
      return { rows, next: [rows.at(-1)!.id] };
    }
    const end = found[0]?.end;
    if (!end) return { rows, next: undefined };
    place = end;
    // As many as can be looked at in what is left: no statement begins that would take much longer than that.
    portion = Math.min(Math.floor((portion * (until - now)) / Math.max(now - begin, 0.1)), portion * 4, PORTION.most);
    if (portion < PORTION.least) return { rows, next: [place] };
  }
}

/** Of a portion in which nothing fits there is one row, without an id, that only says where it ends. */
type FoundRow = OperationRow & { end: string | null };

/** One statement along one index, from a place on. */
class Walk {
  private readonly values: unknown[] = [];
  /** What the index knows. */
  private readonly along: string[] = [];
  private readonly besides: string[] = [];
  private readonly from: string;
  private ordered: 'kind' | 'tenant_id' | undefined;
  /** In lines without an order of their own: of each object all that is known is little. */
  private readonly isWhole: boolean;

  constructor(
    kinds: OperationKinds,
    {
      tenantId,
      everyTenant,
      states,
      kind,
      backendIds,
      resource,
      resourceIds,
      error,
      since,
      until,
      stuck,
    }: OperationFilter,
    after: string | undefined,
    private readonly descending: boolean,
    private readonly portion: number,
  ) {
    const { along, besides } = this;
    const bounds = boundsOf({ after, since, until, descending });
    if (since) besides.push(`o.created_at >= ${this.value(since)}`);
    if (until) besides.push(`o.created_at < ${this.value(until)}`);

    const only = (...some: OperationState[]) => states?.every(state => some.includes(state)) === true;
    const named = kind === undefined ? undefined : kinds.named(kind);
    const telling =
      resource !== undefined
        ? `(o.resource_name = ${this.value(resource)}${isUuid(resource) ? ` OR o.resource_id = ${this.value(resource)}::uuid` : ''})`
        : stuck === true || only('needs_attention')
          ? 'o.finished_at IS NULL AND o.error IS NOT NULL'
          : only(...UNFINISHED)
            ? 'o.finished_at IS NULL'
            : error !== undefined || only('failed', 'needs_attention')
              ? FAILED
              : only('cancelled')
                ? CANCELLED
                : undefined;
    // Of those that are many over all tenants each has an index of its own: row security is no condition of the others.
    this.isWhole = resourceIds !== undefined;
    const hasOwn = !this.isWhole && (!telling || telling === FAILED || telling === CANCELLED);
    if (telling) along.push(hasOwn && tenantId === undefined ? overAll(telling) : telling);
    const tenants = tenantId === undefined ? everyTenant : [tenantId];
    const lines = (tenants?.length ?? 0) * ((named?.length ?? 0) + 1);
    const byKind = !this.isWhole && !telling && named && !backendIds && lines > 0 && lines <= MOST_LINES;
    if (byKind) along.push('o.tenant_id = line.tenant', ...this.within('kind', 'line.kind', bounds));
    else {
      const own = tenantId === undefined ? undefined : `${this.value(tenantId)}::uuid`;
      if (own && hasOwn) along.push(...this.within('tenant_id', own, bounds));
      else
        along.push(
          ...bounds
            .filter(([than, id]) => !(than === '>=' && id === LEAST) && !(than === '<=' && id === GREATEST))
            .map(([than, id]) => `o.id ${than} ${this.value(id)}::uuid`),
        );
      if (own && !hasOwn) besides.push(`o.tenant_id = ${own}`);
      if (named) besides.push(`o.kind = ANY (${this.value([...named, kind])}::text[])`);
    }
    if (states) besides.push(`o.state = ANY (${this.value(states)}::text[])`);
    if (backendIds) besides.push(`o.backend_id = ANY (${this.value(backendIds)}::uuid[])`);
    if (error !== undefined) besides.push(`o.error ->> 'kind' = ${this.value(error)}`);
    if (stuck !== undefined) besides.push(stuck ? STUCK : `NOT ${STUCK}`);
    if (this.isWhole) {
      along.push('o.resource_id = line.resource', ...besides.splice(0));
      this.from = `unnest(${this.value(resourceIds)}::uuid[]) AS line(resource), LATERAL`;
      return;
    }
    this.from = byKind
      ? `(SELECT tenant, kind FROM unnest(${this.value(tenants)}::uuid[]) AS tenant,
            unnest(${this.value([...named, kind])}::text[]) AS kind GROUP BY 1, 2) AS line, LATERAL`
      : '';
    // Of each line the first of the page are enough, and few lines have others than those that fit.
    if (byKind || resource !== undefined) along.push(...besides.splice(0));
  }

  /** What fits, and `end`: where the portion ends, unless the rows end before it does. */
  page(limit: number): [Statement, unknown[]] {
    const { from, where, order, besides, portion } = this;
    const direction = this.descending ? 'DESC' : 'ASC';
    const fitting = (those: string) => `${those} ORDER BY o.id ${direction} LIMIT ${Math.trunc(limit)}`;
    if (besides.length === 0) {
      // An OFFSET keeps the order of the page out of it: the planner would walk along the index of ids for it.
      const few = this.isWhole ? 'OFFSET 0' : `${order} LIMIT ${Math.trunc(limit)}`;
      const first = `(SELECT * FROM trivet.operation o ${where} ${few})`;
      return [sql('', `SELECT ${COLUMNS}, NULL AS "end" ${fitting(`FROM ${from} ${first} AS o`)}`), this.values];
    }
    return [
      sql(
        '',
        `WITH portion AS MATERIALIZED (SELECT ${LOOKED_AT} FROM trivet.operation o ${where} ${order} LIMIT ${portion})
         SELECT fit.*, ends.id AS "end"
           FROM (SELECT CASE WHEN (SELECT count(*) FROM portion) = ${portion}
                             THEN (SELECT id FROM portion ORDER BY id ${this.descending ? 'ASC' : 'DESC'} LIMIT 1) END AS id) AS ends
           LEFT JOIN (SELECT ${COLUMNS} ${fitting(`FROM portion o WHERE ${besides.join(' AND ')}`)}) AS fit ON true
          ORDER BY fit.id ${direction}`,
      ),
      this.values,
    ];
  }

  /**
   * `o.column = value` and the bounds, said so that only the index which begins with the column has the order: by an
   * equality the planner may as well walk along the index of ids alone, which for a value with few rows, or none, reads
   * all that there are. By a plain range it expects so few that it would sort them. Comparisons of rows it takes for many;
   * a scan begins at the first one that it finds, so there must be no other on that side.
   */
  private within(column: 'kind' | 'tenant_id', value: string, bounds: readonly Bound[]): string[] {
    this.ordered = column;
    return bounds.map(([than, id]) => `(o.${column}, o.id) ${than} (${value}, ${this.value(id)}::uuid)`);
  }

  private get where(): string {
    return this.along.length > 0 ? `WHERE ${this.along.join(' AND ')}` : '';
  }

  /** Within a line; of what is within it the column is the same. */
  private get order(): string {
    const direction = this.descending ? 'DESC' : 'ASC';
    return `ORDER BY ${this.ordered ? `o.${this.ordered} ${direction}, ` : ''}o.id ${direction}`;
  }

  private value(value: unknown): string {
    return `$${this.values.push(value)}`;
  }
}

type Bound = readonly ['<' | '<=' | '>' | '>=', id: string];

/** The narrowest of each side. */
function boundsOf({
  after,
  since,
  until,
  descending,
}: Pick<OperationFilter, 'since' | 'until'> & { after: string | undefined; descending: boolean }): [Bound, Bound] {
  const lowest = since ? firstId(since.getTime() - SKEW_MS) : LEAST;
  const highest: Bound = until ? ['<', firstId(until.getTime() + SKEW_MS)] : ['<=', GREATEST];
  if (after === undefined) return [['>=', lowest], highest];
  const place = after.toLowerCase();
  if (descending) return [['>=', lowest], place <= highest[1] ? ['<', place] : highest];
  return [place >= lowest ? ['>', place] : ['>=', lowest], highest];
}

/** The least id of this millisecond. */
const firstId = (ms: number): string => {
  const at = Math.trunc(ms);
  if (!(at > 0)) return LEAST;
  const hex = Math.min(at, 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
};
