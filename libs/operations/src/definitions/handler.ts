import type { Json, JsonObject, LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database/database';
import type { Statement } from '#platform/database/sql';
import type { StoredError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/**
 * How one kind of operation is done. A handler always runs from its first step: after a crash nobody knows what the
 * backend saw, so the first step probes, every call is find-or-create, and what must not be repeated blindly says so in
 * `progress`, which is committed at the recovery points.
 */
export interface Handling<Work = unknown, Request extends object = object> {
  /**
   * Reads (and marks) what the steps need, in one fenced transaction that is a recovery point too. Runs again before
   * `undo`, with `progress.failure` set. Leave it out when the request says everything.
   */
  begin?(tx: Tx, operation: LeasedOperation<Request>): Promise<Work>;
  readonly steps: readonly Step<Work, Request>[];
  /** After an error that no repeat can mend: removes what the steps left. */
  readonly undo?: readonly Step<Work, Request>[];
  /** In the transaction that ends the operation; gives its result. */
  succeed(writer: Writer, operation: LeasedOperation<Request>, work: Work): Json | undefined;
  /**
   * In the transaction that ends it as failed, after `undo`: the resource as if the call had never come. Without it the
   * operation cannot fail for good: what takes something away must not be forgotten half-way, so what no repeat can mend
   * waits for a person.
   */
  fail?(writer: Writer, operation: LeasedOperation<Request>, work: Work): void;
  /** For a person who ends it although it is not done. Without it, or without its `write`, what `fail` does. */
  readonly giveUp?: GiveUp<Request>;
}

/** The same, of a kind that is named. */
export interface Handler extends Handling {
  readonly kind: string;
}

/** The resource in a state from which the same call can be made again, without asking the backend. */
export interface GiveUp<Request extends object = object> {
  /** What becomes of the resource, and what may be left at the backend; a sentence for people. */
  readonly leaves: string;
  write?(writer: Writer, operation: LeasedOperation<Request>): void;
}

/** Takes statements that go out together with the fenced one and the commit: nobody sees their results. */
export interface Writer {
  write(statement: Statement, params: readonly unknown[]): void;
}

export interface Step<Work = unknown, Request extends object = object> {
  readonly name: string;
  /** Backend methods that it calls: each has failpoints around it, which crash tests enumerate. */
  readonly calls?: readonly string[];
  /** It may answer `again`. */
  readonly portioned?: true;
  /** It may answer that it waits for others. */
  readonly waits?: true;
  /** It does something only at backends with this trait: crash tests of others do not pass its calls. */
  readonly where?: string;
  /**
   * A recovery point before the step, because it makes a call that is not a naturally repeatable PUT. What the function
   * writes belongs to the same transaction.
   */
  readonly point?: (writer: Writer, operation: LeasedOperation<Request>, work: Work) => void;
  /**
   * `again`: commit the progress and run this step once more (bounded portions of an unbounded job). Later: what it waits for
   * is done by others, so it gives its worker and its slots back, and begins anew after so long.
   */
  run(work: Work, context: StepContext<Request>): Promise<undefined | 'again' | Later>;
}

export interface Later {
  laterMs: number;
  /** Something was done since it last waited: crashes are counted anew. */
  moved: boolean;
}

export interface StepContext<Request extends object = object> extends Writer {
  readonly operation: LeasedOperation<Request>;
  /** Committed at the next recovery point, retry or end; what the step writes goes in the same transaction. */
  readonly progress: JsonObject;
  /**
   * One bounded backend call. It starts only if its bound fits into the remaining lease; without an answer within it the
   * effect is unknown, and the resource stays busy until the call's horizon has passed. The signal knows the lease: adapters
   * ask it before each request that changes something.
   */
  call<T>(method: string, run: (signal: LeaseSignal) => Promise<T>, options?: CallOptions): Promise<T>;
  /**
   * One call without a bound: a clone, a copy, the removal of a large image. The lease is renewed while it runs; a lost
   * lease and a negation end it. It may touch only what carries this operation and fence, or what its repeat by a
   * successor does too: a worker that was stopped past its lease finishes the call that it is in (invariant E5).
   */
  long<T>(method: string, run: (signal: LeaseSignal) => Promise<T>): Promise<T>;
}

export interface CallOptions {
  /** At most a third of the lease. */
  boundMs?: number;
  /** Until when an unanswered call may still take effect at the backend, from its start. At most 0.6 of the lease. */
  horizonMs?: number;
}

/** What undo acts upon; kept in progress so that a crash between failure and undo is no matter. */
export const failureOf = ({ progress }: Pick<LeasedOperation, 'progress'>): StoredError | undefined =>
  progress.failure as unknown as StoredError | undefined;

/** Total over kinds: two handlers of one name are a mistake that shows at start. */
export class HandlerRegistry {
  private readonly handlers = new Map<string, Handler>();

  constructor(handlers: readonly Handler[]) {
    for (const handler of handlers) {
      if (this.handlers.has(handler.kind)) throw new Error(`two handlers for ${handler.kind}`);
      this.handlers.set(handler.kind, handler);
    }
  }

  get(kind: string): Handler | undefined {
    return this.handlers.get(kind);
  }

  all(): readonly Handler[] {
    return [...this.handlers.values()];
  }
}
