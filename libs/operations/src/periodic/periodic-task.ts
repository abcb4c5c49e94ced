/**
 * worker: each worker process by itself, because it is about that process or its host, or because what it finds is claimed row
 * by row. appliance: one worker at a time, by a row (task-claims.ts). gateway: each gateway process by itself.
 */
export type TaskScope = 'worker' | 'appliance' | 'gateway';

/** What is done without being asked: by workers all in one list, apps/worker/src/periodic-tasks.ts; by a gateway, its doors. */
export interface PeriodicTask {
  /** Of its metrics and of its row; unique over all processes. */
  readonly name: string;
  /**
   * From the end of a run to the begin of the next at most; 0: as often as workers look for work (TRIVET_RECONCILE_MS), which
   * nothing is done more often than.
   */
  readonly everyMs: number;
  readonly scope: TaskScope;
  /** Of the appliance, and about pools: of several hosts each has a worker that does it, for the pools of that host. */
  readonly ofHost?: true;
  /** What a run may take before it is aborted and reported; else RUN_MS. */
  readonly boundMs?: number;
  /**
   * After a run that found nothing (`calm`) the next one comes after so many times everyMs, unless somebody wakes it: then after
   * everyMs, or at once when that is over. Only for what is told of by `wake`, or may be late by as much.
   */
  readonly calm?: number;
  /** The first run comes after everyMs, too, and not at once. */
  readonly waitsFirst?: true;
  /** The first run waits until the first of this task has ended, however it ended. */
  readonly after?: string;
  /**
   * One run, never two of it at a time in a process. `more`: the next one need not wait for everyMs. `calm`: there was nothing to
   * do. A rejection is logged, and the task tried again soon. `signal`: the process stops, or the bound is over.
   */
  run(signal: AbortSignal): Promise<void> | Promise<'more' | 'calm' | undefined>;
}

export const RUN_MS = 300_000;

/** `calm` of those that the lookout of their worker wakes (trivet.what_is_due). */
export const WOKEN = 30;
/** Of those of them that never come as often as workers look for work. */
export const WOKEN_SELDOM = 6;

/** Missed so often it is late. */
const MISSED = 3;

/** Without a success for longer it is late. */
export const lateAfterMs = ({ boundMs = RUN_MS, calm = 1 }: PeriodicTask, everyMs: number): number =>
  MISSED * everyMs * calm + boundMs;

/** How a task does in this process. */
export interface TaskState {
  name: string;
  /** Since its last success; since the process began it, when there was none. */
  silentMs: number;
  hasSucceeded: boolean;
  /** Of its last success. */
  durationMs: number | null;
  /** Of its last run, unless that succeeded. For people: nothing of a driver's own words. */
  error: string | null;
  lateAfterMs: number;
}
