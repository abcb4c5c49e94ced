import { backoffMs } from '#operations/backoff';
import type { Circuits } from '#operations/circuit';
import type { Doorbell } from '#operations/doorbell';
import { FencedWrites } from '#operations/fenced-writes';
import { failureOf, type Handler, type HandlerRegistry, type Step, type Writer } from '#operations/handler';
import { Cancelled, type Lease, type LeaseKeeper, LeaseLost } from '#operations/lease';
import type { Json, LeasedOperation } from '#operations/operation';
import { LeasedContext } from '#operations/step-context';
import { type Database, isFenceLost, type Tx, type Write } from '#platform/database';
import { isStorageError, StorageError } from '#platform/errors';
import { failpoint } from '#platform/failpoint';
import { createLogger, withLogContext } from '#platform/log';
import { leaseLostTotal, operationDuration, operationsInflight, operationsTotal } from '#platform/metrics';
import { sql } from '#platform/sql';
import { inSpan, type SpanOptions } from '#platform/tracing';

const log = createLogger('operation');

/** A worker that dies this often on one operation dies because of it. */
const CRASH_LIMIT = 10;
/** A defect of ours does not mend itself; more repeats only hide it. */
const DEFECT_LIMIT = 10;

const STOPPED_BY = sql('stopped_by', 'SELECT cancel_by AS by FROM trivet.operation WHERE id = $1');

/**
 * Runs one operation from claim to end. Every write carries the fence, and stands in a transaction that is rolled back
 * when the fence is no longer ours. The life of an attempt:
 *
 *   claim ── begin ── step ── (point) ── step ── ... ── finish: succeeded
 *     │                 ├─ a repeat may help ── retry (pending, next_run_at), slots free
 *     │                 ├─ no repeat helps ──── failure into progress, undo steps ── finish: failed
 *     │                 ├─ a person must look, or no repeat helps what cannot fail ─ needs_attention
 *     │                 ├─ negation asked ───── finish: cancelled; the negation removes what is there
 *     │                 └─ a person asked ───── undo steps ── finish: cancelled, and the resource as after a failure
 *     └─ nothing: not due, not its turn, held by another
 */
export class Runner {
  private readonly fenced: FencedWrites;

  /** @param cap how many operations of one tenant may be under way at one backend in one class */
  constructor(
    private readonly database: Database,
    private readonly handlers: HandlerRegistry,
    private readonly leases: LeaseKeeper,
    private readonly circuits: Circuits,
    doorbell: Doorbell,
    cap: number,
  ) {
    this.fenced = new FencedWrites(database, doorbell, cap);
  }

  /** Never throws: what goes wrong is written down, or found by the reconciler after the lease. */
  async run(operationId: string): Promise<void> {
    try {
      const lease = await this.leases.claim(operationId);
      if (!lease) return;
      const { operation } = lease;
      const inflight = { kind: operation.kind };
      operationsInflight.inc(inflight);
      try {
        await withLogContext({ operationId, tenantId: operation.tenantId }, () =>
          inSpan(
            `run ${operation.kind}`,
            () => attemptSpan(operation),
            error => (error instanceof LeaseLost || isFenceLost(error) ? 'lease_lost' : 'left'),
            async span => {
              const outcome = await this.attempt(lease);
              span?.attribute('trivet.outcome', outcome);
            },
          ),
        );
      } finally {
        operationsInflight.dec(inflight);
        this.leases.release(lease);
      }
    } catch (error) {
      if (error instanceof LeaseLost || isFenceLost(error)) {
        leaseLostTotal.inc();
        log.warn({ operationId }, 'lease lost; another worker goes on');
      } else log.warn({ operationId, err: error }, 'attempt left without an end; it is taken up again after its lease');
    }
  }

