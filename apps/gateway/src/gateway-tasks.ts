import type { PeriodicTask, TaskState } from '#operations/periodic/periodic-task';
import { TaskLoop } from '#operations/workers/task-loop';
import type { Shutdown } from '#platform/process/shutdown';

/** What one run may take, in which a door may wait for calls that are under way. */
const BOUND_MS = 30_000;
/** For a run that the stop finds under way. */
const STOP_MS = 2_000;

/** What this gateway does again and again, from the moment when its door is there until the stop comes to that door. */
export class GatewayTasks {
  private readonly loops = new Map<string, TaskLoop>();

  constructor(private readonly shutdown: Pick<Shutdown, 'add'>) {}

  begin(task: Omit<PeriodicTask, 'scope' | 'after'>): void {
    const { name } = task;
    if (this.loops.has(name)) throw new Error(`two periodic tasks are named ${name}`);
    const loop = new TaskLoop({ boundMs: BOUND_MS, ...task, scope: 'gateway' }, 0, undefined);
    this.loops.set(name, loop);
    loop.start(undefined);
    this.shutdown.add(`task ${name}`, () => loop.stop(), STOP_MS);
  }

  /** Its first run has ended, however. */
  first(name: string): Promise<void> {
    return this.loops.get(name)!.first;
  }

  states(): TaskState[] {
    return [...this.loops.values()].map(loop => loop.state);
  }
}
