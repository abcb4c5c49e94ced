import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { talliesMendedTotal } from '#platform/metrics/worker-metrics';
import { promisedOf } from '#storage/block/pools/pool-capacity';
import { TallyCheck } from '#tenancy/quotas/tally-check';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { until } from '#test/support/parts';
import { wrongTallies } from '#test/support/tallies';

/**
 * Tallies say what is there, whatever is done and however often at once: here by statements that do anything to rows; over the
 * interfaces, with kills, by the models and the crash tests, which ask the same (test/support/tallies.ts).
 */
const RUNS = Number(process.env.TRIVET_MODEL_RUNS ?? 15);
const SEED = Number(process.env.TRIVET_MODEL_SEED ?? Date.now() % 2 ** 31);
const CONNECTIONS = 3;
/** Whatever there is, in one run. */
const ALL = { portion: 10_000, rows: 1_000_000, steps: 1_000, againMs: 0 };

let testDatabase: TestDatabase;
let database: Database;
let clients: pg.Client[];
const [tenant, other, backend, second, others] = Array.from({ length: 5 }, () => randomUUID()) as [
  string,
  string,
  string,
  string,
  string,
];
beforeAll(async () => {
  testDatabase = await createDatabase();
  const { appUrl, engineUrl, query } = testDatabase;
  database = await Database.connect({ appUrl, engineUrl, applicationName: 'trivet:test' });
  for (const [id, name] of [
    [tenant, 'own'],
    [other, 'other'],
  ])
    await query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [id, name]);
  for (const [of, id, name] of [
    [tenant, backend, 'first'],
    [tenant, second, 'second'],
    [other, others, 'first'],
  ])
    await query("INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, 'reflink', '{}')", [
      of,
      id,
      name,
    ]);
  clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const client = new pg.Client(appUrl);
      await client.connect();
      await client.query(`SET trivet.tenant = '${tenant}'`);
      return client;
    }),
  );
});
afterAll(async () => {
  await Promise.all((clients ?? []).map(client => client.end()));
  await database?.close();
  await testDatabase?.drop();
});

const NEW_VOLUMES = `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
    thick, destroy_on_delete, description, config)
  SELECT $1, gen_random_uuid(), CASE n % 3 WHEN 0 THEN $3::uuid ELSE $2::uuid END, gen_random_uuid(), 'creating', '{}', '',
         (ARRAY['fast', 'slow'])[n % 2 + 1], '', 1024 * (n + 1), false, true, '', '{}'
    FROM generate_series(1, $4::int) AS n`;
const NEW_SNAPSHOTS = `INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool, folder, cut)
  SELECT tenant_id, gen_random_uuid(), backend_id, id, gen_random_uuid(), 'creating', false, '', '{}', pool, '',
         CASE WHEN random() < 0.5 THEN (random() * 1e9)::bigint END
    FROM trivet.volume WHERE tenant_id = $1 AND state = 'ready' ORDER BY random() LIMIT $2`;
const NEW_BUCKETS = `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, used_bytes)
  SELECT $1, gen_random_uuid(), $2, gen_random_uuid(), 'created', 'creating', '{}', '', CASE WHEN n > 1 THEN n * 10 END
    FROM generate_series(1, $3::int) AS n`;
const REFUSE_PORTIONS = (of: string) => `
  CREATE FUNCTION trivet.refuse_portion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'as asked'; END $$;
  CREATE TRIGGER refuse_portion BEFORE INSERT ON trivet.tally_portion FOR EACH ROW
    WHEN (NEW.tenant_id = '${of}') EXECUTE FUNCTION trivet.refuse_portion()`;
/** Of some rows that nobody else holds. */
const some = (table: string, count: number): string =>
  `tenant_id = $1 AND id IN (SELECT id FROM trivet.${table} WHERE tenant_id = $1 ORDER BY random() LIMIT ${count} FOR UPDATE SKIP LOCKED)`;