  /** Gives how the attempt ended. */
  private async attempt(lease: Lease): Promise<string> {
    const { operation } = lease;
    await failpoint(`${operation.kind}:claimed`);
    const handler = this.handlers.get(operation.kind);
    const attempt = new Attempt(lease, handler);
    try {
      if (!handler) throw new StorageError('internal', `this worker does not know ${operation.kind}`);
      if (operation.crashes >= CRASH_LIMIT)
        throw new StorageError('internal', `${operation.crashes} workers died while they ran it`, { retry: 'person' });
      try {
        return await this.perform(attempt, handler);
      } catch (error) {
        const by = error instanceof Cancelled && handler.undo && (await this.stoppedBy(operation));
        if (!by) throw error;
        return await this.takeBack(attempt, handler, by);
      }
    } catch (error) {
      if (error instanceof LeaseLost || isFenceLost(error) || lease.signal.aborted) throw lease.lose();
      if (error instanceof Cancelled) return this.finish(attempt, 'cancelled');
      return this.giveUpOrRetry(attempt, error);
    }
  }

  private async perform(attempt: Attempt, handler: Handler): Promise<string> {
    const failure = failureOf(attempt.operation);
    if (!failure) {
      try {
        await this.begin(attempt, handler);
        for (const step of handler.steps) await this.step(attempt, step);
      } catch (error) {
        if (!isStorageError(error) || error.retry !== 'never' || !handler.fail) throw error;
        attempt.operation.progress.failure = { ...error.toJSON() };
        await this.begin(attempt, handler);
        return this.undo(attempt, handler, error);
      }
      return this.finish(attempt, 'succeeded');
    }
    await this.begin(attempt, handler);
    return this.undo(attempt, handler, StorageError.fromJSON(failure));
  }

  private async undo(attempt: Attempt, handler: Handler, error: StorageError): Promise<string> {
    for (const step of handler.undo ?? []) await this.step(attempt, step);
    return this.finish(attempt, 'failed', error);
  }

  /** The person who asked it to stop. A negation removes itself what is there; a person leaves that to the operation. */
  private async stoppedBy({ id }: LeasedOperation): Promise<string | undefined> {
    const [row] = await this.database.engine<{ by: string | null }>(STOPPED_BY, [id]);
    return row?.by ?? undefined;
  }

  private async takeBack(attempt: Attempt, handler: Handler, by: string): Promise<string> {
    const { lease, operation } = attempt;
    lease.undo();
    const error =
      failureOf(operation) ?? new StorageError('aborted', `cancelled by ${by}`, { retry: 'never' }).toJSON();
    operation.progress.failure = { ...error };
    await this.begin(attempt, handler);
    for (const step of handler.undo ?? []) await this.step(attempt, step);
    return this.finish(attempt, 'cancelled', StorageError.fromJSON(error));
  }

  private async begin(attempt: Attempt, handler: Handler): Promise<void> {
    if (attempt.lease.cancelled) throw new Cancelled();
    const undoing = attempt.operation.progress.failure !== undefined;
    if (!handler.begin && !undoing) return;
    await this.point(attempt, undoing ? 'undo' : 'begin', [], async tx => {
      attempt.work = await handler.begin?.(tx, attempt.operation);
    });
  }

  private async step(attempt: Attempt, step: Step): Promise<void> {
    const { lease, operation } = attempt;
    const { point } = step;
    if (point)
      await this.point(
        attempt,
        step.name,
        collect(writer => point(writer, operation, attempt.work)),
      );
    else if (lease.cancelled) throw new Cancelled();
    attempt.step = step.name;
    const context = new LeasedContext(lease, this.leases, this.circuits, attempt.writes);
    await failpoint(`${operation.kind}:${step.name}:before`);
    while ((await step.run(attempt.work, context)) === 'again') {
      await failpoint(`${operation.kind}:${step.name}:again`);
      await this.point(attempt, step.name);
    }
    await failpoint(`${operation.kind}:${step.name}:after`);
  }

  /** A fenced commit: the place from where a successor knows what happened before. */
  private async point(
    attempt: Attempt,
    step: string,
    writes: readonly Write[] = [],
    read?: (tx: Tx) => Promise<void>,
  ): Promise<void> {
    const { operation } = attempt;
    const point = { operation, writes: [...attempt.taken(), ...writes], step };
    const cancelled = await attempt.committing(this.fenced.point(point, read));
    await failpoint(`${operation.kind}:${step}:point`);
    if (cancelled && !attempt.lease.undoing) throw new Cancelled();
  }

