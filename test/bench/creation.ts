import { create, keepInMemory, must } from '#test/bench/creations';
import { type BenchOptions, type Figure, median } from '#test/bench/measure';
import { cpuOf, groupsOf, type ProcessGroups } from '#test/bench/processor-time';
import { TestAppliance } from '#test/support/appliance';

/** By then V8 has compiled what a creation runs. */
const WARM_UP = 15_000;

/**
 * What a CreateBucket takes of the processor, by the process that spends it. Rates follow the machine's other work, these hardly do:
 * two states are compared by turns.
 */
export async function benchCreation({ quick }: BenchOptions): Promise<Figure[]> {
  const appliance = await TestAppliance.create({
    backend: 'fake',
    env: { TRIVET_LEASE_MS: '15000', TRIVET_RECONCILE_MS: '2000', TRIVET_LOG_LEVEL: 'warn' },
  });
  try {
    await keepInMemory(appliance.database);
    await Promise.all([appliance.gateway(), appliance.worker()]);
    const client = appliance.client();
    let serial = 0;
    const createOne = () => must(client, 'DriverCreateBucket', create(`made-${serial++}`));
    const groups = { client: () => [process.pid], ...(await groupsOf(appliance)) };
    await creations(32, quick ? 100 : WARM_UP, createOne);
    const figures: Figure[] = [];
    for (const [callers, count] of [
      [32, quick ? 200 : 12_000],
      [1, quick ? 50 : 2_000],
    ] as const)
      figures.push(...(await measured(appliance, groups, callers, count, createOne)));
    return figures;
  } finally {
    await appliance.close();
  }
}

async function measured(
  { database }: TestAppliance,
  groups: ProcessGroups,
  callers: number,
  count: number,
  createOne: () => Promise<void>,
): Promise<Figure[]> {
  const wal = async () => {
    const [row] = await database.query<{ bytes: string }>("SELECT pg_current_wal_lsn() - '0/0' AS bytes");
    return Number(row!.bytes);
  };
  const now = async () => ({ at: performance.now(), cpu: cpuOf(groups), wal: await wal() });
  const before = await now();
  const waits = await creations(callers, count, createOne);
  const after = await now();
  const spent = Object.entries(after.cpu).map(([name, ms]) => [name, (ms - before.cpu[name]!) / count] as const);
  const all = spent.reduce((sum, [, ms]) => sum + ms, 0);
  const shares = spent.map(([name, ms]) => `${name} ${ms.toFixed(3)}`).join(', ');
  return [
    {
      name: `ms of CPU a creation, ${callers} callers`,
      value: `${all.toFixed(3)} (${shares})`,
      limit: '',
      baseline: '',
    },
    {
      name: `creations, ${callers} callers`,
      value: `${((count * 1_000) / (after.at - before.at)).toFixed(0)}/s, median ${median(waits).toFixed(2)} ms`,
      limit: '',
      baseline: `${((after.wal - before.wal) / count).toFixed(0)} bytes of WAL each`,
    },
  ];
}

/** Gives how long each took. */
async function creations(callers: number, count: number, createOne: () => Promise<void>): Promise<number[]> {
  const waits: number[] = [];
  let begun = 0;
  const caller = async () => {
    while (begun++ < count) {
      const at = performance.now();
      await createOne();
      waits.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return waits;
}
