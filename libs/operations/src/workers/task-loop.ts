import { lateAfterMs, type PeriodicTask, RUN_MS, type TaskState } from '#operations/periodic/periodic-task';
import type { TaskClaims } from '#operations/workers/task-claims';
import { isStorageError, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { taskDuration, taskLastSuccess } from '#platform/metrics/worker-metrics';

const log = createLogger('periodic');

/** A failed one comes again after it, or after the least pause if that is longer. */
const AGAIN_MS = 1_000;
/** Whoever holds the task may die. */
const HELD_MS = 5_000;
/** Pauses are that much shorter at most, so that several workers do not ask at the same moment. */
const JITTER = 0.25;
/** Done within this share of its time by another worker, a task is put off; below every pause of one worker alone. */
const RECENT = 0.7;

/** One task of this process: its timer, its bound, its errors. */
export class TaskLoop {
  /** The first run has ended, or there will be none. */
  readonly first: Promise<void>;
  private readonly firstEnded: () => void;
  private isStopping = false;
  private current: AbortController | undefined;
  private readonly everyMs: number;
  private readonly againMs: number;
  private ended: Promise<void> | undefined;
  private wake = () => {};
  /** Not to be put off because another worker has just done it. */
  private eager = true;
  private lastSuccess = performance.now();
  private succeeded = false;
  private durationMs: number | null = null;
  private error: string | null = null;
  private logged: string | undefined;

  /** @param claims of a task of the whole appliance */
  constructor(
    private readonly task: PeriodicTask,
    leastMs: number,
    private readonly claims: TaskClaims | undefined,
  ) {
    this.everyMs = Math.max(task.everyMs, leastMs);
    this.againMs = Math.min(this.everyMs, Math.max(leastMs, AGAIN_MS));
    ({ promise: this.first, resolve: this.firstEnded } = Promise.withResolvers<void>());
  }

  start(after: Promise<void> | undefined): void {
    this.lastSuccess = performance.now();
    this.ended = this.live(after);
  }

  /** Aborts what runs; resolves when it has ended. */
  async stop(): Promise<void> {
    this.isStopping = true;
    this.current?.abort();
    this.wake();
    await this.ended;
  }

  get state(): TaskState {
    const { task, succeeded, durationMs, error } = this;
    const silentMs = Math.round(performance.now() - this.lastSuccess);
    const late = lateAfterMs(task, this.everyMs);
    return { name: task.name, silentMs, hasSucceeded: succeeded, durationMs, error, lateAfterMs: late };
  }

  private async live(after: Promise<void> | undefined): Promise<void> {
    if (after) await Promise.race([after, this.stopped()]);
    if (this.task.waitsFirst) await this.pause(this.everyMs);
    while (!this.isStopping) {
      const ms = await this.turn();
      this.firstEnded();
      await this.pause(ms);
    }
    this.firstEnded();
  }

  private stopped(): Promise<void> {
    return new Promise(resolve => {
      this.wake = resolve;
    });
  }

  private async pause(ms: number): Promise<void> {
    if (this.isStopping) return;
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms * (1 - JITTER * Math.random()));
      timer.unref();
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** One run, if it is ours. Gives how long to wait for the next. */
  private async turn(): Promise<number> {
    const { task, everyMs, againMs, claims } = this;
    try {
      const claim = await claims?.claim(task.name, this.eager ? 0 : everyMs * RECENT, this.state.lateAfterMs);
      if (claim === 'held') return Math.min(everyMs, HELD_MS);
      if (claim === 'recent') return everyMs;
    } catch (error) {
      this.failed(error);
      return againMs;
    }
    const outcome = await this.run();
    this.eager = outcome !== 'done';
    return this.eager ? againMs : everyMs;
  }

  private async run(): Promise<'done' | 'more' | 'failed'> {
    const { task } = this;
    const boundMs = task.boundMs ?? RUN_MS;
    const current = new AbortController();
    this.current = current;
    const began = performance.now();
    // It may have been stopped while it asked whether the task is its own.
    const run = (async () => (this.isStopping ? undefined : task.run(current.signal)))();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new StorageError('timeout', `a run did not end within ${boundMs / 1000} s`));
        current.abort();
      }, boundMs);
    });
    let outcome: 'done' | 'more' | 'failed';
    try {
      outcome = (await Promise.race([run, late])) ?? 'done';
      if (!this.isStopping) this.succeed(performance.now() - began);
    } catch (error) {
      outcome = 'failed';
      if (!this.isStopping) this.failed(error);
    } finally {
      clearTimeout(timer);
    }
    const succeeded = outcome !== 'failed' && !this.isStopping;
    try {
      await this.claims?.end(task.name, succeeded ? this.durationMs : null, this.error);
    } catch (error) {
      this.failed(error);
    }
    // One that does not listen is not begun beside itself.
    if (outcome === 'failed') await run.catch(() => {});
    taskDuration.observe({ task: task.name }, (performance.now() - began) / 1000);
    return outcome;
  }

  private succeed(ms: number): void {
    this.lastSuccess = performance.now();
    this.succeeded = true;
    this.durationMs = Math.round(ms);
    taskLastSuccess.set({ task: this.task.name }, Date.now() / 1000);
    if (this.logged !== undefined) log.info({ task: this.task.name }, 'it works again');
    this.error = null;
    this.logged = undefined;
  }

  /** Logged once, until it is another error. */
  private failed(error: unknown): void {
    this.error = reasonOf(error);
    const said = String(error);
    if (said === this.logged || this.isStopping) return;
    this.logged = said;
    const err = isStorageError(error) ? error.toJSON() : error;
    log.warn({ task: this.task.name, err }, 'a periodic task failed; it is tried again');
  }
}

function reasonOf(error: unknown): string {
  if (isStorageError(error)) return error.message;
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? `error ${code}` : 'a defect';
}