  private async finish(
    attempt: Attempt,
    state: 'succeeded' | 'failed' | 'cancelled',
    error?: StorageError,
  ): Promise<string> {
    const { lease, operation, handler } = attempt;
    await failpoint(`${operation.kind}:end:before`);
    this.leases.release(lease);
    let result: Json | undefined;
    const writes = collect(writer => {
      if (state === 'succeeded') result = handler?.succeed(writer, operation, attempt.work);
      if (state !== 'succeeded' && error) handler?.fail?.(writer, operation, attempt.work);
    });
    const ended = await attempt.committing(
      this.fenced.finish({ operation, writes: [...attempt.taken(), ...writes], state, result, error }),
    );
    await failpoint(`${operation.kind}:end:after`);
    operationsTotal.inc({ kind: operation.kind, result: ended });
    operationDuration.observe({ kind: operation.kind }, (Date.now() - operation.createdAt.getTime()) / 1_000);
    if (state === 'failed')
      log.info({ kind: operation.kind, resource: operation.resourceName, err: error?.toJSON() }, 'operation failed');
    return ended;
  }

  private async giveUpOrRetry(attempt: Attempt, cause: unknown): Promise<string> {
    const { lease, operation } = attempt;
    const error = isStorageError(cause)
      ? cause
      : new StorageError('internal', `a defect in ${operation.kind}; quote operation ${operation.id}`, { cause });
    if (!isStorageError(cause))
      log.error({ kind: operation.kind, step: attempt.step, err: cause }, 'defect in a handler');
    // An error that would fail the operation comes here from undo, or from a handler that cannot fail.
    const park = error.retry !== 'later' || (error.kind === 'internal' && operation.attempt >= DEFECT_LIMIT);
    const busyMs = error.kind === 'timeout' ? attempt.lease.horizonLeftMs() : 0;
    this.leases.release(lease);
    const state = await this.fenced.retry(operation, {
      writes: attempt.taken(),
      progress: attempt.untold ? undefined : operation.progress,
      error,
      delayMs: backoffMs(operation.attempt),
      busyMs: Math.ceil(busyMs),
      step: attempt.step,
      park,
    });
    const parked = state === 'needs_attention';
    await failpoint(`${operation.kind}:retry:after`);
    if (parked) {
      operationsTotal.inc({ kind: operation.kind, result: 'needs_attention' });
      log.error(
        { kind: operation.kind, resource: operation.resourceName, err: error.toJSON() },
        'operation waits for an operator',
      );
    }
    return parked ? state : `retry: ${error.kind}`;
  }
}

/** One a claim: a crash leaves no span, and its successor's belongs to the same trace. */
const attemptSpan = (operation: LeasedOperation): SpanOptions => ({
  kind: 'consumer',
  parent: operation.traceparent,
  links: operation.traceparent === null ? [] : [operation.traceparent],
  attributes: {
    'trivet.operation.id': operation.id,
    'trivet.operation.kind': operation.kind,
    'trivet.operation.attempt': operation.attempt,
    'trivet.resource.id': operation.resourceId,
    'trivet.backend.id': operation.backendId,
    'trivet.tenant.id': operation.tenantId,
  },
});

class Attempt {
  work: unknown;
  step: string | undefined;
  /** What steps wrote since the last recovery point: it goes with the progress that tells of it. */
  readonly writes: Write[] = [];
  /** A commit failed, and with it went writes that the progress tells of: what counts is the progress in the database. */
  untold = false;

  constructor(
    readonly lease: Lease,
    readonly handler: Handler | undefined,
  ) {}

  async committing<T>(commit: Promise<T>): Promise<T> {
    this.untold = true;
    const result = await commit;
    this.untold = false;
    return result;
  }

  get operation(): LeasedOperation {
    return this.lease.operation;
  }

  taken(): Write[] {
    return this.writes.splice(0);
  }
}

function collect(write: (writer: Writer) => void): Write[] {
  const writes: Write[] = [];
  write({ write: (statement, params) => writes.push([statement, params]) });
  return writes;
}
