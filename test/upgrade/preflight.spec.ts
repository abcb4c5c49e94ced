import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { QueryRunner } from 'typeorm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { source } from '#platform/database/database';
import { DatabaseClient } from '#platform/database/database-client';
import { readDump } from '#platform/dump/dump-file';
import { MIGRATIONS } from '#platform/migrations/all';
import type { Migration } from '#platform/migrations/locks';
import { programFile } from '#platform/package-root';
import { migrate } from '#platform/schema/migrate';
import { planUpgrade, whoHolds } from '#platform/schema/upgrade-plan';
import { Jobs, persist } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';

const PENDING = 2;
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
  const owner = await source(appliance.database.ownerUrl, 'trivet:test', 1, {
    statementMs: 0,
    answerMs: 0,
    idleMs: 0,
    lockMs: 0,
    migrations: [...MIGRATIONS],
  }).initialize();
  for (let n = 0; n < PENDING; n++) await owner.undoLastMigration({ transaction: 'each' });
  await owner.destroy();
});
afterAll(async () => {
  await appliance?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

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
    expect(work).toMatchObject([{ table: 'bucket', migration: 'Changes2000000000000', seconds: expect.any(Number) }]);
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

it('the backup is written, old ones of upgrades go, and then it is migrated', async () => {
  mkdirSync(backups(), { recursive: true });
  const old = ['20260101T000000Z', '20260102T000000Z', '20260103T000000Z'].map(moment => `before-0.0.9-${moment}.dump`);
  for (const name of [...old, 'monday.dump']) writeFileSync(join(backups(), name), '');
  const { code, said } = await trivet({}, 'migrate');
  expect(said).toMatch(/backup before the upgrade: .*upgrade-backups\/before-.*\.dump: \d+ rows/);
  expect(code).toBe(0);
  expect((await applied()).at(-1)).toBe(LAST);
  const files = readdirSync(backups()).sort();
  expect(files).toHaveLength(4);
  expect(files).not.toContain(old[0]);
  expect(files).toContain('monday.dump');
  const fresh = files.find(name => name.startsWith('before-') && !old.includes(name))!;
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
