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
  private resume = () => {};
  /** Of a pause: its begin, and its timer, which a call of `wake` sets anew. */
  private paused: { since: number; timer: NodeJS.Timeout } | undefined;
  /** Somebody said that there is something to do, and no run has begun since. */
  private woken = false;
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
    this.resume();
    await this.ended;
  }

  /** There is something to do. It comes no more often than else, but does not wait for longer because nothing was to do before. */
  wake(): void {
    this.woken = true;
    const { paused } = this;
    if (!paused) return;
    clearTimeout(paused.timer);
    const left = Math.max(0, paused.since + jittered(this.everyMs) - performance.now());
    paused.timer = setTimeout(() => this.resume(), left);
    paused.timer.unref();
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
      this.woken = false;
      const ms = await this.turn();
      this.firstEnded();
      await this.pause(ms);
    }
    this.firstEnded();
  }

  private stopped(): Promise<void> {
    return new Promise(resolve => {
      this.resume = resolve;
    });
  }

  private async pause(ms: number): Promise<void> {
    if (this.isStopping) return;
    await new Promise<void>(resolve => {
      const timer = setTimeout(() => this.resume(), jittered(this.woken ? Math.min(ms, this.everyMs) : ms));
      timer.unref();
      this.paused = { since: performance.now(), timer };
      this.resume = () => {
        clearTimeout(this.paused?.timer);
        this.paused = undefined;
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
    this.eager = outcome === 'more' || outcome === 'failed';
    if (this.eager) return againMs;
    return outcome === 'calm' ? everyMs * (task.calm ?? 1) : everyMs;
  }

  private async run(): Promise<'done' | 'more' | 'calm' | 'failed'> {
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
    let outcome: 'done' | 'more' | 'calm' | 'failed';
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

const jittered = (ms: number): number => ms * (1 - JITTER * Math.random());

function reasonOf(error: unknown): string {
  if (isStorageError(error)) return error.message;
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? `error ${code}` : 'a defect';
}
