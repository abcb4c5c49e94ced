import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import pg from 'pg';
import { PACKAGE_ROOT } from '#platform/package-root';
import { create, keepInMemory, must } from '#test/bench/creations';
import { alternate, type BenchOptions, type Figure, median, perSecond, rate, spread } from '#test/bench/measure';
import { residentMiB } from '#test/bench/resident';
import { benchStore } from '#test/bench/stores';
import type { CosiClient } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import type { TestDatabase } from '#test/support/database';
import { until } from '#test/support/parts';

const CALLERS = 32;
const OBJECTS = 500;
/** Of gateway and worker, and of what they are compared with. */
const POOL = 10;
/** Of both sides: V8 compiles until some 15,000 creations have run, which took a fifth of the gateway's processor time. */
const WARM_UP_ROUNDS = 5;

/** Repeated calls, mutations and memory (shared figures of the COSI interface), on the fake store without delay. */
export async function benchCosi(options: BenchOptions): Promise<Figure[]> {
  if (options.backend !== undefined) return benchStore(options.backend, options.quick);
  const appliance = await TestAppliance.start({
    backend: 'fake',
    env: {
      TRIVET_DATABASE_POOL: String(POOL),
      TRIVET_LEASE_MS: '15000',
      TRIVET_RECONCILE_MS: '2000',
      TRIVET_LOG_LEVEL: 'warn',
    },
  });
  try {
    const figures: Figure[] = [];
    const idle = residentOf(appliance);
    figures.push(...(await repeatedCalls(appliance, options)));
    figures.push(...(await mutations(appliance, options)));
    figures.push(...memory(idle, residentOf(appliance)));
    return figures;
  } finally {
    await appliance.close();
  }
}

async function repeatedCalls(appliance: TestAppliance, { quick }: BenchOptions): Promise<Figure[]> {
  const client = appliance.client();
  const names = Array.from({ length: quick ? 50 : OBJECTS }, (_, n) => `bench-${n}`);
  await inBatches(names, name => must(client, 'DriverCreateBucket', create(name)));
  const backendCalls = appliance.fake!.calls().length;

  await appliance.database.query('CREATE TABLE public.bench_bucket (name text PRIMARY KEY)');
  await appliance.database.query('INSERT INTO public.bench_bucket SELECT unnest($1::text[])', [names]);
  const bare = await startBare(appliance);
  try {
    const of = (target: CosiClient) => (n: number) =>
      must(target, 'DriverCreateBucket', create(names[n % names.length]!));
    const [ours, theirs] = await alternate(
      quick ? 1 : 5,
      () => rate(CALLERS, quick ? 300 : 3_000, of(client)),
      () => rate(CALLERS, quick ? 300 : 3_000, of(bare.client)),
    );
    const ratio = median(ours) / median(theirs);
    const touched = appliance.fake!.calls().length - backendCalls;
    return [
      {
        name: `repeated CreateBucket, ${names.length} objects, ${CALLERS} callers`,
        value: `${perSecond(median(ours))} (${ratio.toFixed(2)} of bare)`,
        limit: '>= 0.50 of bare grpc-js with one SELECT',
        baseline: perSecond(median(theirs)),
        ok: ratio >= 0.5,
        spread: Math.max(spread(ours), spread(theirs)),
      },
      { name: 'backend calls of those repeats', value: String(touched), limit: '0', baseline: '', ok: touched === 0 },
    ];
  } finally {
    await bare.stop();
  }
}