const update = (table: string, set: string) => (count: number) => ({
  text: `UPDATE trivet.${table} SET ${set} WHERE ${some(table, count)}`,
  params: [tenant],
});
const STEPS = [
  (count: number) => ({ text: NEW_VOLUMES, params: [tenant, backend, second, count] }),
  (count: number) => ({ text: NEW_SNAPSHOTS, params: [tenant, count] }),
  (count: number) => ({ text: NEW_BUCKETS, params: [tenant, backend, count] }),
  update('volume', "state = 'ready', binned_until = NULL"),
  update('volume', "state = 'ready', size_bytes = greatest(size_bytes, growing_to), growing_to = NULL"),
  update('volume', 'growing_to = size_bytes * 2'),
  update('volume', 'growing_to = NULL'),
  update('volume', "state = 'binned', binned_until = now() + interval '1 day'"),
  update('volume', 'binned_until = CASE WHEN binned_until IS NULL THEN NULL ELSE now() END'),
  update('volume', "state = 'deleting'"),
  update('volume', "state = 'gone', growing_to = NULL"),
  update('volume', "pool = 'elsewhere'"),
  update('volume', 'export_version = export_version + 1'),
  update('snapshot', "state = 'ready'"),
  update('snapshot', "state = 'gone'"),
  update('snapshot', 'image_gone_at = now()'),
  update('snapshot', 'cut = NULL'),
  update('bucket', "state = 'ready', used_bytes = (random() * 1e6)::bigint"),
  update('bucket', "state = 'gone'"),
  update('bucket', "origin = CASE origin WHEN 'created' THEN 'registered' ELSE 'created' END"),
  (count: number) => ({ text: `DELETE FROM trivet.snapshot WHERE ${some('snapshot', count)}`, params: [tenant] }),
  (count: number) => ({ text: `DELETE FROM trivet.bucket WHERE ${some('bucket', count)}`, params: [tenant] }),
  (count: number) => ({
    text: `DELETE FROM trivet.volume v WHERE ${some('volume', count)}
              AND NOT EXISTS (SELECT FROM trivet.snapshot s WHERE s.tenant_id = $1 AND s.volume_id = v.id)`,
    params: [tenant],
  }),
];
const transaction = fc.record({
  steps: fc.array(fc.tuple(fc.nat(STEPS.length - 1), fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 4 }),
  kept: fc.nat(3).map(one => one > 0),
});

/** What a random step meets may refuse it, a volume that has just got a snapshot, say: then nothing of it is kept. */
async function send(client: pg.Client, { steps, kept }: { steps: [number, number][]; kept: boolean }): Promise<void> {
  await client.query('BEGIN');
  try {
    for (const [step, count] of steps) {
      const { text, params } = STEPS[step]!(count);
      await client.query(text, params);
    }
    await client.query(kept ? 'COMMIT' : 'ROLLBACK');
  } catch (error) {
    await client.query('ROLLBACK');
    // A key that still refers to it, two that wait for each other.
    if (!['23503', '23505', '40P01'].includes((error as { code: string }).code)) throw error;
  }
}

const untilNothingIsSaid = () =>
  until('what was said of changes is gone', async () => {
    await new TallyCheck(database, ALL).run(new AbortController().signal);
    return (await testDatabase.query('SELECT FROM trivet.tally_change')).length === 0;
  });

