import { type BenchOptions, type Figure, median, perSecond } from '#test/bench/measure';
import { BlockJobs, must } from '#test/block-crash/block-jobs';
import { TestAppliance } from '#test/support/appliance';
import type { BlockKind } from '#test/support/block-folders';
import { parts, until } from '#test/support/parts';

const GIB = 1024 ** 3;
const CALLERS = 8;
const LISTS = 9;
const HOUR = 3_600_000;

interface Crowd {
  created: number;
  cut: number;
  indexed: number;
  listed: number;
  audited: number;
}

/** So many volumes in one appliance, with a snapshot of each, by its API and processes: images of Ceph, and files on XFS. */
export async function crowdFigures({ quick }: BenchOptions): Promise<Figure[]> {
  const count = quick ? 20 : 1_000;
  const ceph = await crowd('rbd', count);
  const files = parts().xfs ? await crowd('xfs', count) : undefined;
  const rate = (ms: number) => `${(ms / 1_000).toFixed(1)} s (${perSecond((count * 1_000) / ms)})`;
  const figure = (name: string, of: keyof Crowd, words: (ms: number) => string): Figure => ({
    name,
    value: words(ceph[of]),
    limit: '',
    baseline: files ? `files on XFS ${words(files[of])}` : '',
  });
  return [
    figure(`${count} volumes: created by ${CALLERS} callers`, 'created', rate),
    figure('a snapshot of each: taken', 'cut', rate),
    figure('its step in the change index: built after the last of them', 'indexed', rate),
    figure('all volumes in one list, median', 'listed', ms => `${ms.toFixed(0)} ms`),
    figure('all images and targets: audited', 'audited', rate),
  ];
}

async function crowd(house: BlockKind, count: number): Promise<Crowd> {
  const appliance = await TestAppliance.start({
    backend: 'fake',
    block: house,
    env: {
      TRIVET_LEASE_MS: '15000',
      TRIVET_RECONCILE_MS: '2000',
      TRIVET_BLOCK_AUDIT_MS: `${HOUR}`,
      TRIVET_LOG_LEVEL: 'warn',
    },
  });
  try {
    const { database } = appliance;
    await until('the pool was looked at', async () => (await database.query('SELECT FROM trivet.pool')).length === 1);
    await database.query('UPDATE trivet.pool SET thin_ratio = 1000');
    const jobs = new BlockJobs(appliance);
    const ids: string[] = [];
    const created = await timed(() =>
      each(count, async n => void ids.push((await must(() => jobs.create(`crowd-${n}`, GIB))).body.id)),
    );
    const cut = await timed(() => each(count, n => must(() => jobs.snapshot(ids[n]!, `crowd-${n}`))));
    const pending = "SELECT FROM trivet.snapshot WHERE index_state = 'pending'";
    const indexed = await timed(() =>
      until('all is indexed', async () => (await database.query(pending)).length === 0, HOUR),
    );
    await appliance.settled(HOUR);
    const lists: number[] = [];
    for (let n = 0; n < LISTS; n++)
      lists.push(
        await timed(async () => {
          const { body } = await must(() => jobs.get('/volumes'));
          if (body.length !== count) throw new Error(`${body.length} volumes are listed instead of ${count}`);
        }),
      );
    return { created, cut, indexed, listed: median(lists), audited: await audit(appliance) };
  } finally {
    await appliance.close();
  }
}

/** Of a pass that a worker begins because it is due: it stays in the pool's row while it goes on. */
async function audit(appliance: TestAppliance): Promise<number> {
  const { database } = appliance;
  await appliance.process('worker').stop('SIGKILL');
  await database.query('UPDATE trivet.pool SET audited_at = NULL, audit_place = NULL');
  await appliance.worker();
  const read = async () => {
    const [row] = await database.query<{ began: string | null; ended: string | null }>(
      "SELECT audit_place ->> 'began' AS began, audited_at::text AS ended FROM trivet.pool",
    );
    return row!;
  };
  let began: string | undefined;
  const ended = await until(
    'the audit has ended',
    async () => {
      const row = await read();
      began ??= row.began ?? undefined;
      return row.ended;
    },
    HOUR,
  );
  if (began === undefined) throw new Error('the audit was over before it was seen');
  const findings = await database.query('SELECT kind, subject FROM trivet.finding');
  if (findings.length > 0) throw new Error(`the audit found ${JSON.stringify(findings.slice(0, 3))}`);
  const [row] = await database.query<{ ms: number }>(
    'SELECT extract(epoch FROM $1::timestamptz - $2::timestamptz)::float8 * 1000 AS ms',
    [ended, began],
  );
  return row!.ms;
}

async function each(count: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const caller = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}
