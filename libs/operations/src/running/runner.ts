import {
  failureOf,
  type Handler,
  type HandlerRegistry,
  type Later,
  type Step,
  type Writer,
} from '#operations/definitions/handler';
import { FencedWrites } from '#operations/leases/fenced-writes';
import { Cancelled, type Lease, LeaseLost, type LeaseManager } from '#operations/leases/lease';
import type { Json, LeasedOperation } from '#operations/operation';
import type { Doorbell } from '#operations/queue/doorbell';
import { backoffMs } from '#operations/running/backoff';
import type { Circuits } from '#operations/running/circuit';
import { LeasedContext } from '#operations/running/step-context';
import { type Database, isFenceLost, type Tx, type Write } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { HostFenceOvertaken, isStorageError, StorageError } from '#platform/errors';
import { createLogger, withLogContext } from '#platform/logging/log';
import { leaseLostTotal, operationDuration, operationsInflight, operationsTotal } from '#platform/metrics/metrics';
import { failpoint } from '#platform/process/failpoint';
import type { SpanOptions } from '#platform/tracing/tracer';
import { inSpan } from '#platform/tracing/tracing';

const log = createLogger('operation');

/** A worker that dies this often on one operation dies because of it. */
const CRASH_LIMIT = 10;
/** So often in a row without progress, a lease is lost because of what it is for: a call that outlasts it, for one. */
const LOSS_LIMIT = 100;
/** A defect of ours does not mend itself; more repeats only hide it. */
const DEFECT_LIMIT = 10;
/** Attempts that later.sql leaves to one which waited: those were looks, and no repeats. */
const LOOKS = 10;

/** The last workers that it lost and that never said that they live, $2 at most. */
const LOST = sql(
  'operation_lost',
  `SELECT e.detail ->> 'lostBy' AS worker, e.detail ->> 'lostAt' AS step
     FROM trivet.operation_event e
    WHERE e.operation_id = $1 AND e.type = 'attempt' AND e.detail ? 'lostBy'
      AND NOT EXISTS (SELECT FROM trivet.operation_event alive
                       WHERE alive.operation_id = e.operation_id AND alive.type = 'lease_lost'
                         AND (alive.detail ->> 'fence')::bigint + 1 = (e.detail ->> 'fence')::bigint)
    ORDER BY e.seq DESC LIMIT $2`,
);
const NAMED_WORKERS = 3;

const LAST_LOST = sql(
  'lease_last_lost',
  `SELECT e.detail ->> 'worker' AS worker, e.detail ->> 'step' AS step
     FROM trivet.operation_event e
    WHERE e.operation_id = $1 AND e.type = 'lease_lost' ORDER BY e.seq DESC LIMIT 1`,
);

const HOST_FENCE_SEEN = sql('host_fence_seen', 'SELECT trivet.host_fence_seen($1) AS "caughtUp"');

const STOPPED_BY = sql('stopped_by', 'SELECT cancel_by AS by FROM trivet.operation WHERE id = $1');

/**
 * Runs one operation from claim to end. Every write carries the fence, and stands in a transaction that is rolled back
 * when the fence is no longer ours. The life of an attempt:
 *
 *   claim ── begin ── step ── (point) ── step ── ... ── finish: succeeded
 *     │                 ├─ a repeat may help ── retry (pending, next_run_at), slots free
 *     │                 ├─ it waits for others ─ later (the same, without an error)
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
    private readonly leases: LeaseManager,
    private readonly circuits: Circuits,
    doorbell: Doorbell,
    cap: number,
  ) {
    this.fenced = new FencedWrites(database, doorbell, leases.workerId, cap);
  }

  /** Never throws: what goes wrong is written down, or found by the reconciler after the lease. */
  async run(operationId: string): Promise<void> {
    let left: Lease | undefined;
    try {
      const lease = await this.leases.claim(operationId);
      if (!lease) return;
      left = lease;
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
      if (left) void this.leases.leave(left);
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
      if (operation.crashes >= CRASH_LIMIT) throw await this.deadly(operation);
      if (operation.losses >= LOSS_LIMIT) throw await this.endless(operation);
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
      if (error instanceof Waits) return this.later(attempt, error.until);
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

  /** A successor's fence was drawn here; one that never was comes from a newer database than this one (invariant E5). */
  private async catchUp({ by }: HostFenceOvertaken): Promise<void> {
    const [seen] = await this.database.engine<{ caughtUp: boolean }>(HOST_FENCE_SEEN, [by]).catch(() => []);
    if (seen?.caughtUp)
      log.warn({ hostFence: by }, 'the hosts have seen a newer database than this one: fences go on above theirs');
  }

  private async deadly({ id, crashes }: LeasedOperation): Promise<StorageError> {
    const lost = await this.database.engine<{ worker: string; step: string | null }>(LOST, [id, NAMED_WORKERS]);
    const at = lost[0] && `, the last ${where(lost[0].step)}`;
    const who = lost.length > 0 ? `: ${lost.map(({ worker }) => worker).join(', ')}` : '';
    return new StorageError('internal', `${crashes} workers died while they ran it${at ?? ''}${who}`, {
      retry: 'person',
    });
  }

  private async endless({ id, losses }: LeasedOperation): Promise<StorageError> {
    const [last] = await this.database.engine<{ worker: string; step: string | null }>(LAST_LOST, [id]);
    const who = last ? `, each time ${where(last.step)}, the last time by worker ${last.worker}` : '';
    return new StorageError('internal', `its lease was lost ${losses} times in a row without any progress${who}`, {
      retry: 'person',
    });
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
    for (;;) {
      const more = await step.run(attempt.work, context);
      if (more === undefined) break;
      if (more !== 'again') throw new Waits(more);
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
    attempt.lease.signal.throwIfAborted();
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
    lease.signal.throwIfAborted();
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

  private async later(attempt: Attempt, { laterMs, moved }: Later): Promise<string> {
    const { lease, operation } = attempt;
    lease.signal.throwIfAborted();
    this.leases.release(lease);
    await failpoint(`${operation.kind}:later:before`);
    const writes = attempt.taken();
    await attempt.committing(this.fenced.later(operation, { writes, step: attempt.step, delayMs: laterMs, moved }));
    await failpoint(`${operation.kind}:later:after`);
    return 'later';
  }

  private async giveUpOrRetry(attempt: Attempt, cause: unknown): Promise<string> {
    const { lease, operation } = attempt;
    const error = isStorageError(cause)
      ? cause
      : new StorageError('internal', `a defect in ${operation.kind}; quote operation ${operation.id}`, { cause });
    if (!isStorageError(cause))
      log.error({ kind: operation.kind, step: attempt.step, err: cause }, 'defect in a handler');
    // An error that would fail the operation comes here from undo, or from a handler that cannot fail.
    const looks = attempt.handler?.steps.some(({ waits }) => waits) ? LOOKS : 0;
    const park = error.retry !== 'later' || (error.kind === 'internal' && operation.attempt >= looks + DEFECT_LIMIT);
    if (error instanceof HostFenceOvertaken) await this.catchUp(error);
    const busyMs = error.kind === 'timeout' ? attempt.lease.horizonLeftMs() : 0;
    lease.signal.throwIfAborted();
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

const where = (step: string | null): string => (step ? `at or after step ${step}` : 'before its first step');

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

/** Out of the steps: the attempt ends here, and the next one comes later. */
class Waits extends Error {
  constructor(readonly until: Later) {
    super('it waits for others');
  }
}

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
