import type { CallOptions, StepContext } from '#operations/definitions/handler';
import type { Lease, LeaseManager } from '#operations/leases/lease';
import type { JsonObject, LeasedOperation } from '#operations/operation';
import type { Circuits } from '#operations/running/circuit';
import type { Write } from '#platform/database/database';
import type { Statement } from '#platform/database/sql';
import { isStorageError, StorageError, silentPoolOf } from '#platform/errors';
import { type LeaseSignal, leaseSignal } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

/** What a lease that is renewed each third of its time always has left. */
const LONGEST_SHARE = 0.6;
/** How long after its signal an adapter may take to say what happened. */
const DEAF_MS = 250;

/** A call that is still under way is told of after so long, and after ten times as long each time. */
export const SLOW_MS = 60_000;

/** A backend call inside a lease: bounded, fenced by the clock, and remembered when it goes unanswered. */
export class LeasedContext implements StepContext {
  constructor(
    private readonly lease: Lease,
    private readonly leases: LeaseManager,
    private readonly circuits: Circuits,
    private readonly writes: Write[],
  ) {}

  get operation(): LeasedOperation {
    return this.lease.operation;
  }

  get progress(): JsonObject {
    return this.lease.operation.progress;
  }

  readonly write = (statement: Statement, params: readonly unknown[]): void => {
    this.writes.push([statement, params]);
  };

  /** A property, so that steps may take it out of the context. */
  readonly call = async <T>(
    method: string,
    run: (signal: LeaseSignal) => Promise<T>,
    { boundMs = this.leases.ttlMs * 0.3, horizonMs = boundMs * 2 }: CallOptions = {},
  ): Promise<T> => {
    const { tenantId, backendId, kind } = this.operation;
    // Who takes over after a crash must find nothing that is still to come: the lease outlives the horizon.
    const neededMs = Math.min(Math.max(boundMs, horizonMs), this.leases.ttlMs * LONGEST_SHARE);
    await this.leases.ensure(this.lease, neededMs);
    await failpoint(`${kind}:${method}:call`);
    // The check and the call must not be parted: a worker that was stopped in between would call with a lost lease.
    if (this.lease.remainingMs() < neededMs) throw this.lease.lose();
    const bound = new Bound(boundMs, this.lease.signal);
    const until = performance.now() + neededMs;
    this.lease.callStarted(horizonMs);
    try {
      const signal = leaseSignal(bound.signal, () => {
        if (this.lease.remainingMs() <= 0) throw this.lease.lose();
        bound.check();
        return until - performance.now();
      });
      const result = await heeding(signal, run);
      this.lease.callAnswered();
      await failpoint(`${kind}:${method}:answered`);
      this.circuits.answered(tenantId, backendId);
      return result;
    } catch (cause) {
      if (this.lease.signal.aborted) throw this.lease.lose();
      const error =
        bound.passed && !isStorageError(cause)
          ? new StorageError('timeout', `${method}: no answer within ${Math.round(boundMs)} ms`, { cause })
          : cause;
      await this.heard(tenantId, backendId, error);
      throw error;
    } finally {
      bound.end();
    }
  };

  readonly long = async <T>(method: string, run: (signal: LeaseSignal) => Promise<T>): Promise<T> => {
    const { tenantId, backendId, kind } = this.operation;
    const neededMs = this.leases.ttlMs * 0.3;
    await this.leases.ensure(this.lease, neededMs);
    await failpoint(`${kind}:${method}:call`);
    if (this.lease.remainingMs() < neededMs) throw this.lease.lose();
    try {
      const signal = leaseSignal(AbortSignal.any([this.lease.signal, this.lease.cancelSignal]), () => {
        const remainingMs = this.lease.remainingMs();
        if (remainingMs <= 0) throw this.lease.lose();
        return remainingMs;
      });
      const result = await this.watched(method, heeding(signal, run));
      await failpoint(`${kind}:${method}:answered`);
      this.circuits.answered(tenantId, backendId);
      return result;
    } catch (error) {
      if (this.lease.signal.aborted) throw this.lease.lose();
      if (this.lease.cancelled) throw this.lease.cancelSignal.reason;
      await this.heard(tenantId, backendId, error);
      throw error;
    }
  };

  /** It is renewed for as long as it takes: a call that never returns is seen by people, who release the operation. */
  private async watched<T>(method: string, result: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let isTold = false;
    const began = performance.now();
    const tell = (afterMs: number, saidMs = 0) => {
      timer = setTimeout(() => {
        isTold = true;
        this.leases.tellSlow(this.operation, method, afterMs);
        tell(afterMs * 10, afterMs);
      }, afterMs - saidMs);
      timer.unref();
    };
    tell(SLOW_MS);
    return result.finally(() => {
      clearTimeout(timer);
      if (isTold) this.leases.tellSlow(this.operation, method, performance.now() - began, true);
    });
  }

  /** What an error says about the backend's circuit. */
  private async heard(tenantId: string, backendId: string, error: unknown): Promise<void> {
    if (!isStorageError(error)) return;
    // Who knows that a repeat does not help has heard from the backend.
    const unanswered = (error.kind === 'unavailable' || error.kind === 'timeout') && error.retry !== 'never';
    if (unanswered) await this.circuits.unanswered(tenantId, backendId, error.message, silentPoolOf(error));
    else if (error.kind === 'unauthenticated') this.circuits.refused(tenantId, backendId, error.message);
    // Whoever does not let us do something is there, and may be of no use: that is no sign of health. Nor is a busy one.
    else if (error.kind !== 'permission_denied' && error.kind !== 'aborted')
      this.circuits.answered(tenantId, backendId);
  }
}

/** As AbortSignal.any and AbortSignal.timeout, at a tenth of their cost: there is one for each call. */
class Bound {
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private readonly until: number;
  private readonly lost = () => this.controller.abort(this.lease.reason);
  passed = false;

  constructor(
    ms: number,
    private readonly lease: AbortSignal,
  ) {
    this.until = performance.now() + ms;
    this.timer = setTimeout(() => this.pass(), Math.ceil(ms));
    lease.addEventListener('abort', this.lost);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** By the clock: the timer of a process that stood still comes too late. */
  check(): void {
    if (performance.now() > this.until) this.pass();
    this.signal.throwIfAborted();
  }

  private pass(): void {
    this.passed = true;
    this.controller.abort(new DOMException('the call has taken longer than its bound', 'TimeoutError'));
  }

  end(): void {
    clearTimeout(this.timer);
    this.lease.removeEventListener('abort', this.lost);
  }
}

/** Adapters end at the signal and say why. One that does not must not hold its operation, and a worker's place, for ever. */
async function heeding<T>(signal: LeaseSignal, run: (signal: LeaseSignal) => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let give: (() => void) | undefined;
  const deaf = new Promise<never>((_, reject) => {
    give = () => {
      timer = setTimeout(reject, DEAF_MS, signal.reason);
    };
    signal.addEventListener('abort', give, { once: true });
  });
  try {
    return await Promise.race([run(signal), deaf]);
  } finally {
    clearTimeout(timer);
    if (give) signal.removeEventListener('abort', give);
  }
}
