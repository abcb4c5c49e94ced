import type { AdminHouse } from '#test/admin/admin-house';
import { median } from '#test/bench/measure';
import { callsOfDrivers, pagesOfAdministrators } from '#test/bench/scale/calls';
import { BACKLOG, dropBacklog, fillBacklog, looksOfTheEngine } from '#test/bench/scale/engine-looks';
import type { ScaleFill } from '#test/bench/scale/fill';
import type { Measured } from '#test/bench/scale/measured';
import { roundsOfTasks } from '#test/bench/scale/rounds';
import { pagesOf, type StatementPlans } from '#test/support/statement-plans';

/** Of one kind, however many runs that makes. */
const BUDGET_MS = 6_000;

/** What one run cost, in whatever unit. */
export type Measure = (measured: Measured) => Promise<number>;

/** Everything that is measured, in the order of the table. */
export async function measureAll(house: AdminHouse, fill: ScaleFill, measure: Measure): Promise<Map<string, number>> {
  const figures = new Map<string, number>();
  const take = async (list: readonly Measured[], suffix = '') => {
    for (const measured of list) figures.set(`${measured.name}${suffix}`, await measure(measured));
  };
  await take(await callsOfDrivers(house));
  await fill.settle();
  await take(looksOfTheEngine(house));
  await take(roundsOfTasks(house));
  await fill.settle();
  await take(pagesOfAdministrators(house));
  await fillBacklog(house);
  await take(looksOfTheEngine(house), `, ${BACKLOG.toLocaleString('en')} wait`);
  await dropBacklog(house);
  return figures;
}

/** Pages of the database, of a run after one that fills caches; of two, since what others do meanwhile is heard with it. */
export const inPages =
  (plans: StatementPlans): Measure =>
  async ({ before, run }) => {
    await before?.();
    await run();
    const looks: number[] = [];
    for (let n = 0; n < 2; n++) {
      await before?.();
      looks.push(pagesOf(await plans.during(run)));
    }
    return Math.min(...looks);
  };

/** Milliseconds, the median of several runs after one that fills caches. */
export const inTime =
  (runs: number): Measure =>
  async ({ before, run }) => {
    const taken: number[] = [];
    const begin = performance.now();
    for (let n = 0; n <= runs; n++) {
      await before?.();
      const at = performance.now();
      await run();
      // A single one that is over the budget tells enough.
      if (n > 0 || performance.now() - begin > BUDGET_MS) taken.push(performance.now() - at);
      if (performance.now() - begin > BUDGET_MS) break;
    }
    return median(taken);
  };
