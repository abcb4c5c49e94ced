import { type Accepted, accept, acceptNew, type NewOperation, type NewResource } from '#operations/accept';
import type { Doorbell } from '#operations/doorbell';
import { type NudgedLine, Nudger } from '#operations/nudge';
import type { Outcome } from '#operations/operation';
import { Together } from '#operations/together';
import { OperationWaiter, retrying } from '#operations/waiter';
import type { Database, Tx } from '#platform/database';
import { StorageError } from '#platform/errors';
import { failpoint } from '#platform/failpoint';
import { sql } from '#platform/sql';

const MARK_WAITED = sql(
  'mark_waited',
  `UPDATE trivet.operation SET waited = true
    WHERE tenant_id = $1 AND id = $2 AND NOT waited AND state IN ('pending', 'running')`,
);

export interface Patience {
  /** Milliseconds since the epoch. */
  until: number;
  signal?: AbortSignal;
}

/**
 * The gateway's side of the engine: accept, ring, wait. `submit` is given what to do inside the one transaction that
 * claims the resource row; everything after the commit is only about telling the caller.
 */
export class Operations {
  readonly waiter: OperationWaiter;
  private readonly nudger: Nudger;
  private readonly claims = new Together<NewResource, Accepted | undefined>((_, resources) => this.claimAll(resources));

  constructor(
    private readonly database: Database,
    private readonly doorbell: Doorbell,
    private readonly cap: number,
  ) {
    this.waiter = new OperationWaiter(database);
    this.nudger = new Nudger(database, doorbell, cap);
  }

  /**
   * Runs `claim` in a transaction of the tenant. It answers with what to do: start `operationId` (the given one, through
   * `begin`), join another operation, or nothing at all (`done`).
   */
  async submit<T>(
    tenantId: string,
    operationId: string,
    patience: Patience,
    claim: (tx: Tx, begin: (operation: NewOperation) => Promise<void>) => Promise<Claim<T>>,
  ): Promise<Submitted<T>> {
    const started = this.waiter.wait(tenantId, operationId, patience.until, patience.signal);
    let accepted: Accepted | undefined;
    let begun: NewOperation | undefined;
    const claimed = await this.database
      .withTenant(tenantId, async tx => {
        accepted = undefined;
        const result = await claim(tx, async operation => {
          begun = operation;
          accepted = await accept(tx, operation, this.cap);
        });
        if (result.join) await tx.commit([MARK_WAITED, [tenantId, result.join]]);
        return result;
      })
      .finally(() => {
        if (!accepted || accepted.circuitReason !== undefined) this.waiter.leave(operationId);
      });
    if (accepted) return { value: claimed.value, ...(await this.told(begun!, accepted, started)) };
    if (claimed.join) {
      const joined = this.waiter.wait(tenantId, claimed.join, patience.until, patience.signal);
      this.waiter.check(claimed.join);
      return { value: claimed.value, outcome: await joined, operationId: claimed.join };
    }
    return { value: claimed.value };
  }

  /**
   * The short way for a resource that has no row yet: all that come at the same moment are claimed and accepted in one
   * transaction. Undefined: its name lives, and `submit` says what that means.
   */
  async submitNew(
    { claim, row, operation }: NewResource,
    patience: Patience,
  ): Promise<Submitted<undefined> | undefined> {
    const started = this.waiter.wait(operation.tenantId, operation.id, patience.until, patience.signal);
    let accepted: Accepted | undefined;
    try {
      accepted = await this.claims.add(`${operation.tenantId}/${claim.name}`, { claim, row, operation });
    } finally {
      if (!accepted || accepted.circuitReason !== undefined) this.waiter.leave(operation.id);
    }
    return accepted && { value: undefined, ...(await this.told(operation, accepted, started)) };
  }

  private async claimAll(resources: readonly NewResource[]): Promise<(Accepted | undefined)[]> {
    const { tenantId } = resources[0]!.operation;
    return this.database.withTenant(tenantId, tx => acceptNew(tx, tenantId, resources, this.cap));
  }

  /** After the commit: rings, and waits for the end unless the backend is known to be down. */
  private async told(operation: NewOperation, { ring, circuitReason }: Accepted, started: Promise<Outcome>) {
    await failpoint('accept:committed');
    if (ring) void this.doorbell.ring([ring]);
    else if (circuitReason === undefined) this.nudger.accepted(operation);
    const outcome = circuitReason === undefined ? await started : retrying(circuitReason);
    return { outcome, operationId: operation.id };
  }

  /** Dispatches whom a change by somebody else than a worker has made room for, instead of the next round of a reconciler. */
  nudge(line: NudgedLine): void {
    this.nudger.accepted(line);
  }

  async close(): Promise<void> {
    await this.waiter.close();
    await this.doorbell.close();
  }
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
  outcome?: Outcome;
  operationId?: string;
}

/** What a caller gets when the wait ended otherwise than in success (invariant E8). */
export function throwUnlessSucceeded(outcome: Outcome, operationId: string, resource: string): void {
  switch (outcome.state) {
    case 'succeeded':
      return;
    case 'failed':
    case 'retrying':
      throw StorageError.fromJSON(outcome.error);
    case 'needs_attention':
      throw new StorageError(
        'failed_precondition',
        `${outcome.error.message} (operation ${operationId} waits for an operator)`,
        { resource },
      );
    case 'cancelled':
      throw new StorageError('aborted', `${resource}: the operation was cancelled`, { resource });
    case 'unfinished':
      throw new StorageError('aborted', `${resource}: operation ${operationId} is still in progress; try again`, {
        resource,
      });
  }
}