describe('tallies', () => {
  it(
    `say what is there after any changes, several at once (${RUNS} runs, seed ${SEED})`,
    async () => {
      const lines = fc.array(fc.array(transaction, { maxLength: 12 }), {
        minLength: CONNECTIONS,
        maxLength: CONNECTIONS,
      });
      const property = fc.asyncProperty(lines, async all => {
        await Promise.all(
          all.map(async (line, n) => {
            for (const one of line) await send(clients[n]!, one);
          }),
        );
        expect(await wrongTallies(testDatabase)).toEqual([]);
      });
      await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: true });
      expect(await testDatabase.query('SELECT FROM trivet.recount($1)', [tenant])).toEqual([]);
    },
    Math.max(60_000, RUNS * 5_000),
  );

  it(
    `are found right by portions while rows before and behind them change (${RUNS} runs, seed ${SEED})`,
    async () => {
      const step = async (kind: string) =>
        database.engine<{ progress: string | null; things: string; bytes: string }>(
          sql('', 'SELECT progress, things::text, bytes::text FROM trivet.tally_step($1, $2, 3)'),
          [tenant, kind],
        );
      const lines = fc.array(fc.array(transaction, { minLength: 8, maxLength: 16 }), {
        minLength: CONNECTIONS,
        maxLength: CONNECTIONS,
      });
      let portions = 0;
      const property = fc.asyncProperty(lines, async all => {
        await clients[0]!.query(NEW_VOLUMES, [tenant, backend, second, 10]);
        await clients[0]!.query(NEW_BUCKETS, [tenant, backend, 5]);
        let under = true;
        const compare = async () => {
          do {
            for (const kind of ['volume', 'binned', 'snapshot', 'bucket', 'registered', 'change_step'])
              for (let ended = false; !ended; ) {
                const told = await step(kind);
                expect(told.filter(({ progress }) => progress === null)).toEqual([]);
                ended = told.some(({ progress }) => progress === 'done');
                portions += told.filter(({ progress }) => progress === 'portion').length;
              }
          } while (under);
        };
        const changes = Promise.all(
          all.map(async (line, n) => {
            for (const one of line) await send(clients[n]!, one);
          }),
        ).finally(() => {
          under = false;
        });
        await Promise.all([changes, compare()]);
        expect(await wrongTallies(testDatabase)).toEqual([]);
      });
      await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: true });
      expect(portions).toBeGreaterThan(RUNS);
      // What was said when a comparison had just ended goes with the next one.
      await untilNothingIsSaid();
    },
    Math.max(60_000, RUNS * 5_000),
  );

  it('are compared only when everybody has ended who may not have seen that it had begun', async () => {
    const { signal } = new AbortController();
    await new TallyCheck(database, ALL).run(signal);
    const [late] = clients as [pg.Client];
    const opening = new pg.Client(testDatabase.engineUrl);
    await opening.connect();
    const step = async () =>
      (
        await opening.query<{ progress: string | null }>("SELECT progress FROM trivet.tally_step($1, 'volume', 3)", [
          tenant,
        ])
      ).rows;
    await late.query(NEW_VOLUMES, [tenant, backend, second, 10]);
    await opening.query('BEGIN');
    try {
      expect(await step()).toEqual([{ progress: 'open' }]);
      // Its number is higher, and the pass is not there yet.
      await late.query('BEGIN');
      await late.query(NEW_VOLUMES, [tenant, backend, second, 1]);
    } finally {
      await opening.query('COMMIT');
    }
    expect(await step()).toEqual([{ progress: 'waits' }]);
    await late.query('COMMIT');
    for (let found: { progress: string | null }[] = []; !found.some(({ progress }) => progress === 'done'); ) {
      found = await step();
      expect(found.map(({ progress }) => progress)).not.toContain(null);
    }
    await opening.end();
    expect(await wrongTallies(testDatabase)).toEqual([]);
  });

  it('that differ are found by portions, though a transaction from before stands still', async () => {
    const small = new TallyCheck(database, { portion: 5, rows: 1_000_000, steps: 1_000, againMs: 0 });
    const { signal } = new AbortController();
    await testDatabase.query(NEW_VOLUMES, [tenant, backend, second, 12]);
    await testDatabase.query(
      "UPDATE trivet.tally SET things = things + 7 WHERE (tenant_id, stripe) IN (SELECT tenant_id, min(stripe) FROM trivet.tally WHERE kind = 'volume' AND tenant_id = $1 GROUP BY 1)",
      [tenant],
    );
    const [still, busy] = clients as [pg.Client, pg.Client];
    await still.query('BEGIN');
    try {
      await still.query(NEW_VOLUMES, [tenant, backend, second, 1]);
      await small.run(signal);
      // Whoever comes meanwhile waits for neither.
      await busy.query("SET statement_timeout = '5s'");
      await busy.query(NEW_VOLUMES, [tenant, backend, second, 3]);
    } finally {
      await still.query('COMMIT');
      await busy.query('RESET statement_timeout');
    }
    expect(await wrongTallies(testDatabase)).toHaveLength(1);
    await until('it is set right', async () => {
      await small.run(signal);
      return (await wrongTallies(testDatabase)).length === 0;
    });
  });

  it('that cannot be counted keep no others waiting, and are told no changes meanwhile', async () => {
    const { signal } = new AbortController();
    await new TallyCheck(database, ALL).run(signal);
    // What is open comes first, and a run has one step.
    const short = new TallyCheck(database, { portion: 3, rows: 1_000_000, steps: 1, againMs: 0 });
    await testDatabase.query(REFUSE_PORTIONS(tenant));
    try {
      await testDatabase.query(NEW_VOLUMES, [tenant, backend, second, 12]);
      await testDatabase.query(
        "INSERT INTO trivet.tally (tenant_id, kind, backend_id, pool, things, bytes) VALUES ($1, 'bucket', $2, '', 3, 0)",
        [other, others],
      );
      let failures = 0;
      const isLeft = async () => failures < 2 || (await wrongTallies(testDatabase)).length > 0;
      // Others of this server may be in the middle of something, for which a run waits.
      await until('what can be counted is right', async () => {
        await short.run(signal).catch(() => failures++);
        return !(await isLeft());
      });
      expect(failures).toBeGreaterThanOrEqual(2);
      expect(await wrongTallies(testDatabase)).toEqual([]);
      const refused = 'SELECT kind, open FROM trivet.tally_pass WHERE tenant_id = $1 AND failed_at > ended_at';
      expect(await testDatabase.query(refused, [tenant])).toContainEqual({ kind: 'volume', open: false });
    } finally {
      await testDatabase.query('DROP FUNCTION trivet.refuse_portion() CASCADE');
    }
    await untilNothingIsSaid();
  });

  it('do not have one that changes them wait for another that stands still', async () => {
    const [still, busy] = clients as [pg.Client, pg.Client];
    const stripes = async (): Promise<number> =>
      (
        await testDatabase.query(
          "SELECT FROM trivet.tally WHERE tenant_id = $1 AND backend_id = $2 AND pool = 'elsewhere'",
          [tenant, backend],
        )
      ).length;
    const elsewhere = NEW_VOLUMES.replace("(ARRAY['fast', 'slow'])[n % 2 + 1]", "'elsewhere'");
    await still.query('BEGIN');
    try {
      await still.query(elsewhere, [tenant, backend, second, 1]);
      await busy.query("SET statement_timeout = '5s'");
      await busy.query(elsewhere, [tenant, backend, second, 1]);
      await busy.query(elsewhere, [tenant, backend, second, 1]);
    } finally {
      await still.query('COMMIT');
      await busy.query('RESET statement_timeout');
    }
    expect(await wrongTallies(testDatabase)).toEqual([]);
    const before = await stripes();
    for (let n = 0; n < 20; n++) await busy.query(elsewhere, [tenant, backend, second, 1]);
    // One after the other they take what is there.
    expect(await stripes()).toBe(before);
  });

  it('answer as the rows would, what is due to leave the recycle bin left out', async () => {
    await testDatabase.query("UPDATE trivet.volume SET state = 'ready', binned_until = NULL WHERE tenant_id = $1", [
      tenant,
    ]);
    await clients[0]!.query(NEW_VOLUMES, [tenant, backend, second, 20]);
    for (const [interval, count] of [
      ['-1 hour', 3],
      ['1 hour', 4],
    ])
      await testDatabase.query(
        `UPDATE trivet.volume SET state = 'binned', binned_until = now() + $2::interval
          WHERE id IN (SELECT id FROM trivet.volume WHERE tenant_id = $1 AND state <> 'binned' AND pool = 'fast' LIMIT $3)`,
        [tenant, interval, count],
      );
    const COUNTED = "tenant_id = $1 AND state <> 'gone' AND NOT trivet.leaves_bin(state, binned_until)";
    const [rows] = await testDatabase.query(
      `SELECT count(*)::text AS volumes, sum(greatest(size_bytes, growing_to))::text AS bytes,
              sum(greatest(size_bytes, growing_to)) FILTER (WHERE backend_id = $2 AND pool = 'fast')::text AS promised
         FROM trivet.volume WHERE ${COUNTED}`,
      [tenant, backend],
    );
    const [told] = await database.withTenant(tenant, tx =>
      tx.query(
        sql(
          '',
          `SELECT trivet.quota_used($1, 'volumes')::text AS volumes, trivet.quota_used($1, 'volume_bytes')::text AS bytes,
                  ${promisedOf('$1', '$2', "'fast'")}::text AS promised`,
        ),
        [tenant, backend],
      ),
    );
    expect(told).toEqual(rows);
  });

  it('that differ are found, told, and set right, while others go on', async () => {
    const mended = async () => (await talliesMendedTotal.get()).values.reduce((sum, { value }) => sum + value, 0);
    const check = new TallyCheck(database, ALL);
    const { signal } = new AbortController();
    const before = await mended();
    await check.run(signal);
    expect(await mended()).toBe(before);
    await testDatabase.query(
      "UPDATE trivet.tally SET things = things + 7, bytes = bytes - 100 WHERE (tenant_id, stripe) IN (SELECT tenant_id, min(stripe) FROM trivet.tally WHERE kind = 'volume' AND tenant_id = $1 GROUP BY 1)",
      [tenant],
    );
    await testDatabase.query(
      "INSERT INTO trivet.tally (tenant_id, kind, backend_id, pool, things, bytes) VALUES ($1, 'bucket', $2, '', 3, 0)",
      [other, others],
    );
    expect(await wrongTallies(testDatabase)).toHaveLength(2);
    const [still] = clients as [pg.Client];
    await still.query('BEGIN');
    try {
      await still.query(NEW_VOLUMES, [tenant, backend, second, 1]);
      await check.run(signal);
    } finally {
      await still.query('COMMIT');
    }
    expect(await mended()).toBe(before + 2);
    expect(await wrongTallies(testDatabase)).toEqual([]);
  });
});
