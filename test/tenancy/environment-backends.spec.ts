import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { parseKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import { setUp } from '#tenancy/setup/setup';
import { createDatabase, type TestDatabase } from '#test/support/database';

let database: TestDatabase;
const secrets = new SecretBox(parseKeyring(randomBytes(32).toString('base64'), 'kek'));
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database?.drop());

const files = (name: string, ...pools: string[]) => ({
  name,
  kind: 'reflink',
  config: { pools: pools.map(pool => ({ name: pool, path: `/srv/${name}-${pool}` })), exporter: { kind: 'none' } },
  credentials: {},
});
const setUpWith = (...backends: ReturnType<typeof files>[]) =>
  setUp(
    loadConfig(['TRIVET_DATABASE_OWNER_URL'], { TRIVET_DATABASE_OWNER_URL: database.ownerUrl }),
    secrets,
    () => false,
    backends,
  );
const registered = () =>
  database.query<{ name: string; pools: string }>(
    "SELECT name, config -> 'pools' -> 0 ->> 'name' AS pools FROM trivet.backend ORDER BY name",
  );

it('refuses a pool of the environment whose name another backend has, and keeps what was there', async () => {
  await expect(setUpWith(files('local', 'fast', 'ceph'), files('ceph', 'ceph'))).rejects.toThrow(
    'TRIVET_RBD_POOL: backend local has a pool ceph already',
  );
  expect(await registered()).toEqual([]);
  await setUpWith(files('other', 'slow'));
  await expect(setUpWith(files('local', 'slow'))).rejects.toThrow(
    'TRIVET_POOLS: backend other has a pool slow already',
  );
  await setUpWith(files('local', 'fast'));
  // From a release that did not refuse it: its other settings can be changed.
  await database.query(
    `UPDATE trivet.backend SET config = jsonb_set(config, '{pools,0,name}', '"slow"') WHERE name = 'local'`,
  );
  await setUpWith(files('local', 'slow', 'more'));
  expect(await registered()).toEqual([
    { name: 'local', pools: 'slow' },
    { name: 'other', pools: 'slow' },
  ]);
});
