import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { source } from '#platform/database/database';
import { DatabaseClient } from '#platform/database/database-client';
import { dump } from '#platform/dump/dump';
import { readDump } from '#platform/dump/dump-file';
import { aboutDump } from '#platform/dump/load';
import { MIGRATIONS } from '#platform/migrations/all';
import type { Migration } from '#platform/migrations/locks';
import { programFile } from '#platform/package-root';
import { MIGRATION_LOCK, migrate } from '#platform/schema/migrate';
import { planUpgrade, whoHolds } from '#platform/schema/upgrade-plan';
import { Jobs, persist } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** From the one on that remembers backups. */
const PENDING = MIGRATIONS.length - MIGRATIONS.findIndex(({ name }) => name.startsWith('ApplianceBackups'));
const LAST = MIGRATIONS.at(-1)!.name;

/** An appliance of the release before, with a bucket in it: down, and to be migrated. */
let appliance: TestAppliance;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'preflight-'));
  appliance = await TestAppliance.start({ backend: 'fake' });
  const jobs = new Jobs(appliance.client());
  expect((await persist(() => jobs.create('kept'))).at(-1)!.code).toBe('OK');
  await Promise.all(appliance.processes.map(process => process.stop()));
  await withMigrations(undoPending);
});
afterAll(async () => {
  await appliance?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** With no lock: of the other host. */
async function withMigrations(work: (owner: DataSource) => Promise<void>): Promise<void> {
  const bounds = { statementMs: 0, answerMs: 0, idleMs: 0, lockMs: 0 };
  const owner = source(appliance.database.ownerUrl, 'trivet:test', 1, { ...bounds, migrations: [...MIGRATIONS] });
  await owner.initialize();
  try {
    await work(owner);
  } finally {
    await owner.destroy();
  }
}
const undoPending = async (owner: DataSource): Promise<void> => {
  for (let n = 0; n < PENDING; n++) await owner.undoLastMigration({ transaction: 'each' });
};

const applied = async (): Promise<string[]> =>
  (await appliance.database.query<{ name: string }>('SELECT name FROM trivet.migration ORDER BY id')).map(
    ({ name }) => name,
  );
const home = (): string => join(folder, 'home');
const backups = (): string => join(home(), 'upgrade-backups');

function trivet(env: Record<string, string>, ...words: string[]): Promise<{ code: number; said: string }> {
  const settings = {
    PATH: '/usr/bin:/bin',
    TRIVET_KEK_FILE: appliance.env.TRIVET_KEK_FILE!,
    TRIVET_DATABASE_OWNER_URL: appliance.database.ownerUrl,
    TRIVET_HOME: home(),
    ...env,
  };
  return new Promise(resolve => {
    execFile(process.execPath, [programFile('trivet'), ...words], { env: settings, cwd: '/' }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), said: out + err }),
    );
  });
}

it('a look says what is to come, and changes nothing', async () => {
  const before = await applied();
  const { code, said } = await trivet({}, 'migrate', '--check');
  expect(said).toContain(`schema: ${PENDING} migrations are to come, from`);
  expect(said).toContain(`backup: migrate writes one to ${backups()} first (none is known)`);
  expect(code).toBe(0);
  expect(await applied()).toEqual(before);
  expect(before).not.toContain(LAST);
});

it('nothing is changed without the backup that goes before it', async () => {
  const before = await applied();
  const none = await trivet({ TRIVET_UPGRADE_BACKUPS: 'recent' }, 'migrate');
  expect(none.said).toMatch(/configuration: fail {2}backup: none of the last 24 hours: none is known; write one/);
  expect(none.said).toMatch(/configuration: this release does not migrate that database now; nothing was changed/);
  expect(none.code).toBe(78);
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const unwritten = await trivet({ TRIVET_UPGRADE_BACKUPS: file }, 'migrate');
  expect(unwritten.said).toContain('the backup before the upgrade failed, and nothing was changed');
  expect(unwritten.code).not.toBe(0);
  expect(await applied()).toEqual(before);
});

