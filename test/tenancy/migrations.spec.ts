import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { source } from '#platform/database/database';
import { Admin1795564800000 } from '#platform/migrations/0006-admin';
import { TargetIdentity1795910400000 } from '#platform/migrations/0011-target-identity';
import { MIGRATIONS } from '#platform/migrations/all';
import type { Migration } from '#platform/migrations/locks';
import { parts } from '#test/support/parts';

/** A database with nothing in it, in which each migration is done and undone. */
const name = `test_${randomBytes(6).toString('hex')}`;
const { superuserUrl, ownerUrl } = parts().postgres;
let server: pg.Client;
let looker: pg.Client;
let owner: DataSource;

const here = (url: string): string => Object.assign(new URL(url), { pathname: `/${name}` }).href;

beforeAll(async () => {
  server = new pg.Client(superuserUrl);
  await server.connect();
  await server.query(`CREATE DATABASE ${name} OWNER trivet_owner`);
  looker = new pg.Client(here(superuserUrl));
  await looker.connect();
  owner = await source(here(ownerUrl), 'trivet:test', 1).initialize();
  // TypeORM's own is of no interest; a function of the first migration reads it.
  await owner.query('CREATE SCHEMA trivet; CREATE TABLE trivet.migration ("timestamp" bigint)');
  await run(MIGRATIONS[0]!, 'up');
});
afterAll(async () => {
  await owner?.destroy();
  await looker?.end();
  await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await server.end();
});

/** What a release can tell of the schema: all but the order of columns, which nothing goes by. */
const CATALOGUE = `
WITH here AS (SELECT * FROM pg_class WHERE relnamespace = 'trivet'::regnamespace AND relkind IN ('r', 'S') AND relname <> 'migration')
SELECT concat_ws(' ', relname, relrowsecurity, relforcerowsecurity, reloptions::text, ARRAY(SELECT unnest(relacl)::text ORDER BY 1)::text) AS is
  FROM here
UNION ALL
SELECT concat_ws(' ', relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attstorage, pg_get_expr(adbin, adrelid), attacl::text)
  FROM here JOIN pg_attribute ON attrelid = here.oid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
 WHERE attnum > 0 AND NOT attisdropped
UNION ALL
SELECT pg_get_indexdef(indexrelid) FROM here JOIN pg_index ON indrelid = here.oid
UNION ALL
SELECT concat_ws(' ', relname, conname, pg_get_constraintdef(pg_constraint.oid)) FROM here JOIN pg_constraint ON conrelid = here.oid
UNION ALL
SELECT concat_ws(' ', tablename, policyname, roles::text, cmd, qual, with_check) FROM pg_policies WHERE schemaname = 'trivet'
UNION ALL
SELECT concat_ws(' ', pg_get_functiondef(oid), ARRAY(SELECT unnest(proacl)::text ORDER BY 1)::text)
  FROM pg_proc WHERE pronamespace = 'trivet'::regnamespace
UNION ALL
SELECT pg_get_triggerdef(pg_trigger.oid) FROM here JOIN pg_trigger ON tgrelid = here.oid WHERE NOT tgisinternal
ORDER BY 1`;
const catalogue = async (): Promise<string[]> => (await looker.query(CATALOGUE)).rows.map(row => row.is);

async function run(migration: (typeof MIGRATIONS)[number], way: 'up' | 'down'): Promise<void> {
  const runner = owner.createQueryRunner();
  const one: Migration = new migration();
  try {
    if (one.transaction !== false) await runner.startTransaction();
    await one[way]!(runner);
    if (runner.isTransactionActive) await runner.commitTransaction();
  } catch (error) {
    if (runner.isTransactionActive) await runner.rollbackTransaction();
    throw error;
  } finally {
    await runner.release();
  }
}

// The first one is undone with the whole schema.
it.each(MIGRATIONS.slice(1).map(migration => ({ named: migration.name, migration })))(
  '$named is undone to the last grant and can be done again, or says that it is not undone',
  async ({ migration }) => {
    const before = await catalogue();
    await run(migration, 'up');
    const after = await catalogue();
    expect(after).not.toEqual(before);
    if (migration === Admin1795564800000) {
      await expect(run(migration, 'down')).rejects.toMatchObject({ kind: 'failed_precondition' });
      return;
    }
    await run(migration, 'down');
    expect(await catalogue()).toEqual(before);
    await run(migration, 'up');
    expect(await catalogue()).toEqual(after);
  },
);

it('leaves published volumes the names and identities that hosts know them by', async () => {
  await run(TargetIdentity1795910400000, 'down');
  const [tenant, backend, volume, never] = Array.from({ length: 4 }, () => randomUUID());
  await looker.query("INSERT INTO trivet.tenant (id, name) VALUES ($1, 'old')", [tenant]);
  await looker.query(
    "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'local', 'reflink', '{}')",
    [tenant, backend],
  );
  for (const [id, tid] of [
    [volume, 7],
    [never, null],
  ])
    await looker.query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
         destroy_on_delete, description, config, tid)
       VALUES ($1, $2, $3, 'of-old', 'gone', '{}', '', 'default', '', 512, false, true, '', '{}', $4)`,
      [tenant, id, backend, tid],
    );
  await run(TargetIdentity1795910400000, 'up');
  const { rows } = await looker.query('SELECT id, target FROM trivet.volume ORDER BY tid');
  expect(rows).toEqual([
    {
      id: volume,
      target: { name: `iqn.2026-01.dev.trivet:${volume}`, vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'uuid' },
    },
    { id: never, target: null },
  ]);
});
