import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchOptions, type Figure, median } from '#test/bench/measure';
import { LoadHouse } from '#test/bench/memory-house';
import { JOBS, type Job } from '#test/bench/memory-load';
import { Resident } from '#test/bench/resident';

const HOUR_MS = 3_600_000;
const UNDER_LOAD = 128;
const AFTERWARDS = 64;
const AIM = 260;
const LISTENERS = 5;

/** What gateway and worker keep in memory before, under and after a load of all interfaces together. */
export async function benchMemory({ quick, minutes }: BenchOptions): Promise<Figure[]> {
  const loadMs = quick ? 10_000 : minutes === undefined ? HOUR_MS : minutes * 60_000;
  const load = quick ? '10 s of load' : `${loadMs / 60_000} minutes of load`;
  const house = await LoadHouse.open();
  const resident = house.appliance.processes.map(process => new Resident(process));
  const stop = new AbortController();
  try {
    await sleep(quick ? 1_000 : 30_000);
    for (const process of resident) process.begin();
    const standing = Array.from({ length: LISTENERS }, () => stay(house, stop.signal));
    const turns = await run(house, resident, loadMs);
    for (const process of resident) process.end();
    await sleep(quick ? 2_000 : 180_000);
    stop.abort();
    await Promise.all(standing);
    return [...resident.flatMap(process => figures(process, load)), ...turns];
  } finally {
    stop.abort();
    for (const process of resident) process.stop();
    await house.close();
  }
}

function figures(resident: Resident, load: string): Figure[] {
  const { role } = resident.process;
  const growth = (name: string, most: number, limit: number): Figure => ({
    name: `${role}: growth ${name} ${load}`,
    value: `${(most - resident.before).toFixed(0)} MiB`,
    limit: `< ${limit} MiB`,
    baseline: `${resident.before.toFixed(0)} MiB at start`,
    ok: most - resident.before < limit,
  });
  return [
    growth('under', resident.highest(), UNDER_LOAD),
    growth('when idle after', resident.now(), AFTERWARDS),
    {
      name: `${role}: highest resident`,
      value: `${resident.highest().toFixed(0)} MiB`,
      limit: `aim ${AIM} MiB`,
      baseline: '',
      ok: resident.highest() < AIM,
    },
    {
      name: `${role}: highest in the last quarter of the load`,
      value: `${resident.highest(0.75, 1).toFixed(0)} MiB`,
      limit: '',
      baseline: `${resident.highest(0, 0.25).toFixed(0)} MiB in the first; ${resident.busy.toFixed(0)} % of a core`,
    },
  ];
}

/** As a browser does: comes again when its stream ends. */
async function stay(house: LoadHouse, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await house.listen(signal, () => {}).catch(error => process.stderr.write(`memory: ${error.message}\n`));
    await sleep(1_000);
  }
}

interface Tally {
  job: Job;
  /** How long each turn took, in ms. */
  took: number[];
  failures: string[];
}

/** Runs every job at its own pace; a turn that is late is not made up for. Says each minute how it is. */
async function run(house: LoadHouse, resident: readonly Resident[], ms: number): Promise<Figure[]> {
  const end = performance.now() + ms;
  const repeat = async (job: Job): Promise<Tally> => {
    const tally: Tally = { job, took: [], failures: [] };
    for (let turn = 0; performance.now() < end; turn++) {
      const begin = performance.now();
      await job.turn(house, turn).catch(error => {
        tally.failures.push(error.message);
        process.stderr.write(`memory: ${job.name}, turn ${turn}: ${error.message}\n`);
      });
      tally.took.push(performance.now() - begin);
      await sleep(Math.max(0, begin + job.everyMs - performance.now()));
    }
    return tally;
  };
  let minute = 0;
  const said = setInterval(() => {
    for (const { process: daemon } of resident) daemon.output.splice(0, daemon.output.length - 100);
    const now = resident.map(({ process: { role }, samples }) => {
      return `${role} ${Math.min(...samples.slice(-60)).toFixed(0)} to ${Math.max(...samples.slice(-60)).toFixed(0)} MiB`;
    });
    process.stderr.write(`memory: minute ${++minute}: ${now.join(', ')}\n`);
  }, 60_000);
  try {
    const tallies = await Promise.all(JOBS.map(repeat));
    return tallies.map(({ job, took, failures }) => ({
      name: `turns of ${job.name}`,
      value: `${took.length}, ${failures.length} failed${failures[0] === undefined ? '' : ` (${failures[0]})`}`,
      limit: '0 failed',
      baseline: `${median(took).toFixed(0)} ms each, median`,
      ok: failures.length === 0,
    }));
  } finally {
    clearInterval(said);
  }
}