it('a migration of a release that this one does not know is not crossed', async () => {
  const { database } = appliance;
  const before = await applied();
  await database.query(`INSERT INTO trivet.migration ("timestamp", name) VALUES (1999999999999, 'Later1999999999999')`);
  try {
    const { code, said } = await trivet({}, 'migrate');
    expect(said).toMatch(/fail {2}schema: .*\(Later\), and without/);
    expect(code).toBe(78);
  } finally {
    await database.query(`DELETE FROM trivet.migration WHERE name = 'Later1999999999999'`);
  }
  expect(await applied()).toEqual(before);
});

it('who holds a table that is to be changed is named, and a statement that ends is not', async () => {
  const { ownerUrl, superuserUrl } = appliance.database;
  const client = new DatabaseClient({ connectionString: ownerUrl });
  const dump = new pg.Client(superuserUrl);
  await Promise.all([client.connect(), dump.connect()]);
  try {
    const { work } = await planUpgrade(client, [class Changes2000000000000 extends Failing {}]);
    expect(work).toMatchObject([{ table: 'bucket', migration: 'Changes2000000000000' }]);
    expect(await whoHolds(client, work)).toEqual(new Map());
    await dump.query('BEGIN; LOCK TABLE trivet.bucket IN ACCESS SHARE MODE');
    const { rows } = await dump.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    expect(await whoHolds(client, work)).toEqual(new Map([['bucket', rows[0]!.pid]]));
    await dump.query('COMMIT');
    expect(await whoHolds(client, work)).toEqual(new Map());
  } finally {
    await Promise.all([client.end(), dump.end()]);
  }
});

it('the work of a migration is reckoned from what the catalogue says of its tables', async () => {
  const tables = ['bucket', 'operation'];
  const client = new DatabaseClient({ connectionString: appliance.database.ownerUrl });
  await client.connect();
  try {
    await client.query(`ANALYZE ${tables.map(table => `trivet.${table}`).join()}`);
    class Rewrites2000000000002 extends Failing {
      override readonly locks = Object.fromEntries(
        tables.map(table => [table, { mode: 'ACCESS EXCLUSIVE', work: ['rewrite'], seconds: 10_000_000 } as const]),
      );
    }
    const { work } = await planUpgrade(client, [Rewrites2000000000002]);
    for (const [at, table] of tables.entries()) {
      const { rows } = await client.query<{ rows: number }>(`SELECT count(*)::int AS rows FROM trivet.${table}`);
      expect(rows[0]!.rows).toBeGreaterThan(0);
      expect(work[at]).toMatchObject({ table, rows: rows[0]!.rows, seconds: rows[0]!.rows, staying: 0 });
      expect(work[at]!.bytes).toBeGreaterThan(0);
    }
  } finally {
    await client.end();
  }
});

/** As `migrate` of another host holds the lock. */
async function whileAnotherMigrates(work: (other: pg.Client) => Promise<void>): Promise<void> {
  const other = new pg.Client(appliance.database.superuserUrl);
  await other.connect();
  try {
    await other.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await work(other);
  } finally {
    await other.end();
  }
}
const untilDumpWaits = (other: pg.Client): Promise<unknown> =>
  until('a dump waits for the migration', async () => {
    const { rows } = await other.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%advisory_lock_shared%'`,
    );
    return rows.length > 0;
  });

it('a dump waits for a migration of another host without being waited for', async () => {
  const file = join(folder, 'waits.dump');
  const dumped: Promise<unknown>[] = [];
  await whileAnotherMigrates(async other => {
    dumped.push(dump(appliance.database.ownerUrl, file, { release: 'x', settings: {} }));
    await untilDumpWaits(other);
    // Waits for every snapshot that was there before it.
    await other.query("SET statement_timeout = '20s'; CREATE TABLE trivet.built (a int)");
    await other.query('CREATE INDEX CONCURRENTLY built_a ON trivet.built (a)');
    await other.query('DROP TABLE trivet.built');
  });
  await Promise.all(dumped);
  expect(existsSync(file)).toBe(true);
});

it('what another host has migrated meanwhile is not called a backup from before it', async () => {
  const migrated: ReturnType<typeof trivet>[] = [];
  await whileAnotherMigrates(async other => {
    migrated.push(trivet({}, 'migrate'));
    await untilDumpWaits(other);
    await withMigrations(async owner => void (await owner.runMigrations({ transaction: 'each' })));
  });
  expect(await migrated[0]).toMatchObject({ code: 0, said: expect.stringContaining('the schema is up to date') });
  expect(readdirSync(backups())).toEqual([]);
  await withMigrations(undoPending);
});

