import type { PeriodicTask, TaskState } from '#operations/periodic/periodic-task';
import { TaskLoop } from '#operations/workers/task-loop';
import type { ToldChanges } from '#platform/database/told-changes';
import type { Shutdown } from '#platform/process/shutdown';

/** What people change is told; who was not told, though the connection is there, looks so much later. */
export const DOORS_CALM = 5;
/** What one run may take, in which a door may wait for calls that are under way. */
const BOUND_MS = 30_000;
/** For a run that the stop finds under way. */
const STOP_MS = 2_000;

/** What this gateway does again and again, from the moment when its door is there until the stop comes to that door. */
export class GatewayTasks {
  private readonly loops = new Map<string, TaskLoop>();

  /** @param told wakes those that can be calm */
  constructor(
    private readonly shutdown: Pick<Shutdown, 'add'>,
    private readonly told?: Pick<ToldChanges, 'on' | 'isConnected'>,
  ) {}

  begin(task: Omit<PeriodicTask, 'scope' | 'after'>): void {
    const { name } = task;
    if (this.loops.has(name)) throw new Error(`two periodic tasks are named ${name}`);
    const run = async (signal: AbortSignal) => {
      // What changed before it listened is seen by this run.
      const isTold = this.told?.isConnected ?? false;
      const outcome = await task.run(signal);
      return outcome === 'calm' && !isTold ? undefined : (outcome ?? undefined);
    };
    const loop = new TaskLoop({ boundMs: BOUND_MS, ...task, run, scope: 'gateway' }, 0, undefined);
    if (task.calm !== undefined) this.told?.on('doors', () => loop.wake());
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