async function mutations(appliance: TestAppliance, { quick }: BenchOptions): Promise<Figure[]> {
  const { database } = appliance;
  const client = appliance.client();
  const url = new URL(database.appUrl);
  const pool = new pg.Pool({ connectionString: database.superuserUrl, max: POOL });
  await database.query('CREATE TABLE public.bench_commit (id bigint GENERATED ALWAYS AS IDENTITY, note text)');
  const bareCommit = async () => {
    const connection = await pool.connect();
    try {
      await connection.query('BEGIN');
      await connection.query({
        name: 'one',
        text: 'INSERT INTO public.bench_commit (note) VALUES ($1)',
        values: ['a'],
      });
      await connection.query({
        name: 'two',
        text: 'INSERT INTO public.bench_commit (note) VALUES ($1)',
        values: ['b'],
      });
      await connection.query('COMMIT');
    } finally {
      connection.release();
    }
  };
  try {
    let serial = 0;
    const createOne = (tag: string) => must(client, 'DriverCreateBucket', create(`${tag}-${serial++}`));

    const count = quick ? 20 : 200;
    const callsBefore = appliance.fake!.calls().filter(row => row.phase === 'begin').length;
    const before = await transactions(database, url.pathname.slice(1));
    for (let n = 0; n < count; n++) await createOne('counted');
    const after = await transactions(database, url.pathname.slice(1));
    const calls = appliance.fake!.calls().filter(row => row.phase === 'begin').length - callsBefore;
    const perMutation = (after.writing - before.writing - 1) / count;
    const all = (after.all - before.all) / count;
    const callsEach = calls / count;

    await leaveFile(appliance, () => createOne('moved'));
    const ms = quick ? 500 : 3_000;
    const many = () => rate(CALLERS, ms, () => createOne('many'));
    const bare = () => rate(CALLERS, ms, bareCommit);
    for (let round = 0; round < (quick ? 1 : WARM_UP_ROUNDS); round++) {
      await many();
      await bare();
    }
    const [ours, theirs] = await alternate(quick ? 1 : 5, many, bare);
    const latency: number[] = [];
    const bareLatency: number[] = [];
    for (let n = 0; n < count; n++) latency.push(await timed(() => createOne('one')));
    for (let n = 0; n < count; n++) bareLatency.push(await timed(bareCommit));
    const limit = Math.max(10, 12 * median(bareLatency));
    const ratio = (median(ours) * perMutation) / median(theirs);
    return [
      {
        name: 'commits of one CreateBucket',
        value: `${perMutation.toFixed(2)} (${all.toFixed(1)} transactions with reads and notifications heard)`,
        limit: `<= 3 + ${callsEach} backend calls`,
        baseline: '',
        ok: perMutation <= 3 + callsEach,
      },
      {
        name: 'CreateBucket, one caller, median',
        value: `${median(latency).toFixed(1)} ms`,
        limit: `<= ${limit.toFixed(1)} ms (10 ms or 12 bare commits)`,
        baseline: `${median(bareLatency).toFixed(2)} ms`,
        ok: median(latency) <= limit,
      },
      {
        name: `CreateBucket, ${CALLERS} callers, times its commits`,
        value: `${perSecond(median(ours))} x ${perMutation.toFixed(1)} (${ratio.toFixed(2)} of bare)`,
        limit: '>= 0.50 of plain two-statement transactions',
        baseline: perSecond(median(theirs)),
        ok: ratio >= 0.5,
        spread: Math.max(spread(ours), spread(theirs)),
      },
    ];
  } finally {
    await pool.end();
  }
}

/** From here on the fake is to cost nothing. */
async function leaveFile({ database, fake }: TestAppliance, call: () => Promise<void>): Promise<void> {
  await keepInMemory(database);
  await until('the worker has read it', async () => {
    const before = fake!.calls().length;
    await call();
    return fake!.calls().length === before;
  });
}

function memory(idle: Record<string, number>, loaded: Record<string, number>): Figure[] {
  return Object.keys(idle).flatMap(role => [
    {
      name: `${role}: growth under this load`,
      value: `${(loaded[role]! - idle[role]!).toFixed(0)} MiB`,
      limit: '< 128 MiB',
      baseline: `${idle[role]!.toFixed(0)} MiB at start`,
      ok: loaded[role]! - idle[role]! < 128,
    },
    { name: `${role}: resident`, value: `${loaded[role]!.toFixed(0)} MiB`, limit: 'aim 260 MiB', baseline: '' },
  ]);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

async function inBatches(names: readonly string[], work: (name: string) => Promise<void>): Promise<void> {
  for (let at = 0; at < names.length; at += CALLERS) await Promise.all(names.slice(at, at + CALLERS).map(work));
}

/**
 * Only a transaction that writes gets an id: their difference counts commits. xact_commit counts all, reads and
 * notifications heard included; idle sessions report theirs after up to ten seconds.
 */
async function transactions(database: TestDatabase, name: string): Promise<{ writing: number; all: number }> {
  await new Promise(resolve => setTimeout(resolve, 11_000));
  const [row] = await database.query<{ writing: string; all: string }>(
    'SELECT pg_current_xact_id()::text AS writing, xact_commit AS all FROM pg_stat_database WHERE datname = $1',
    [name],
  );
  return { writing: Number(row!.writing), all: Number(row!.all) };
}

const residentOf = (appliance: TestAppliance): Record<string, number> => ({
  gateway: residentMiB(appliance.process('gateway').pid),
  worker: residentMiB(appliance.process('worker').pid),
});

async function startBare(appliance: TestAppliance): Promise<{ client: CosiClient; stop(): Promise<void> }> {
  const { CosiClient: Client } = await import('#test/cosi/client');
  const socket = join(appliance.folder, 'bare.sock');
  const script = join(PACKAGE_ROOT, 'dist', 'test', 'bench', 'bare-cosi.js');
  const proto = join(PACKAGE_ROOT, 'proto', 'cosi', 'v1alpha2', 'cosi.proto');
  const child = spawn(process.execPath, [script, socket, appliance.database.superuserUrl, proto, String(POOL)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout!, 'data');
  const client = new Client(socket);
  return {
    client,
    stop: async () => {
      client.close();
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