it('one that the server refuses is named in one line, with what the server said', async () => {
  const { database } = appliance;
  const before = await applied();
  await database.query(
    `CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it is not to be'; END $$;
     CREATE TRIGGER refuse BEFORE INSERT ON trivet.migration FOR EACH ROW EXECUTE FUNCTION public.refuse()`,
  );
  try {
    const { code, said } = await trivet({ TRIVET_UPGRADE_BACKUPS: 'none' }, 'migrate');
    expect(said).toMatch(/^trivet: the migration ApplianceBackups failed: it is not to be; those before it hold, .*$/m);
    expect(said).not.toMatch(/^ {4}at /m);
    expect(code).toBe(1);
  } finally {
    await database.query('DROP FUNCTION public.refuse CASCADE');
  }
  expect(await applied()).toEqual(before);
});

it('the backup is written, and then it is migrated', async () => {
  writeFileSync(join(backups(), 'monday.dump'), '');
  const { code, said } = await trivet({}, 'migrate');
  expect(said).toMatch(/backup before the upgrade: .*upgrade-backups\/before-.*\.dump: \d+ rows/);
  expect(code).toBe(0);
  expect((await applied()).at(-1)).toBe(LAST);
  const files = readdirSync(backups()).sort();
  expect(files).toEqual([expect.stringMatching(/^before-/), 'monday.dump']);
  const fresh = files[0]!;
  expect(await aboutDump(join(backups(), fresh))).toMatchObject({ before: LAST });
  let isIn = false;
  for await (const { name, bytes } of readDump(join(backups(), fresh)))
    isIn ||= name.startsWith('data/bucket/') && bytes.includes('kept');
  expect(isIn).toBe(true);
  // Up to date: nothing more is written.
  expect((await trivet({}, 'migrate')).code).toBe(0);
  expect(readdirSync(backups()).sort()).toEqual(files);
});

it('a backup by command is remembered, and is enough for a day', async () => {
  const file = join(folder, 'by-command.dump');
  expect((await trivet({}, 'appliance', 'backup', file)).code).toBe(0);
  const [row] = await appliance.database.query('SELECT file, release, rows > 0 AS full FROM trivet.appliance_backup');
  expect(row).toMatchObject({ file, full: true });
});

it('a backup of which the database cannot be told is one all the same', async () => {
  const { database } = appliance;
  await database.query(
    `CREATE FUNCTION trivet.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it is read-only'; END $$;
     CREATE TRIGGER refuse BEFORE INSERT ON trivet.appliance_backup FOR EACH ROW EXECUTE FUNCTION trivet.refuse()`,
  );
  try {
    const file = join(folder, 'unknown.dump');
    const { code, said } = await trivet({}, 'appliance', 'backup', file);
    expect(said).toMatch(/unknown\.dump: \d+ rows, .*; the database does not know when it was taken: it is read-only/);
    expect(code).toBe(0);
    expect((await aboutDump(file)).migrations.at(-1)).toBe(LAST);
  } finally {
    await database.query('DROP FUNCTION trivet.refuse CASCADE');
  }
});

/** Changes something first. */
class Failing implements Migration {
  readonly locks: Migration['locks'] = { bucket: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.bucket ADD COLUMN half_done text NOT NULL DEFAULT 0');
    throw new Error('it does not come to its end');
  }
  async down(): Promise<void> {}
}

it('one that fails leaves nothing, and the release before goes on', async () => {
  const migrations = [...MIGRATIONS, class Fails2000000000001 extends Failing {}] as unknown as typeof MIGRATIONS;
  await expect(migrate(appliance.database.ownerUrl, { migrations })).rejects.toThrow('it does not come to its end');
  expect((await applied()).at(-1)).toBe(LAST);
  const half = "SELECT FROM pg_attribute WHERE attrelid = 'trivet.bucket'::regclass AND attname = 'half_done'";
  expect(await appliance.database.query(half)).toEqual([]);
  await Promise.all([appliance.gateway(), appliance.worker()]);
  const jobs = new Jobs(appliance.client());
  expect((await persist(() => jobs.create('after'))).at(-1)!.code).toBe('OK');
});
