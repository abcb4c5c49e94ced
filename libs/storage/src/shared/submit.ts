import type { Operations, Submitted } from '#operations/accepting/operations';
import type { Askable, Asked } from '#operations/definitions/define-operation';
import type { Tx } from '#platform/database/database';
import type { Statement } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import type { Caller } from '#storage/shared/caller';
import { noted, type ObservedChange } from '#storage/shared/change-observer';

/**
 * Starts the one operation of the transaction, and ends the transaction with it: nothing may be sent after it. Of `asked`
 * the audit log is told what was there `before` and is `after`.
 */
export type Begin = <Request extends object>(
  operation: Askable<Request>,
  asked: AskedAndSeen<Request>,
) => Promise<void>;

export type AskedAndSeen<Request extends object> = Asked<Request> & Pick<ObservedChange, 'before' | 'after'>;

/** Who accepts, and for whom. */
export interface Submission {
  operations: Operations;
  caller: Caller;
  /** Before the caller's observer looks: locks that others take before what the observer locks. */
  first?(tx: Tx): Promise<void>;
}

/**
 * Accepts what the caller asks for, and waits for it. `claim` runs in the one transaction, under its locks; it is given the
 * id that its operation will have, and begins it, joins another one, or finds that there is nothing to do.
 */
export function submit<T>(
  { operations, caller, first }: Submission,
  claim: (tx: Tx, begin: Begin, operationId: string) => Promise<{ value: T; join?: string }>,
): Promise<Submitted<T>> {
  const operationId = uuidv7();
  return operations.submit(caller.tenantId, operationId, patience(caller), async (tx, accept) => {
    await first?.(tx);
    await caller.observer?.before?.(tx);
    const begin: Begin = (operation, asked) => accept(operationOf(caller, operationId, operation, asked));
    return claim(tx, begin, operationId);
  });
}

/**
 * The short way for what has no row yet: all that come at the same moment are claimed together. Undefined: its name lives,
 * and `submit` says what that means.
 * @param row of the operation's id
 */
export function submitNew<Request extends object>(
  { operations, caller }: Submission,
  operation: Askable<Request>,
  asked: AskedAndSeen<Request>,
  { claim, row }: { claim: Statement; row(operationId: string): object },
): Promise<Submitted<undefined> | undefined> {
  const id = uuidv7();
  const made = { claim, row: row(id), operation: operationOf(caller, id, operation, asked) };
  return operations.submitNew(made, patience(caller));
}

const patience = ({ deadline, signal }: Caller) => ({ until: deadline, signal });

function operationOf<Request extends object>(
  { tenantId, backendId, traceparent, actor, observer }: Caller,
  id: string,
  operation: Askable<Request>,
  { before, after, ...asked }: AskedAndSeen<Request>,
) {
  const { resourceId, resourceName } = asked;
  const audit = noted(observer, { kind: operation.kind, resourceId, resourceName, operationId: id, before, after });
  return operation.asked(asked, { id, tenantId, backendId, traceparent, actor, audit });
}
