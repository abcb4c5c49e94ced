import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dump } from '#platform/dump/dump';
import { DumpWriter, readDump } from '#platform/dump/dump-file';
import { MIGRATIONS } from '#platform/migrations/all';
import { programFile } from '#platform/package-root';
import { MIGRATION_LOCK, migrate } from '#platform/schema/migrate';
import { type Credentials, credentialsOf, Jobs, persist } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { CSP_PASSWORD } from '#test/support/block-folders';
import { compileCache } from '#test/support/compile-cache';
import { parts, until } from '#test/support/parts';

/** An appliance that works while it is backed up, and databases that it is restored into. */
let appliance: TestAppliance;
let jobs: Jobs;
let folder: string;
let file: string;
let secret: Credentials;
const databases: string[] = [];

const superuser = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client(parts().postgres.superuserUrl);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};
const inDatabase = (url: string, name: string): string => Object.assign(new URL(url), { pathname: `/${name}` }).href;

async function emptyDatabase(): Promise<string> {
  const name = `restored_${randomBytes(6).toString('hex')}`;
  await superuser(client => client.query(`CREATE DATABASE ${name} OWNER trivet_owner`));
  databases.push(name);
  return name;
}

interface Said {
  code: number;
  said: string;
}

const MAIN = programFile('trivet');
const environmentOf = (env: Record<string, string>) => ({
  PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
  TRIVET_HOME: join(folder, 'no-home'),
  ...compileCache(),
  ...env,
});

function trivet(env: Record<string, string>, ...words: string[]): Promise<Said> {
  return new Promise(resolve => {
    execFile(process.execPath, [MAIN, ...words], { env: environmentOf(env), cwd: '/' }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), said: stdout + stderr }),
    );
  });
}
const startTrivet = (env: Record<string, string>, ...words: string[]): ChildProcess =>
  spawn(process.execPath, [MAIN, ...words], { env: environmentOf(env), cwd: '/', stdio: 'ignore' });
