import type { Json, OperationState, Outcome } from '#operations/operation';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError, type StoredError, silentPoolOf } from '#platform/errors';

const READ_OUTCOMES = sql(
  'read_outcomes',
  'SELECT id, state, error, result, next_run_at > now() AS "inFuture", circuit FROM trivet.read_outcomes($1, $2)',
);
/** Of one that has ended, or may not go on soon: look. */
const DONE = 'trivet_done';
/** Of those that have succeeded without a result, separated by commas: that is their outcome. */
const SUCCEEDED = 'trivet_succeeded';
/** Behind LISTEN: a notification that was lost costs this much. */
const POLL_MS = 1_000;

interface Row {
  id: string;
  state: OperationState;
  error: StoredError | null;
  result: Json;
  inFuture: boolean;
  /** Why the backend's circuit is open; null when it is not. */
  circuit: string | null;
}

interface Waiting {
  tenantId: string;
  settle: Set<(outcome: Outcome) => void>;
}

/**
 * Waits for the ends of operations: one LISTEN connection a process, one read for all that it announces, and a poll
 * behind it. A waiter that leaves changes nothing for the work.
 */
export class OperationWaiter {
  private readonly waiting = new Map<string, Waiting>();
  private readonly announced = new Set<string>();
  private reading = false;
  private readonly listener;
  private readonly poll: NodeJS.Timeout;

  /** @param onConnect after each connection that listens, the first as well */
  constructor(
    private readonly database: Database,
    onConnect: () => void = () => {},
  ) {
    this.listener = database.listen(
      [DONE, SUCCEEDED],
      (channel, told) => {
        if (channel === DONE) this.announce([told]);
        else for (const id of told.split(',')) this.settle(id, { state: 'succeeded', result: null });
      },
      () => {
        this.announce(this.waiting.keys());
        onConnect();
      },
    );
    this.poll = setInterval(() => this.announce(this.waiting.keys()), POLL_MS);
    this.poll.unref();
  }

  /**
   * Call it before the commit that accepts, or follow it by `check`: then no end is missed.
   * @param until milliseconds since the epoch
   */
  wait(tenantId: string, operationId: string, until: number, signal?: AbortSignal): Promise<Outcome> {
    return new Promise(resolve => {
      let entry = this.waiting.get(operationId);
      if (!entry) {
        entry = { tenantId, settle: new Set() };
        this.waiting.set(operationId, entry);
      }
      const { settle } = entry;
      const done = (outcome: Outcome) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', leave);
        settle.delete(done);
        if (settle.size === 0) this.waiting.delete(operationId);
        resolve(outcome);
      };
      const leave = () => done({ state: 'unfinished' });
      const timer = setTimeout(leave, Math.max(0, until - Date.now()));
      settle.add(done);
      if (signal?.aborted) leave();
      else signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** Operations that somebody here waits for. */
  get size(): number {
    return this.waiting.size;
  }

  /** For who joins an operation that may have ended already. */
  check(operationId: string): void {
    this.announce([operationId]);
  }

  /** Answers everybody who still waits: the process stops, the work goes on. */
  async close(): Promise<void> {
    clearInterval(this.poll);
    for (const operationId of [...this.waiting.keys()]) this.leave(operationId);
    await this.listener.stop();
  }

  /** Nothing came of it: who waits for it is answered. */
  leave(operationId: string): void {
    this.settle(operationId, { state: 'unfinished' });
  }

  private settle(operationId: string, outcome: Outcome): void {
    for (const settle of [...(this.waiting.get(operationId)?.settle ?? [])]) settle(outcome);
  }

  private announce(ids: Iterable<string>): void {
    for (const id of ids) if (this.waiting.has(id)) this.announced.add(id);
    if (this.reading || this.announced.size === 0) return;
    this.reading = true;
    // After this turn of the event loop: what ended in one transaction is announced in one packet, one by one.
    setImmediate(() => void this.read());
  }

  /** One statement per tenant for all that was announced meanwhile. */
  private async read(): Promise<void> {
    try {
      while (this.announced.size > 0) {
        const byTenant = new Map<string, string[]>();
        for (const id of this.announced) {
          const entry = this.waiting.get(id);
          if (entry) byTenant.set(entry.tenantId, [...(byTenant.get(entry.tenantId) ?? []), id]);
        }
        this.announced.clear();
        for (const [tenantId, ids] of byTenant)
          for (const row of await this.database.call<Row>(READ_OUTCOMES, [tenantId, ids])) this.tell(row);
      }
    } catch {
      // The database is away: the poll asks again, and the callers' deadlines hold.
    } finally {
      this.reading = false;
    }
  }

  private tell(row: Row): void {
    const outcome = outcomeOf(row);
    if (outcome) this.settle(row.id, outcome);
  }
}

function outcomeOf(row: Row): Outcome | undefined {
  switch (row.state) {
    case 'succeeded':
      return { state: 'succeeded', result: row.result };
    case 'failed':
    case 'needs_attention':
      return { state: row.state, error: row.error! };
    case 'cancelled':
      return { state: 'cancelled' };
    case 'pending':
      if (row.circuit !== null) return retrying(row.circuit);
      // `aborted` is only a place further back in the line.
      return row.error && row.error.kind !== 'aborted' && (row.inFuture || silentPoolOf(row.error) !== undefined)
        ? { state: 'retrying', error: row.error }
        : undefined;
    case 'running':
      // Whoever ran it may be dead: nobody takes it up before the backend answers.
      return row.circuit === null ? undefined : retrying(row.circuit);
  }
}

/** Behind an open circuit. */
export const retrying = (reason: string): Outcome => ({
  state: 'retrying',
  error: new StorageError('unavailable', reason).toJSON(),
});
