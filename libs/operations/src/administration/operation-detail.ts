import { COLUMNS, type OperationRow, type Read } from '#operations/administration/operation-list';
import type { OperationKind } from '#operations/definitions/operation-kinds';
import type { Json, JsonObject } from '#operations/operation';
import { sql } from '#platform/database/sql';

export const ACTIONS = ['retry', 'cancel', 'resolve', 'release'] as const;
export type OperationAction = (typeof ACTIONS)[number];

export interface OperationEventRow {
  xid: string;
  seq: string;
  at: Date;
  type: string;
  detail: Record<string, unknown>;
}

export interface OperationDetail extends OperationRow {
  request: JsonObject;
  result: Json;
  traceparent: string | null;
  fence: string;
  leaseOwner: string | null;
  leaseUntil: Date | null;
  dispatchNo: number;
  dispatchedAt: Date | null;
  /** Oldest first; the last 500. */
  events: OperationEventRow[];
  /** Before it in line, each with the slot where they meet. */
  waitsFor: { operation: string; kind: string; slot: string }[];
  steps: { name: string; state: 'done' | 'current' | 'waiting' }[];
  actions: OperationAction[];
  advice: string | null;
}

type Found = Omit<OperationDetail, 'events' | 'waitsFor' | 'steps' | 'actions' | 'advice'>;

const FIND = sql(
  'operation_find',
  `SELECT ${COLUMNS}, o.request, o.result, o.traceparent, o.fence::text AS fence, o.lease_owner AS "leaseOwner",
          o.lease_until AS "leaseUntil", o.dispatch_no AS "dispatchNo", nullif(o.dispatched_at, 'infinity') AS "dispatchedAt"
     FROM trivet.operation o WHERE o.id = $1`,
);
const EVENTS = sql(
  'operation_events',
  `SELECT e.xid::text, e.seq::text, e.at, e.type, e.detail FROM trivet.operation_event e
    WHERE e.operation_id = $1 ORDER BY e.seq DESC LIMIT 500`,
);
/** By the same rules as a claim. */
const BEFORE_IT = sql(
  'operation_waits_for',
  `SELECT DISTINCT other.operation_id AS operation, o.kind, other.slot
     FROM trivet.operation_slot mine
     JOIN trivet.operation_slot other
       ON other.resource_id = mine.resource_id AND other.slot = mine.slot AND other.operation_id <> mine.operation_id
      AND (other.tenant_id = mine.tenant_id) IS TRUE
     JOIN trivet.operation o ON o.tenant_id = other.tenant_id AND o.id = other.operation_id
    WHERE mine.tenant_id = $1 AND mine.operation_id = $2 AND NOT mine.held
      AND (other.held OR other.busy_until > now()
           OR mine.own AND other.own
          AND (other.priority > mine.priority OR other.priority = mine.priority AND other.seq < mine.seq))
    ORDER BY 1, 3 LIMIT 100`,
);

/** Undefined: the reader sees no such operation. */
export async function readOperation(
  read: Read,
  kindOf: (kind: string) => OperationKind | undefined,
  id: string,
): Promise<OperationDetail | undefined> {
  const [found] = await read<Found>(FIND, [id]);
  if (!found) return undefined;
  const [events, waitsFor] = await Promise.all([
    read<OperationEventRow>(EVENTS, [id]),
    found.finishedAt ? [] : read<OperationDetail['waitsFor'][number]>(BEFORE_IT, [found.tenantId, id]),
  ]);
  events.reverse();
  const kind = kindOf(found.kind);
  return {
    ...found,
    events,
    waitsFor,
    steps: stepsOf(found, kind),
    actions: possible(found, kind),
    advice: adviceOf(found, events, kind),
  };
}

/** A point is committed where a step begins; what has ended well has done them all. */
function stepsOf({ state, step, attempt }: Found, kind: OperationKind | undefined): OperationDetail['steps'] {
  const names = kind?.steps ?? [];
  const at = names.indexOf(step ?? '');
  return names.map((name, n) => {
    if (state === 'succeeded' || n < at) return { name, state: 'done' };
    // Before the first point nobody knows more than that it was begun.
    const current = at < 0 ? n === 0 && attempt > 0 : n === at;
    return { name, state: current ? 'current' : 'waiting' };
  });
}

function possible({ state, cancelRequested }: Found, kind: OperationKind | undefined): OperationAction[] {
  const actions: OperationAction[] = [];
  const unfinished = state === 'pending' || state === 'running' || state === 'needs_attention';
  if (state === 'pending' || state === 'needs_attention') actions.push('retry');
  if (unfinished && kind?.undoable && !cancelRequested) actions.push('cancel');
  if (state === 'needs_attention' && kind) actions.push('resolve');
  if (state === 'running') actions.push('release');
  return actions;
}

const SAID_OF_CALLS: ReadonlySet<string> = new Set(['slow_call', 'slow_call_ended', 'attempt']);

/** Of the attempt that runs. */
function slowness(events: readonly OperationEventRow[]): string | null {
  const last = events.findLast(({ type }) => SAID_OF_CALLS.has(type));
  if (last?.type !== 'slow_call') return null;
  const { call, seconds } = last.detail;
  return `Its call ${String(call)} had not returned after ${String(seconds)} s. Large images take their time; if its pool is well and nothing moves, release it: another worker goes on.`;
}

function adviceOf(
  { state, error, waitsForBackend, waitsForHost, cancelRequested, attempt }: Found,
  events: readonly OperationEventRow[],
  kind: OperationKind | undefined,
): string | null {
  if (waitsForHost) return `It goes on by itself once that host is back: ${waitsForHost}.`;
  if (waitsForBackend)
    return `It waits for its backend, which does not answer, and goes on by itself once a probe is answered: ${waitsForBackend.reason}.`;
  const resolved = events.findLast(({ type }) => type === 'resolved');
  switch (state) {
    case 'needs_attention':
      return `Mend what the error says, then retry. ${kind?.undoable && !cancelRequested ? 'Cancel: it undoes what it did. ' : ''}Resolve: it ends as failed; ${kind?.leaves ?? 'its resource stays as it is'}.`;
    case 'failed':
      return resolved ? `A person gave it up: ${String(resolved.detail.leaves ?? '')}.` : null;
    case 'pending':
      if (cancelRequested) return 'It was asked to stop, and undoes what it did as soon as a worker has it.';
      if (error && attempt > 3)
        return 'It is tried again by itself, less and less often. If the cause is mended already, retry it now.';
      return null;
    case 'running':
      return cancelRequested ? 'It was asked to stop, and does so between two steps.' : slowness(events);
    default:
      return null;
  }
}
