import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchOptions, Figure } from '#test/bench/measure';
import { LoadHouse } from '#test/bench/memory-house';
import { argumentsOf, cpuOf, groupsOf, type ProcessGroups, processes } from '#test/bench/processor-time';
import { until } from '#test/support/parts';

const MINUTE_MS = 60_000;
/** What began with the load has ended, and the first looks of all periodic tasks are over. */
const SETTLE_MS = 45_000;
/** Per cent of a core, of gateway and worker together. */
const LIMIT = 1;
const BUCKETS = 20;
const VOLUMES = 10;
const MIB = 1024 ** 2;
const NODE = {
  name: 'node-0',
  uuid: '41302701-0196-420f-b319-834a79891db0',
  iqns: ['iqn.1994-05.com.redhat:node-0'],
  networks: ['192.0.2.2/24'],
};

/** What an appliance costs that has a tenant with buckets, grants, published volumes and snapshots, and that nobody uses. */
export async function benchIdle({ quick }: BenchOptions): Promise<Figure[]> {
  const house = await LoadHouse.open();
  try {
    await fill(house, quick ? 2 : 1);
    await house.appliance.settled();
    await until('all cuts are indexed', async () => {
      const rows = await house.appliance.database.query("SELECT FROM trivet.snapshot WHERE index_state = 'pending'");
      return rows.length === 0;
    });
    await sleep(quick ? 1_000 : SETTLE_MS);
    return await measure(house, quick ? 3_000 : MINUTE_MS);
  } finally {
    await house.close();
  }
}

async function fill({ cosi, appliance }: LoadHouse, part: number): Promise<void> {
  const must = async (method: string, request: object) => {
    const { code, message } = await cosi.call('r1', method, request);
    if (code !== 'OK') throw new Error(`${method}: ${code} ${message}`);
  };
  const key = { protocol: { type: 'S3' }, authentication_type: { type: 'KEY' } };
  for (let n = 0; n < BUCKETS / part; n++) {
    await must('DriverCreateBucket', { name: `idle-${n}`, protocols: [{ type: 'S3' }], parameters: {} });
    const buckets = [{ bucket_id: `idle-${n}`, access_mode: { mode: 'READ_WRITE' } }];
    await must('DriverGrantBucketAccess', { ...key, account_name: `account-${n}`, buckets });
  }
  const driver = appliance.driver();
  await driver.login();
  for (let n = 0; n < VOLUMES / part; n++) {
    const { id } = await driver.createVolume(`idle-${n}`, 64 * MIB, {});
    await driver.publish(id, NODE);
    await driver.createSnapshot(id, `idle-${n}`);
  }
}

async function measure({ appliance }: LoadHouse, ms: number): Promise<Figure[]> {
  const groups: ProcessGroups = {
    ...(await groupsOf(appliance)),
    tgtd: () => processes().filter(pid => argumentsOf(pid).includes(appliance.tgtPath)),
  };
  const now = () => ({ at: performance.now(), cpu: cpuOf(groups) });
  const statements = async () => {
    const [row] = await appliance.database.query<{ n: string }>(
      'SELECT xact_commit AS n FROM pg_stat_database WHERE datname = current_database()',
    );
    return Number(row!.n);
  };
  const [began, transactions] = [now(), await statements()];
  await sleep(ms);
  const [ended, committed] = [now(), (await statements()) - transactions];
  const share = (name: string) => ((ended.cpu[name]! - began.cpu[name]!) / (ended.at - began.at)) * 100;
  const both = share('gateway') + share('worker');
  return [
    {
      name: 'gateway and worker together, while nothing happens',
      value: percent(both),
      limit: `< ${percent(LIMIT)}`,
      baseline: '',
      ok: both < LIMIT,
    },
    ...Object.keys(groups).map(name => ({ name, value: percent(share(name)), limit: '', baseline: '' })),
    {
      name: 'transactions a second',
      value: (committed / ((ended.at - began.at) / 1_000)).toFixed(1),
      limit: '',
      baseline: '',
    },
  ];
}

const percent = (share: number): string => `${share.toFixed(2)} % of a core`;
