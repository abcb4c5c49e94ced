import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const WHAT_IS_DUE = sql('what_is_due', 'SELECT trivet.what_is_due() AS tasks');

/**
 * One statement that says for which periodic tasks there is something to do, and wakes those. On an appliance that does
 * nothing it is all that is asked as often as workers look for work; the tasks themselves ask again what they are to do.
 */
export class Lookout implements PeriodicTask {
  readonly name = 'what-is-due';
  readonly everyMs = 0;
  readonly scope = 'worker';
  readonly waitsFirst = true;

  constructor(
    private readonly database: Pick<Database, 'engine'>,
    private readonly wake: (task: string) => void,
  ) {}

  async run(): Promise<void> {
    const [row] = await this.database.engine<{ tasks: string[] }>(WHAT_IS_DUE);
    for (const task of row!.tasks) this.wake(task);
  }
}
