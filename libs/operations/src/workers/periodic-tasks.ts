import type { PeriodicTask, TaskState } from '#operations/periodic/periodic-task';
import { TaskClaims, type TaskHost } from '#operations/workers/task-claims';
import { TaskLoop } from '#operations/workers/task-loop';
import type { Database } from '#platform/database/database';

export interface PeriodicOptions {
  database: Pick<Database, 'engine'>;
  workerId: string;
  /** No task comes more often. */
  leastMs: number;
  host?: TaskHost;
  /** Resolves when the worker is in the list of workers. */
  registered(): Promise<void>;
}

/** Runs periodic tasks, each by its own timer: none waits for another, but for the first run of the one it comes `after`. */
export class PeriodicTasks {
  private readonly loops: ReadonlyMap<string, TaskLoop>;

  constructor(
    private readonly tasks: readonly PeriodicTask[],
    { database, workerId, leastMs, registered, host }: PeriodicOptions,
  ) {
    const shared = tasks.filter(({ scope }) => scope === 'appliance');
    const [names, ofHost] = [shared, shared.filter(task => task.ofHost)].map(some => some.map(({ name }) => name));
    const claims = new TaskClaims(database, workerId, registered, names!, ofHost, host);
    this.loops = new Map(
      tasks.map(task => [task.name, new TaskLoop(task, leastMs, task.scope === 'appliance' ? claims : undefined)]),
    );
    if (this.loops.size < tasks.length) throw new Error('two periodic tasks have one name');
    const atOnce = new Set(tasks.filter(({ after }) => after === undefined).map(({ name }) => name));
    for (const { name, after } of tasks)
      if (after !== undefined && !atOnce.has(after))
        throw new Error(`the periodic task ${name} comes after ${after}, which is no task that begins at once`);
  }

  start(): void {
    for (const { name, after } of this.tasks)
      this.loops.get(name)!.start(after === undefined ? undefined : this.first(after));
  }

  /** Aborts what runs; resolves when all of it has ended. Nothing begins any more. */
  async stop(): Promise<void> {
    await Promise.all([...this.loops.values()].map(loop => loop.stop()));
  }

  /** There is something for it to do; unknown names are those of another release. */
  wake(name: string): void {
    this.loops.get(name)?.wake();
  }

  /** Its first run in this process has ended, however. */
  first(name: string): Promise<void> {
    return this.loops.get(name)!.first;
  }

  /** @param patienceMs true in any case so long after the start */
  hasSucceeded(name: string, patienceMs = Number.POSITIVE_INFINITY): boolean {
    const { hasSucceeded, silentMs } = this.loops.get(name)!.state;
    return hasSucceeded || silentMs > patienceMs;
  }

  /** Of the tasks that each worker does by itself; those of the whole appliance are in its table. */
  states(): TaskState[] {
    return this.tasks.filter(({ scope }) => scope === 'worker').map(({ name }) => this.loops.get(name)!.state);
  }
}