const keyFile = () => ({ TRIVET_KEK_FILE: appliance.env.TRIVET_KEK_FILE! });
const owner = (name?: string) => ({
  ...keyFile(),
  TRIVET_DATABASE_OWNER_URL: name ? inDatabase(parts().postgres.ownerUrl, name) : appliance.database.ownerUrl,
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'state-backup-'));
  file = join(folder, 'trivet.dump');
  appliance = await TestAppliance.start({ backend: 'fake' });
  jobs = new Jobs(appliance.client());
});
afterAll(async () => {
  await appliance?.close();
  await superuser(async client => {
    for (const name of databases) await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const created = async (name: string): Promise<string> => (await persist(() => jobs.create(name))).at(-1)!.code;
const granted = async (name: string) =>
  credentialsOf((await persist(() => jobs.grant(name, [[name, 'READ_WRITE']]))).at(-1)!);
/** Past every policy. */
const rowsIn = async <Row extends object>(name: string, text: string): Promise<Row[]> => {
  const client = new pg.Client(inDatabase(parts().postgres.superuserUrl, name));
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
};
const dataOf = async (path: string): Promise<Record<string, string>> => {
  const found: Record<string, string> = {};
  for await (const { name, bytes } of readDump(path))
    if (name.startsWith('data/')) found[name] = bytes.toString('utf8');
  return found;
};

it('is taken while buckets are made, and is of one instant', async () => {
  expect(await created('kept')).toBe('OK');
  secret = await granted('kept');
  const busy = Promise.all(Array.from({ length: 20 }, (_, n) => created(`busy-${n}`)));
  const { code, said } = await trivet({ ...owner(), TRIVET_LEASE_MS: '3000' }, 'appliance', 'backup', file);
  expect(said).toMatch(/trivet\.dump: \d+ rows, .*\n.*of no use without the key file/);
  expect(code).toBe(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['trivet.dump']);
  expect(new Set(await busy)).toEqual(new Set(['OK']));
});

it('has no secret in it that opens without the key file', async () => {
  const text = Object.values(await dataOf(file)).join();
  expect(text).toContain('kept');
  for (const hidden of [secret.secretAccessKey, parts().postgres.ownerUrl, CSP_PASSWORD])
    expect(text).not.toContain(hidden);
});

it('is checked by a restore that leaves nothing, and each secret is opened', async () => {
  const { code, said } = await trivet(keyFile(), 'appliance', 'check', file);
  expect(said).toMatch(/restored on trial: \d+ rows/);
  expect(said).toMatch(/bucket: \d+, access: 1, /);
  expect(said).toMatch(/[1-9]\d* sealed secrets, and the key file opens each/);
  expect(code).toBe(0);
  const { said: without } = await trivet({}, 'appliance', 'check', file);
  expect(without).toContain('were not opened: no key file is here');
});

describe('a restore', () => {
  it('brings each row back, and callers the same answers', async () => {
    const name = await emptyDatabase();
    const restored = await trivet(owner(name), 'appliance', 'restore', file);
    expect(restored.said).toMatch(/which is the one that counts now/);
    expect(restored.said).toContain(`TRIVET_LEASE_MS=3000  (here: not set)`);
    expect(restored.code).toBe(0);

    const again = join(folder, 'again.dump');
    expect((await trivet(owner(name), 'appliance', 'backup', again)).code).toBe(0);
    const [before, after] = [await dataOf(file), await dataOf(again)];
    // What declares it is new.
    for (const data of [before, after]) delete data['data/database_restore/000001'];
    expect(after).toEqual(before);
    expect(
      await rowsIn(
        name,
        "SELECT relname FROM pg_class WHERE relnamespace = 'trivet'::regnamespace AND relrowsecurity AND NOT relforcerowsecurity",
      ),
    ).toEqual([]);
    expect(await rowsIn(name, "SELECT tgname FROM pg_trigger WHERE tgenabled = 'D'")).toEqual([]);
    const keys =
      "SELECT count(*) FROM pg_constraint WHERE connamespace = 'trivet'::regnamespace AND contype = 'f' AND convalidated";
    expect(await rowsIn(name, keys)).toEqual(await appliance.database.query(keys));

    // A bucket and its operation are accepted together, and their tables are read one after the other.
    const alone = `SELECT b.name, o.resource_name FROM trivet.bucket b FULL JOIN trivet.operation o ON o.resource_id = b.id AND o.kind = 'bucket.create'
                    WHERE b.id IS NULL AND o.kind = 'bucket.create' OR o.id IS NULL`;
    expect(await rowsIn(name, alone)).toEqual([]);
    const [standing] = await rowsIn<{ number: string }>(name, 'SELECT number FROM trivet.database_standing()');
    expect(Number(standing!.number)).toBeGreaterThan(1e15);

    // The old appliance ends, and the restored one has its place.
    await Promise.all(appliance.processes.map(process => process.stop()));
    const { appUrl, engineUrl } = appliance.database;
    const env = {
      TRIVET_DATABASE_URL: inDatabase(appUrl, name),
      TRIVET_DATABASE_ENGINE_URL: inDatabase(engineUrl, name),
    };
    await Promise.all([appliance.gateway(env), appliance.worker(env)]);
    jobs = new Jobs(appliance.client());
    expect(await created('kept')).toBe('OK');
    expect(await granted('kept')).toEqual(secret);
    // Sequences, triggers and tallies go on.
    expect(await created('new')).toBe('OK');
    expect(await rowsIn(name, "SELECT state FROM trivet.bucket WHERE name = 'new'")).toEqual([{ state: 'ready' }]);
  });

  it('that is killed has done nothing, and is repeated', async () => {
    const name = await emptyDatabase();
    await migrate(owner(name).TRIVET_DATABASE_OWNER_URL);
    const holder = new pg.Client(inDatabase(parts().postgres.superuserUrl, name));
    await holder.connect();
    await holder.query('BEGIN; LOCK TABLE trivet.volume IN ACCESS SHARE MODE');
    const child = startTrivet(owner(name), 'appliance', 'restore', file);
    await until('it waits for the table', async () => {
      const waiting = await rowsIn(
        name,
        "SELECT FROM pg_locks WHERE NOT granted AND relation = 'trivet.volume'::regclass",
      );
      return waiting.length > 0;
    });
    child.kill('SIGKILL');
    await once(child, 'close');
    await holder.end();
    await until('its transaction has ended', async () => {
      const left = await rowsIn(
        name,
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND usename = 'trivet_owner'",
      );
      return left.length === 0;
    });
    expect(await rowsIn(name, 'SELECT FROM trivet.bucket')).toEqual([]);
    // Processes that come upon it leave it alone.
    expect(await rowsIn(name, 'SELECT number FROM trivet.database_standing()')).toEqual([{ number: null }]);
    expect((await trivet(owner(name), 'appliance', 'restore', file)).code).toBe(0);
    expect(await rowsIn(name, "SELECT name FROM trivet.bucket WHERE name = 'kept'")).toEqual([{ name: 'kept' }]);
  });

  it('takes what an older release wrote, and has done what its migrations do since', async () => {
    const [older, newer, migrated] = [await emptyDatabase(), await emptyDatabase(), await emptyDatabase()];
    const old = join(folder, 'old.dump');
    const urlOf = (name: string) => owner(name).TRIVET_DATABASE_OWNER_URL;
    await migrate(urlOf(older), { migrations: MIGRATIONS.slice(0, -4) });
    await dump(urlOf(older), old, { release: '0.0.9', settings: {} });
    expect((await trivet(owner(newer), 'appliance', 'restore', old)).code).toBe(0);
    const applied = 'SELECT name FROM trivet.migration ORDER BY id';
    expect(await rowsIn(newer, applied)).toEqual(MIGRATIONS.map(({ name }) => ({ name })));

    await migrate(urlOf(migrated));
    const { code, said } = await trivet(owner(migrated), 'appliance', 'restore', old);
    expect(said).toContain('was migrated by a later release than the backup');
    expect(code).not.toBe(0);
  });

  it('refuses a database that holds an appliance', async () => {
    const { code, said } = await trivet(owner(), 'appliance', 'restore', file);
    expect(said).toContain('holds an appliance already, which nothing replaces');
    expect(code).not.toBe(0);
  });

  it('refuses without the key that its secrets are sealed with, and says which', async () => {
    const name = await emptyDatabase();
    const other = join(folder, 'other-kek');
    writeFileSync(other, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
    const { code, said } = await trivet({ ...owner(name), TRIVET_KEK_FILE: other }, 'appliance', 'restore', file);
    expect(said).toMatch(/sealed with key [0-9a-f]{16}, and TRIVET_KEK_FILE holds [0-9a-f]{16}\n.*nothing was changed/);
    expect(code).toBe(78);
    expect(await rowsIn(name, "SELECT FROM pg_namespace WHERE nspname = 'trivet'")).toEqual([]);
  });

  it('refuses what is cut off, changed, of a newer release, or no such file, and fills nothing', async () => {
    const name = await emptyDatabase();
    const whole = readFileSync(file);
    const bad = join(folder, 'bad.dump');
    const said = async () => (await trivet(owner(name), 'appliance', 'restore', bad)).said;
    writeFileSync(bad, whole.subarray(0, whole.length - 200));
    expect(await said()).toMatch(/bad\.dump is damaged: /);
    const changed = Buffer.from(whole);
    changed[Math.floor(whole.length * 0.7)]! ^= 0x55;
    writeFileSync(bad, changed);
    expect(await said()).toMatch(/bad\.dump is damaged: /);
    writeFileSync(bad, 'hello');
    expect(await said()).toMatch(/bad\.dump is damaged: /);
    expect(await rowsIn(name, 'SELECT FROM trivet.bucket').catch(() => [])).toEqual([]);
    rmSync(bad);
    expect(await said()).toMatch(/cannot read .*bad\.dump: ENOENT/);

    const writer = new DumpWriter(bad);
    await writer.add(
      'about.json',
      Buffer.from(JSON.stringify({ format: 1, release: '9.0.0', migrations: ['Later1'] })),
    );
    await writer.finish();
    expect(await said()).toMatch(
      /written by release 9\.0\.0, which is newer than this one \(Later1\): restore it with that release/,
    );
  });
});

it('a backup waits for no call, and migrations for it', async () => {
  const client = new pg.Client(appliance.database.superuserUrl);
  await client.connect();
  await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
  const waiting = join(folder, 'waiting.dump');
  const taken = trivet(owner(), 'appliance', 'backup', waiting);
  await until('it waits for the migration', async () => {
    const { rows } = await client.query(
      `SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%try_advisory_lock_shared%'`,
    );
    return rows.length > 0;
  });
  expect(existsSync(waiting)).toBe(false);
  await client.end();
  expect((await taken).code).toBe(0);
  expect(existsSync(waiting)).toBe(true);
});

it('a backup refuses another key than its secrets are sealed with, and leaves nothing', async () => {
  const other = join(folder, 'other-kek');
  writeFileSync(other, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  const { code, said } = await trivet(
    { ...owner(), TRIVET_KEK_FILE: other },
    'appliance',
    'backup',
    join(folder, 'no.dump'),
  );
  expect(said).toMatch(/sealed with key [0-9a-f]{16}, and TRIVET_KEK_FILE holds/);
  expect(code).toBe(78);
  expect(readdirSync(folder).filter(name => name.startsWith('no.dump'))).toEqual([]);
});

it('a backup writes over nothing', async () => {
  const before = statSync(file).mtimeMs;
  const { code, said } = await trivet(owner(), 'appliance', 'backup', file);
  expect(said).toContain('is there already; name another file');
  expect(code).toBe(2);
  expect(statSync(file).mtimeMs).toBe(before);
});
