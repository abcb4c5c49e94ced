import { type Accepted, accept, acceptNew, type NewOperation, type NewResource } from '#operations/accepting/accept';
import { AcknowledgedOperations } from '#operations/accepting/acknowledged';
import type { Askable, Asked } from '#operations/accepting/askable';
import { Batcher } from '#operations/accepting/batcher';
import type { Caller } from '#operations/accepting/caller';
import { noted, type ObservedChange } from '#operations/accepting/change-observer';
import { type DispatchedLine, LateDispatch } from '#operations/accepting/late-dispatch';
import { OperationWaiter, retrying } from '#operations/accepting/waiter';
import type { Outcome } from '#operations/operation';
import type { Doorbell } from '#operations/queue/doorbell';
import type { Database, Tx } from '#platform/database/database';
import { type Statement, sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import { failpoint } from '#platform/process/failpoint';
import { uuidv7 } from '#platform/uuid';

const MARK_WAITED = sql(
  'mark_waited',
  `UPDATE trivet.operation SET waited = true
    WHERE tenant_id = $1 AND id = $2 AND NOT waited AND state IN ('pending', 'running')`,
);

/**
 * Begins the one operation of the transaction, and ends the transaction with it: nothing may be sent after it. Of `asked`
 * the audit log is told what was there `before` and is `after`.
 */
export type Begin = <Request extends object>(
  operation: Askable<Request>,
  asked: AskedAndSeen<Request>,
) => Promise<void>;

export type AskedAndSeen<Request extends object> = Asked<Request> & Pick<ObservedChange, 'before' | 'after'>;

/** As much of it as whoever asks for a change of what is there needs. */
export type Submits = Pick<Operations, 'submit'>;

/** The gateway's side of the engine: accept, ring, wait. Everything after the commit is only about telling the caller. */
export class Operations {
  readonly waiter: OperationWaiter;
  private readonly lateDispatch: LateDispatch;
  private readonly acknowledged: AcknowledgedOperations;
  private readonly claims = new Batcher<NewResource, Accepted | undefined>((_, resources) => this.claimAll(resources));

  constructor(
    private readonly database: Database,
    private readonly doorbell: Doorbell,
    private readonly cap: number,
  ) {
    const acknowledged = new AcknowledgedOperations(database);
    this.acknowledged = acknowledged;
    this.waiter = new OperationWaiter(database, () => acknowledged.check());
    this.lateDispatch = new LateDispatch(database, doorbell, cap);
  }

  /**
   * Accepts what the caller asks for, and waits for it. `claim` runs in the one transaction, which claims the resource's row;
   * it is given the id that its operation will have, and begins it, joins another one, or finds that there is nothing to do.
   * @param first before the caller's observer looks: locks that others take before what the observer locks
   */
  async submit<T>(
    caller: Caller,
    claim: (tx: Tx, begin: Begin, operationId: string) => Promise<Claim<T>>,
    first?: (tx: Tx) => Promise<void>,
  ): Promise<Submitted<T>> {
    const { tenantId, observer } = caller;
    const operationId = uuidv7();
    const started = this.wait(caller, operationId);
    let accepted: Accepted | undefined;
    let begun: NewOperation | undefined;
    const claimed = await this.database
      .withTenant(tenantId, async tx => {
        accepted = undefined;
        await first?.(tx);
        await observer?.before?.(tx);
        const begin: Begin = async (operation, asked) => {
          begun = operationOf(caller, operationId, operation, asked);
          accepted = await accept(tx, begun, this.cap);
        };
        const result = await claim(tx, begin, operationId);
        if (result.join) await tx.commit([MARK_WAITED, [tenantId, result.join]]);
        return result;
      })
      .finally(() => {
        if (!accepted || accepted.circuitReason !== undefined) this.waiter.leave(operationId);
      });
    if (accepted) return { value: claimed.value, operation: await this.told(begun!, accepted, started) };
    if (claimed.join) {
      const joined = this.wait(caller, claimed.join);
      this.waiter.check(claimed.join);
      return { value: claimed.value, operation: { id: claimed.join, outcome: await joined } };
    }
    return { value: claimed.value };
  }

  /**
   * The short way for a resource that has no row yet: all that come at the same moment are claimed and accepted in one
   * transaction. Undefined: its name lives, and `submit` says what that means.
   * @param row of the operation's id
   */
  async submitNew<Request extends object>(
    caller: Caller,
    operation: Askable<Request>,
    asked: AskedAndSeen<Request>,
    { claim, row }: { claim: Statement; row(operationId: string): object },
  ): Promise<Submitted<undefined> | undefined> {
    const { tenantId } = caller;
    const id = uuidv7();
    const started = this.wait(caller, id);
    const begun = operationOf(caller, id, operation, asked);
    let accepted: Accepted | undefined;
    try {
      accepted = await this.claims.add(`${tenantId}/${claim.name}`, { claim, row: row(id), operation: begun });
    } finally {
      if (!accepted || accepted.circuitReason !== undefined) this.waiter.leave(id);
    }
    return accepted && { value: undefined, operation: await this.told(begun, accepted, started) };
  }

  private wait({ tenantId, deadline, signal }: Caller, operationId: string): Promise<Outcome> {
    return this.waiter.wait(tenantId, operationId, deadline, signal);
  }

  private async claimAll(resources: readonly NewResource[]): Promise<(Accepted | undefined)[]> {
    const { tenantId } = resources[0]!.operation;
    return this.database.withTenant(tenantId, tx => acceptNew(tx, tenantId, resources, this.cap));
  }

  /** After the commit: rings, and waits for the end unless the backend is known to be down. */
  private async told(
    operation: NewOperation,
    { ring, circuitReason }: Accepted,
    started: Promise<Outcome>,
  ): Promise<Waited> {
    this.acknowledged.add(operation);
    await failpoint('accept:committed');
    if (ring) void this.doorbell.ring([ring]);
    else if (circuitReason === undefined) this.lateDispatch.accepted(operation);
    const outcome = circuitReason === undefined ? await started : retrying(circuitReason);
    return { id: operation.id, outcome };
  }

  /** Dispatches whom a change by somebody else than a worker has made room for, instead of the next round of a reconciler. */
  dispatchLate(line: DispatchedLine): void {
    this.lateDispatch.accepted(line);
  }

  async close(): Promise<void> {
    await this.waiter.close();
    await this.acknowledged.close();
    await this.doorbell.close();
  }
}

/** What the caller asks for, with its entry for the audit log. */
export function operationOf<Request extends object>(
  { tenantId, backendId, traceparent, actor, observer }: Caller,
  id: string,
  operation: Askable<Request>,
  { before, after, ...asked }: AskedAndSeen<Request>,
): NewOperation {
  const { resourceId, resourceName } = asked;
  const audit = noted(observer, { kind: operation.kind, resourceId, resourceName, operationId: id, before, after });
  return operation.asked(asked, { id, tenantId, backendId, traceparent, actor, audit });
}

export interface Claim<T> {
  /** Handed back to the caller of `submit`. */
  value: T;
  /** Wait for this operation of the same resource. */
  join?: string;
}

export interface Submitted<T> {
  value: T;
  /** Absent when there was nothing to wait for. */
  operation?: Waited;
}

/** An operation that a caller began or joined, and how the wait for it ended. */
export interface Waited {
  id: string;
  outcome: Outcome;
}

/**
 * Throws what a caller gets when the wait ended otherwise than in success (invariant E8).
 * @param accepted the operation does all that the caller asked for: it need not ask again while that goes on
 */
export function requireSuccess(operation: Waited | undefined, resource: string, { accepted = true } = {}): void {
  if (!operation || operation.outcome.state === 'succeeded') return;
  throw failureOf(operation, resource).of({ id: operation.id, goesOn: accepted && goesOn(operation) });
}

/** What the caller is shown after the wait; a refusal by then is of the same operation. */
export async function shownAfter<T>(operation: Waited | undefined, show: () => T | Promise<T>): Promise<Submitted<T>> {
  try {
    return { value: await show(), operation };
  } catch (error) {
    if (!operation || !isStorageError(error)) throw error;
    throw error.of({ id: operation.id, goesOn: goesOn(operation) });
  }
}

export const goesOn = ({ outcome: { state } }: Waited): boolean => state === 'unfinished' || state === 'retrying';

function failureOf({ id, outcome }: Waited, resource: string): StorageError {
  switch (outcome.state) {
    case 'needs_attention':
      return new StorageError(
        'failed_precondition',
        `${outcome.error.message} (operation ${id} waits for an operator)`,
        {
          resource,
        },
      );
    case 'cancelled':
      return new StorageError('aborted', `${resource}: the operation was cancelled`, { resource });
    case 'failed':
    case 'retrying':
      return StorageError.fromJSON(outcome.error);
    default:
      return new StorageError('aborted', `${resource}: operation ${id} is still in progress; try again`, { resource });
  }
}
