import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { QUEUE_CLASSES } from '#operations/operation';
import { BullDoorbell } from '#operations/queue/doorbell';
import { Database } from '#platform/database/database';
import { PACKAGE_ROOT } from '#platform/package-root';
import { type Caller, haveWaiting, makeCallers, offer } from '#test/bench/fairness-work';
import { type BenchOptions, type Figure, perSecond } from '#test/bench/measure';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { parts } from '#test/support/parts';

const TENANTS = 100;
/** Of each tenant in each class, when it begins. */
const WAITING = 64;
const OFFERED_A_SECOND = 1_000;
const OFFER_EVERY_MS = 20;
const WINDOW_MS = 15_000;
/** Of a tenant that has nothing else. */
const QUIET_EVERY_MS = 100;
const QUIET = 20;
/** More is not held in this process: a gateway has no more callers, either. */
const UNANSWERED = 2_000;
const THROUGHPUT_LIMIT = 0.8;
const WAIT_LIMIT_S = 2;
const SHARE_LIMIT = 1 / 3;

interface Run {
  /** Ended a second. */
  rate: number;
  offered: number;
  /** Seconds. */
  quietWait: number;
  busyWait: number;
  /** Of the tenant that got least, of a fair one. */
  leastShare: number;
}

/** Many tenants with long lines in all classes, against one that has as much, with operations that do nothing. */
export async function benchFairness({ quick }: BenchOptions): Promise<Figure[]> {
  const tenants = quick ? 10 : TENANTS;
  const ms = quick ? 2_000 : WINDOW_MS;
  const alone = await run(1, quick ? 4 : WAITING * tenants, ms);
  const many = await run(tenants, quick ? 4 : WAITING, ms);
  const ratio = many.rate / alone.rate;
  return [
    {
      name: `${tenants} tenants with ${WAITING} waiting in each class: throughput against one tenant alone`,
      value: ratio.toFixed(2),
      limit: `>= ${THROUGHPUT_LIMIT}`,
      baseline: `${perSecond(many.rate)} and ${perSecond(alone.rate)} ended`,
      ok: ratio >= THROUGHPUT_LIMIT,
    },
    {
      name: 'longest wait of a fast operation of a tenant that has nothing else',
      value: `${many.quietWait.toFixed(2)} s`,
      limit: `<= ${WAIT_LIMIT_S} s`,
      baseline: `${alone.quietWait.toFixed(2)} s beside one tenant`,
      ok: many.quietWait <= WAIT_LIMIT_S,
    },
    {
      name: 'the tenant that got least, of a fair share',
      value: many.leastShare.toFixed(2),
      limit: '>= 0.33',
      baseline: '',
      ok: many.leastShare >= SHARE_LIMIT,
    },
    {
      name: 'longest wait of a fast operation behind the line of its own tenant',
      value: `${many.busyWait.toFixed(1)} s`,
      limit: '',
      baseline: `${perSecond(many.offered)} were accepted beside the lines, of ${perSecond(OFFERED_A_SECOND)} offered`,
    },
  ];
}

async function run(tenants: number, waiting: number, ms: number): Promise<Run> {
  const testDatabase = await createDatabase();
  const redis = parts().redis?.url;
  if (redis === undefined) throw new Error('this leg needs Redis');
  const prefix = `bench-${randomBytes(4).toString('hex')}`;
  const { appUrl, engineUrl } = testDatabase;
  const database = await Database.connect({ appUrl, engineUrl, applicationName: 'trivet:bench', poolSize: 10 });
  const doorbell = new BullDoorbell(redis, prefix);
  const script = join(PACKAGE_ROOT, 'dist', 'test', 'bench', 'fairness-worker.js');
  const stdio = ['ignore', 'pipe', 'inherit'] as ['ignore', 'pipe', 'inherit'];
  const worker = spawn(process.execPath, [script, appUrl, engineUrl, redis, prefix], { stdio });
  try {
    await once(worker.stdout, 'data');
    const busy = await makeCallers(testDatabase, tenants);
    const quiet = await makeCallers(testDatabase, QUIET);
    await haveWaiting(testDatabase, busy, QUEUE_CLASSES, waiting);
    await testDatabase.query('ANALYZE');
    // What is compiled by V8, and what stood without a place at the begin, are both sides' alike.
    await sleep(ms / 3);
    const began = await now(testDatabase);
    const offered = await load({ database, doorbell, busy, quiet, ms });
    return { ...(await outcome(testDatabase, began, busy, quiet)), offered: (offered * 1_000) / ms };
  } finally {
    worker.kill('SIGKILL');
    await once(worker, 'exit');
    await doorbell.close();
    await database.close();
    await testDatabase.drop();
  }
}

interface Load {
  database: Database;
  doorbell: BullDoorbell;
  busy: readonly Caller[];
  quiet: readonly Caller[];
  ms: number;
}

/** In all classes, by turns. Gives how many were accepted. */
async function load({ database, doorbell, busy, quiet, ms }: Load): Promise<number> {
  const [begin, open] = [performance.now(), new Set<Promise<void>>()];
  let [turn, accepted, asked] = [0, 0, 0];
  const send = (caller: Caller, n: number) => {
    const sent = offer(database, doorbell, caller, QUEUE_CLASSES[n % QUEUE_CLASSES.length]!).finally(() =>
      open.delete(sent),
    );
    open.add(sent);
    return sent;
  };
  for (let passed = 0; passed < ms; passed = performance.now() - begin) {
    for (; asked < passed / QUIET_EVERY_MS; asked++) await send(quiet[asked % quiet.length]!, 0);
    for (; turn < (passed * OFFERED_A_SECOND) / 1_000 && open.size < UNANSWERED; turn++) {
      const classes = QUEUE_CLASSES.length;
      void send(busy[Math.floor(turn / classes) % busy.length]!, turn).then(() => accepted++);
    }
    await sleep(OFFER_EVERY_MS);
  }
  const inTime = accepted;
  await Promise.all(open);
  return inTime;
}

async function now(database: TestDatabase): Promise<Date> {
  const [row] = await database.query<{ now: Date }>('SELECT now()');
  return row!.now;
}

async function outcome(
  database: TestDatabase,
  began: Date,
  busy: readonly Caller[],
  quiet: readonly Caller[],
): Promise<Omit<Run, 'offered'>> {
  const ends = await database.query<{ n: number; seconds: number }>(
    `SELECT count(o.id)::int AS n, extract(epoch FROM now() - $1)::float8 AS seconds
       FROM unnest($2::uuid[]) AS tenant LEFT JOIN trivet.operation o ON o.tenant_id = tenant AND o.finished_at > $1
      GROUP BY tenant`,
    [began, busy.map(({ tenantId }) => tenantId)],
  );
  const waits = await database.query<{ quiet: boolean; seconds: number }>(
    `SELECT tenant_id = ANY ($2) AS quiet, extract(epoch FROM max(coalesce(started_at, now()) - created_at))::float8 AS seconds
       FROM trivet.operation WHERE class = 'fast' AND created_at > $1 GROUP BY 1`,
    [began, quiet.map(({ tenantId }) => tenantId)],
  );
  const all = ends.reduce((sum, { n }) => sum + n, 0);
  const wait = (isQuiet: boolean) => waits.find(row => row.quiet === isQuiet)?.seconds ?? 0;
  return {
    rate: all / ends[0]!.seconds,
    quietWait: wait(true),
    busyWait: wait(false),
    leastShare: (Math.min(...ends.map(({ n }) => n)) * busy.length) / all,
  };
}
