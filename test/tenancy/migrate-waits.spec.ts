import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { QueryRunner } from 'typeorm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { endReleasesBefore } from '#platform/migrations/0035-oldest-release';
import { MIGRATIONS } from '#platform/migrations/all';
import type { Migration } from '#platform/migrations/locks';
import { migrate } from '#platform/schema/migrate';
import { requireSchema, SCHEMA_VERSION } from '#platform/schema/schema-version';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { parts, until } from '#test/support/parts';

const name = `test_${randomBytes(6).toString('hex')}`;
const { superuserUrl, ownerUrl } = parts().postgres;
const here = (url: string): string => Object.assign(new URL(url), { pathname: `/${name}` }).href;
let server: pg.Client;
let holder: pg.Client;
let own: TestDatabase;

beforeAll(async () => {
  own = await createDatabase();
  server = new pg.Client(superuserUrl);
  await server.connect();
  await server.query(`CREATE DATABASE ${name} OWNER trivet_owner`);
  await migrate(here(ownerUrl));
  holder = new pg.Client(here(superuserUrl));
  await holder.connect();
});
afterAll(async () => {
  await holder?.end();
  await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await server.end();
  await own?.drop();
});

/** A next release's. */
class Next1899999999999 implements Migration {
  readonly locks: Migration['locks'] = { worker: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.worker ADD COLUMN next_to_come text');
  }

  async down(): Promise<void> {}
}
const WITH_NEXT = [...MIGRATIONS, Next1899999999999] as typeof MIGRATIONS;
const HOLD = 'SELECT count(*) FROM trivet.worker';

it('one whose table is never free ends, says why, and has done nothing', async () => {
  await holder.query('BEGIN');
  await holder.query(HOLD);
  const failure: unknown = await migrate(here(ownerUrl), { patienceMs: 0, migrations: WITH_NEXT }).catch(
    error => error,
  );
  expect(failure).toMatchObject({ kind: 'unavailable', message: expect.stringContaining('pg_stat_activity') });
  await holder.query('ROLLBACK');
  expect((await migrate(here(ownerUrl))).applied).toEqual([]);
}, 60_000);

it('a migration that cannot have its table lets others go on, and is done once it can', async () => {
  await holder.query('BEGIN');
  await holder.query(HOLD);
  const said: string[] = [];
  const migrated = migrate(here(ownerUrl), { say: line => said.push(line), migrations: WITH_NEXT });
  await until('it gave the table up for now', () => said.length > 0);
  // It stands in line again and again, and nobody behind it for long.
  const other = new pg.Client({ connectionString: here(superuserUrl), statement_timeout: 10_000 });
  await other.connect();
  for (let n = 0; n < 3; n++) await other.query(HOLD);
  await other.end();
  await holder.query('COMMIT');
  expect((await migrated).applied).toEqual(['Next1899999999999']);
  expect(said).toHaveLength(1);
}, 60_000);

it('a release goes on with a newer schema, unless that says that it is too old', async () => {
  const database = await Database.connect({ appUrl: own.appUrl, applicationName: 'trivet:test', poolSize: 1 });
  try {
    await own.query('INSERT INTO trivet.migration ("timestamp", name) VALUES ($1, $2)', [SCHEMA_VERSION + 10, 'Newer']);
    await requireSchema(database);
    await own.query(endReleasesBefore(SCHEMA_VERSION));
    await requireSchema(database);
    await own.query(endReleasesBefore(SCHEMA_VERSION + 10));
    await expect(requireSchema(database)).rejects.toMatchObject({
      kind: 'failed_precondition',
      message: expect.stringContaining('update this program'),
    });
  } finally {
    await database.close();
  }
});
