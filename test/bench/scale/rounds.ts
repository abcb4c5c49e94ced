import type { AdminHouse } from '#test/admin/admin-house';
import type { Measured } from '#test/bench/scale/measured';
import { standInStores } from '#test/bench/scale/stand-in-stores';
import { periodicTasks } from '../../../apps/worker/src/periodic-tasks.js';

/** Walks through every image, in portions, for as long as that takes: what a round costs is the stores' figure, not the database's. */
const WALKS = new Set(['block-drift']);
/** Its first round looks at each volume there is: minutes, of which the figure is those until it was ended. */
const BY_VOLUME = new Set(['change-retention']);
const ROUND_MS = 20_000;

/** A round of each periodic task when nothing is due, as it is nearly always. */
export function roundsOfTasks(house: AdminHouse, { quick }: { quick: boolean }): Measured[] {
  const { database, config, snapshotSessions: sessions } = house.parts;
  const secrets = house.appliance.secrets;
  const tasks = periodicTasks({ config, database, secrets, sessions, ...standInStores() });
  return tasks
    .filter(({ name }) => !WALKS.has(name) && !(quick && BY_VOLUME.has(name)))
    .map(task => ({ name: `round of ${task.name}`, run: () => task.run(AbortSignal.timeout(ROUND_MS)) }));
}
