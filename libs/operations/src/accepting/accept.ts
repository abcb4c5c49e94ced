import type { JsonObject, QueueClass, Ring } from '#operations/operation';
import type { Tx, Write } from '#platform/database/database';
import { type Statement, sqlFile } from '#platform/database/sql';
import type { OpenSpan } from '#platform/tracing/tracer';
import { isTracing, startSpan } from '#platform/tracing/tracing';

const ACCEPT = sqlFile('operations', 'accept');
const ALL_GIVEN = 'SELECT resource AS id FROM json_to_recordset($2::json) AS given (resource uuid)';
const CANCEL = sqlFile('operations', 'cancel');

/** own: the operation's own resource, where the order of the line binds. */
export interface Slot {
  resource: string;
  slot: string;
  own: boolean;
}

export interface NewOperation {
  id: string;
  tenantId: string;
  kind: string;
  class: QueueClass;
  backendId: string;
  resourceKind: string;
  resourceId: string;
  /** For people. */
  resourceName: string;
  /** No secret may enter it. */
  request: JsonObject;
  slots: readonly Slot[];
  /** Kinds on the same resource that this one asks to stop and then undoes; it goes before everything else there. */
  negates?: readonly string[];
  /** Nobody waits for its end, so that sends no notification (invariant E6). Who joins it later is heard all the same. */
  unattended?: true;
  traceparent?: string;
  /** Who asked for it, for people: a login name. */
  actor?: string;
  /** Columns of its entry in the audit log, which is written with it; absent: nobody asked for it. */
  audit?: object;
}

export interface Accepted {
  operationId: string;
  /** Ring it after the commit; absent when somebody else will dispatch it. */
  ring?: Ring;
  /** The backend, or the host of the pool, is known to be down: the caller is told so, and the work completes by itself when it is back. */
  circuitReason?: string;
}

/**
 * Writes the operation into the caller's transaction, beside the claim of its resource row, and commits. From then on
 * the operation is never lost (P1), whatever happens to this process, to the queue, or to the caller.
 * @param cap how many operations of one tenant may be under way at one backend in one class
 */
export async function accept(tx: Tx, operation: NewOperation, cap: number): Promise<Accepted> {
  const { tenantId, resourceId, negates } = operation;
  // In the packet of the acceptance: a process that stands still holds the row of no operation, which is a worker's to renew.
  const before: Write[] = negates ? [[CANCEL, [tenantId, resourceId, negates]]] : [];
  const [accepted] = await send(tx, ACCEPT, tenantId, [operation], [cap], before);
  return accepted!;
}

/** A resource that has no row yet, with the operation that makes it. */
export interface NewResource {
  /**
   * Takes the tenant as $1 and a JSON array of rows as $4, inserts those whose name is free, in one fixed order, and answers
   * with their ids: each is the resource of an operation.
   */
  claim: Statement;
  row: object;
  operation: NewOperation;
}

/**
 * Claims resources and accepts the operations of those whose name was free, in one statement of one transaction, and
 * commits. All have the same claim; none of the operations negates anything.
 */
export async function acceptNew(
  tx: Tx,
  tenantId: string,
  resources: readonly NewResource[],
  cap: number,
): Promise<(Accepted | undefined)[]> {
  const { claim } = resources[0]!;
  const rows = JSON.stringify(resources.map(({ row }) => row));
  const operations = resources.map(({ operation }) => ({
    ...operation,
    slots: operation.slots.map(heldOf(operation)),
  }));
  return send(tx, claiming(claim), tenantId, operations, [cap, rows]);
}

/**
 * Nobody else can know of a resource that is made here: its slots are held from the first, and the claim need not write them.
 * A unique index says so, as it does of a claim's.
 */
const heldOf =
  ({ resourceId }: NewOperation) =>
  (slot: Slot) =>
    slot.resource === resourceId ? { ...slot, held: true } : slot;

const claimings = new Map<Statement, Statement>();

/** accept.sql with `claim` in it: two statements would be two round trips, since the second takes what the first could claim. */
export function claiming(claim: Statement): Statement {
  let statement = claimings.get(claim);
  if (!statement) {
    statement = { name: `${ACCEPT.name}.${claim.name}`, text: ACCEPT.text.replace(ALL_GIVEN, () => claim.text) };
    claimings.set(claim, statement);
  }
  return statement;
}

/** Answers in the order of the operations; undefined: its resource could not be claimed. */
async function send(
  tx: Tx,
  statement: Statement,
  tenantId: string,
  operations: readonly NewOperation[],
  params: readonly unknown[],
  before: readonly Write[] = [],
): Promise<(Accepted | undefined)[]> {
  const spans = isTracing() ? operations.map(spanOf) : undefined;
  const given = operations.map((operation, n) => ({
    id: operation.id,
    kind: operation.kind,
    class: operation.class,
    backend: operation.backendId,
    resourceKind: operation.resourceKind,
    resource: operation.resourceId,
    resourceName: operation.resourceName,
    request: operation.request,
    priority: operation.negates ? 1 : 0,
    negates: operation.negates !== undefined,
    waited: !operation.unattended,
    traceparent: spans?.[n]?.traceparent ?? operation.traceparent,
    actor: operation.actor,
    slots: operation.slots,
    audit: operation.audit,
  }));
  let failed: string | undefined = 'refused';
  let rows: AcceptedRow[];
  try {
    const sent: Write = [statement, [tenantId, JSON.stringify(given), ...params]];
    rows = (await tx.commit(...before, sent)).at(-1) as AcceptedRow[];
    failed = undefined;
  } finally {
    for (const span of spans ?? []) span.end(failed);
  }
  const byId = new Map(rows.map(row => [row.id, row]));
  return operations.map(({ id, class: queueClass }) => {
    const row = byId.get(id);
    if (!row) return undefined;
    const accepted: Accepted = { operationId: id };
    const { dispatchNo, host } = row;
    if (dispatchNo > 0) accepted.ring = { operationId: id, class: queueClass, host, dispatchNo };
    if (row.circuitReason !== null) accepted.circuitReason = row.circuitReason;
    return accepted;
  });
}

/** Where the attempts of the operation go back to. */
const spanOf = (operation: NewOperation): OpenSpan =>
  startSpan(`accept ${operation.kind}`, {
    kind: 'producer',
    parent: operation.traceparent,
    attributes: {
      'trivet.operation.id': operation.id,
      'trivet.operation.kind': operation.kind,
      'trivet.resource.id': operation.resourceId,
      'trivet.tenant.id': operation.tenantId,
    },
  })!;

interface AcceptedRow {
  id: string;
  dispatchNo: number;
  host: string | null;
  circuitReason: string | null;
}
