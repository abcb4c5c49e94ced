import type { JsonObject, QueueClass, Ring } from '#operations/operation';
import type { Tx } from '#platform/database';
import { sqlFile } from '#platform/sql';
import { isTracing, type OpenSpan, startSpan } from '#platform/tracing';

const ACCEPT = sqlFile('operations', 'accept');
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
  traceparent?: string;
  /** Who asked for it, for people: a login name. */
  actor?: string;
}

export interface Accepted {
  operationId: string;
  /** Ring it after the commit; absent when somebody else will dispatch it. */
  ring?: Ring;
  /** The backend is known to be down: the caller is told so, and the work completes by itself when it is back. */
  circuitReason?: string;
}

/**
 * Writes the operation into the caller's transaction, beside the claim of its resource row, and commits. From then on
 * the operation is never lost (P1), whatever happens to this process, to the queue, or to the caller.
 * @param cap how many operations of one tenant may be under way at one backend in one class
 */
export async function accept(tx: Tx, operation: NewOperation, cap: number): Promise<Accepted> {
  let notBefore: Date | null = null;
  if (operation.negates) {
    const [cancelled] = await tx.query<{ busyUntil: Date | null }>(CANCEL, [
      operation.tenantId,
      operation.resourceId,
      operation.negates,
    ]);
    notBefore = cancelled?.busyUntil ?? null;
  }
  const [accepted] = await acceptAll(tx, operation.tenantId, [operation], cap, notBefore);
  return accepted!;
}

/** As `accept`, for several of one tenant at once; none of them negates anything. */
export async function acceptAll(
  tx: Tx,
  tenantId: string,
  operations: readonly NewOperation[],
  cap: number,
  notBefore: Date | null = null,
): Promise<Accepted[]> {
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
    notBefore,
    traceparent: spans?.[n]?.traceparent ?? operation.traceparent,
    actor: operation.actor,
    slots: operation.slots,
  }));
  let failed: string | undefined = 'refused';
  let rows: unknown[];
  try {
    rows = (await tx.commit([ACCEPT, [tenantId, JSON.stringify(given), cap]]))[0]!;
    failed = undefined;
  } finally {
    for (const span of spans ?? []) span.end(failed);
  }
  const byId = new Map((rows as AcceptedRow[]).map(row => [row.id, row]));
  return operations.map(({ id, class: queueClass }) => {
    const { dispatchNo, circuitReason } = byId.get(id)!;
    const accepted: Accepted = { operationId: id };
    if (dispatchNo > 0) accepted.ring = { operationId: id, class: queueClass, dispatchNo };
    if (circuitReason !== null) accepted.circuitReason = circuitReason;
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
  circuitReason: string | null;
}
