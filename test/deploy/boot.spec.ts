import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT, programFile } from '#platform/package-root';
import { TcpProxy } from '#test/deploy/tcp-proxy';
import { compileCache } from '#test/support/compile-cache';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { freePort } from '#test/support/free-port';
import { parts, until } from '#test/support/parts';

const started: ChildProcess[] = [];
const folder = mkdtempSync(join(tmpdir(), 'trivet-boot-'));
let database: TestDatabase;
/** They wait 20 s for their backend, meanwhile the other tests run. */
let withoutBackend: ReturnType<typeof start>;
let misled: ReturnType<typeof start> | undefined;
let own: TestDatabase;
let env: Record<string, string>;

beforeAll(async () => {
  database = await createDatabase();
  const kek = join(folder, 'kek');
  writeFileSync(kek, randomBytes(32).toString('base64'), { mode: 0o600 });
  env = {
    ...compileCache(),
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    TRIVET_DATABASE_URL: database.appUrl,
    TRIVET_DATABASE_ENGINE_URL: database.engineUrl,
    TRIVET_REDIS_URL: parts().redis?.url ?? 'none',
    TRIVET_REDIS_PREFIX: `boot-${randomBytes(4).toString('hex')}`,
    TRIVET_KEK_FILE: kek,
    TRIVET_HOME: folder,
    // The default port belongs to whoever runs beside these tests.
    TRIVET_HTTPS_LISTEN: 'none',
    TRIVET_CBT_LISTEN: 'none',
  };
  withoutBackend = start('gateway', {
    TRIVET_HTTP_LISTEN: `127.0.0.1:${await freePort()}`,
    COSI_ENDPOINT: `unix://${folder}/none.sock`,
  });
  started.pop();
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});
afterAll(async () => {
  for (const waiting of [withoutBackend, misled]) waiting?.child.kill('SIGKILL');
  await removeQueues();
  await own?.drop();
  await database?.drop();
  rmSync(folder, { recursive: true });
});

/** Through the entry point of the image, as containers and units start it. */
function start(role: string, extra: Record<string, string | undefined> = {}) {
  const child = spawn('sh', [join(PACKAGE_ROOT, 'deploy/docker/entrypoint.sh'), role], {
    env: { ...env, ...extra },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', chunk => {
    stdout += chunk;
  });
  child.stderr.on('data', chunk => {
    stderr += chunk;
  });
  const exit = new Promise<number | null>(resolve => child.once('close', resolve));
  return { child, exit, stdout: () => stdout, stderr: () => stderr };
}

async function emptyDatabase(withSchema: boolean) {
  const name = `boot_${randomBytes(6).toString('hex')}`;
  const client = new pg.Client(parts().postgres.superuserUrl);
  await client.connect();
  await client.query(`CREATE DATABASE ${name} OWNER trivet_owner`);
  const url = (like: string) => Object.assign(new URL(like), { pathname: `/${name}` }).href;
  if (withSchema) {
    const owner = new pg.Client(url(parts().postgres.ownerUrl));
    await owner.connect();
    await owner.query('CREATE SCHEMA trivet');
    await owner.end();
  }
  return {
    url,
    drop: async () => {
      await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await client.end();
    },
  };
}

/** What BullMQ leaves behind in a Redis that other tests use too. */
async function removeQueues(): Promise<void> {
  if (env.TRIVET_REDIS_URL === 'none') return;
  const redis = new Redis(env.TRIVET_REDIS_URL!);
  const keys = await redis.keys(`${env.TRIVET_REDIS_PREFIX}:*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
}

const get = (port: number, path: string) =>
  fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } })
    .then(async reply => ({ status: reply.status, text: await reply.text() }))
    .catch(() => undefined);

async function ready(role: 'gateway' | 'worker', extra: Record<string, string | undefined> = {}) {
  const port = await freePort();
  const variable = role === 'gateway' ? 'TRIVET_HTTP_LISTEN' : 'TRIVET_WORKER_METRICS_LISTEN';
  const process = start(role, { [variable]: `127.0.0.1:${port}`, ...extra });
  await until(`${role} is ready`, async () => {
    if (process.child.exitCode !== null) throw new Error(`${role} ended: ${process.stderr()}${process.stdout()}`);
    return (await get(port, '/readyz'))?.status === 200;
  });
  return { ...process, port };
}

const refused = async (process: ReturnType<typeof start>, line: RegExp) => {
  expect(await process.exit, process.stdout()).toBe(78);
  expect(process.stderr()).toMatch(line);
  expect(process.stderr().trim().split('\n')).toHaveLength(1);
};

describe.each(['gateway', 'worker'] as const)('%s on an older Node', role => {
  it('says in one line which one it needs', async () => {
    // As Debian 13's looks to a program: its version, and no argon2.
    const older = `data:text/javascript,
      import crypto from 'node:crypto'; 
      Object.defineProperty(process.versions, 'node', { value: '20.19.2' });
      delete crypto.argon2; delete Map.groupBy;`;
    const main = programFile(role);
    const child = spawn(process.execPath, ['--import', older, main], { stdio: ['ignore', 'inherit', 'pipe'] });
    started.push(child);
    const [lines, code] = await Promise.all([text(child.stderr), new Promise(resolve => child.once('close', resolve))]);
    const own = join(PACKAGE_ROOT, 'node_modules', '.trivet', 'node');
    expect({ lines, code }).toEqual({
      lines: `trivet: configuration: Node 20.19.2 is too old: 24 is needed; ${own} is\n`,
      code: 78,
    });
  });
});

describe('the backend of COSI_ENDPOINT', () => {
  let settings: Record<string, string>;
  beforeAll(async () => {
    own = await createDatabase();
    const key = join(folder, 'rgw-key');
    writeFileSync(key, 'nobody asks the store');
    settings = {
      TRIVET_DATABASE_URL: own.appUrl,
      TRIVET_DATABASE_ENGINE_URL: own.engineUrl,
      COSI_ENDPOINT: `unix://${folder}/cosi.sock`,
      TRIVET_RGW_ENDPOINT: 'http://127.0.0.1:1',
      TRIVET_RGW_ACCESS_KEY_FILE: key,
      TRIVET_RGW_SECRET_KEY_FILE: key,
    };
  });

  const migrate = (extra: Record<string, string | undefined>) =>
    start('migrate', { ...settings, TRIVET_DATABASE_OWNER_URL: own.ownerUrl, ...extra });

  it('is waited for while `migrate` has not bound it, and is the one that the gateway was told', async () => {
    const port = await freePort();
    const listen = { TRIVET_HTTP_LISTEN: `127.0.0.1:${port}` };
    const gateway = start('gateway', { ...settings, ...listen });
    await until('it serves HTTP', async () => (await get(port, '/livez'))?.status === 200);
    const bind = migrate({ COSI_ENDPOINT: undefined });
    expect(await bind.exit, bind.stderr()).toBe(0);
    await until('it is ready', async () => (await get(port, '/readyz'))?.status === 200);
    gateway.child.kill('SIGTERM');
    expect(await gateway.exit).toBe(0);
    misled = start('gateway', { ...settings, ...listen, TRIVET_COSI_BACKEND: 'nonesuch' });
    started.pop();
  });

  it('is one that is registered, and holds buckets', async () => {
    const pools = { TRIVET_POOLS: `default=${folder}` };
    const line = (what: string) => new RegExp(`^trivet: configuration: TRIVET_COSI_BACKEND: .*${what}`);
    await refused(migrate({ TRIVET_COSI_BACKEND: 'nonesuch' }), line('no backend is named nonesuch'));
    await refused(migrate({ ...pools, TRIVET_COSI_BACKEND: 'local' }), line('local holds volumes'));
  });
});

describe('migrate', () => {
  it('ends with 0 each time', async () => {
    for (const _ of [1, 2]) {
      const run = start('migrate', { TRIVET_DATABASE_OWNER_URL: database.ownerUrl });
      expect(await run.exit, run.stderr()).toBe(0);
    }
  });

  it('ends with 78 and one line when nothing answers, as the systemd unit that repeats it expects', async () => {
    await refused(
      start('migrate', { TRIVET_DATABASE_OWNER_URL: 'postgresql://trivet_owner:cAnArY@127.0.0.1:1/trivet' }),
      /^trivet: configuration: TRIVET_DATABASE_OWNER_URL: cannot connect to PostgreSQL at 127\.0\.0\.1:1: (?!.*cAnArY)/,
    );
  });
});

/** Of tests: what test/entry takes, and what was taken before. */
const OF_TESTS = {
  TRIVET_FAILPOINT: '*=kill',
  TRIVET_FAILPOINTS: '1',
  TRIVET_FAKE_BACKEND_FILE: '/tmp/x',
  TRIVET_FAKE_BLOCK_FILE: '/tmp/x',
};

describe.each(['gateway', 'worker', 'migrate'])('%s', role => {
  it('ends with 78 and one line for each setting of tests', async () => {
    const run = start(role, { TRIVET_DATABASE_OWNER_URL: database.ownerUrl, ...OF_TESTS });
    expect(await run.exit, run.stdout()).toBe(78);
    const lines = Object.keys(OF_TESTS).map(name => `trivet: configuration: ${name}: unknown variable`);
    expect(run.stderr().trim().split('\n').sort()).toEqual(lines.sort());
  });
});

describe.each(['gateway', 'worker'] as const)('%s', role => {
  it('starts, serves health and metrics, and stops with 0 on SIGTERM', async () => {
    const { child, exit, port, stdout, stderr } = await ready(role);
    expect(await get(port, '/livez')).toMatchObject({ status: 200 });
    // A worker that has not looked at its pools would have every new volume refused.
    const needed = role === 'worker' ? ['database', 'pools', 'stores'] : ['database'];
    const { checks } = JSON.parse((await get(port, '/readyz'))!.text);
    expect(checks).toEqual(Object.fromEntries(needed.map(name => [name, { state: 'ok' }])));
    const { text } = (await get(port, '/metrics'))!;
    expect(text).toContain(`trivet_build_info{app="${role}",`);
    expect(text).toContain('process_resident_memory_bytes');
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
    expect(stderr()).toBe('');
    const lines = stdout()
      .trim()
      .split('\n')
      .map(line => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'stopped' });
    expect(lines.filter(({ level }) => ['warn', 'error', 'fatal'].includes(level))).toEqual([]);
  });

  it('lives on without its database, is not ready meanwhile, and becomes ready again', async () => {
    const target = new URL(database.appUrl);
    const proxy = await TcpProxy.to(target.hostname, Number(target.port));
    const through = (url: string) => Object.assign(new URL(url), { host: `127.0.0.1:${proxy.port}` }).href;
    try {
      const { port, child, exit } = await ready(role, {
        TRIVET_DATABASE_URL: through(database.appUrl),
        TRIVET_DATABASE_ENGINE_URL: through(database.engineUrl),
      });
      proxy.cut();
      const down = await until('not ready', async () => {
        const reply = await get(port, '/readyz');
        return reply?.status === 503 ? reply.text : undefined;
      });
      expect(JSON.parse(down)).toMatchObject({ state: 'not_ready', checks: { database: { state: 'failed' } } });
      expect(down).not.toContain(target.password);
      expect((await get(port, '/livez'))?.status).toBe(200);
      proxy.mend();
      await until('ready again', async () => (await get(port, '/readyz'))?.status === 200);
      child.kill('SIGTERM');
      expect(await exit).toBe(0);
    } finally {
      await proxy.close();
    }
  });

  // The schema is made before the migrations, and until they end nobody may use it.
  it.each([false, true])('waits for the migration of a new database (schema there: %s)', async withSchema => {
    const empty = await emptyDatabase(withSchema);
    try {
      const port = await freePort();
      const listen = role === 'gateway' ? 'TRIVET_HTTP_LISTEN' : 'TRIVET_WORKER_METRICS_LISTEN';
      const process = start(role, {
        TRIVET_DATABASE_URL: empty.url(database.appUrl),
        TRIVET_DATABASE_ENGINE_URL: empty.url(database.engineUrl),
        [listen]: `127.0.0.1:${port}`,
      });
      await until('it waits', () => process.stdout().includes('run `trivet migrate`'));
      const migrate = start('migrate', { TRIVET_DATABASE_OWNER_URL: empty.url(database.ownerUrl) });
      expect(await migrate.exit, migrate.stderr()).toBe(0);
      await until(`${role} is ready`, async () => (await get(port, '/readyz'))?.status === 200);
      process.child.kill('SIGTERM');
      expect(await process.exit).toBe(0);
    } finally {
      await empty.drop();
    }
  });

  it('ends with 78 and one line for each variable that is wrong', async () => {
    const run = start(role, {
      TRIVET_KEK_FILE: undefined,
      TRIVET_LEASE_MS: 'soon',
      TRIVET_TYPO: '1',
    });
    expect(await run.exit).toBe(78);
    const lines = run.stderr().trim().split('\n');
    expect(lines.map(line => line.match(/^trivet: configuration: (\w+): \S/)?.[1]).sort()).toEqual([
      'TRIVET_KEK_FILE',
      'TRIVET_LEASE_MS',
      'TRIVET_TYPO',
    ]);
  });

  it('ends with 78 and one line when PostgreSQL refuses it', async () => {
    const wrong = new URL(database.appUrl);
    wrong.password = 'cAnArY-wrong';
    const nowhere = new URL(database.appUrl);
    nowhere.pathname = '/no_such_database';
    const listen = `127.0.0.1:${await freePort()}`;
    const own = { TRIVET_HTTP_LISTEN: listen, TRIVET_WORKER_METRICS_LISTEN: listen };
    const refused = async (url: URL, why: string) => {
      const run = start(role, { ...own, TRIVET_DATABASE_URL: url.href });
      expect(await run.exit, run.stdout()).toBe(78);
      expect(run.stderr()).toContain(why);
      expect(run.stderr().trim().split('\n')).toHaveLength(1);
      expect(run.stdout() + run.stderr()).not.toContain('cAnArY');
    };
    await refused(wrong, 'refuses this user or password');
    await refused(nowhere, 'there is no database no_such_database');
  });

  it('ends with 78 and one line when its address is taken', async () => {
    const server = createServer();
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const variable = role === 'gateway' ? 'TRIVET_HTTP_LISTEN' : 'TRIVET_WORKER_METRICS_LISTEN';
    try {
      const run = start(role, { [variable]: `127.0.0.1:${port}` });
      expect(await run.exit, run.stdout()).toBe(78);
      expect(run.stderr()).toMatch(new RegExp(`^trivet: configuration: ${variable}: .*in use.*\n$`));
    } finally {
      await new Promise(resolve => server.close(resolve));
    }
  });
});

describe('a gateway without the backend that it was told', () => {
  it('ends with 78 and one line when `migrate` binds none, or another one', async () => {
    await refused(misled!, /^trivet: configuration: TRIVET_COSI_BACKEND: .* the backend rgw and not nonesuch: /);
    await refused(withoutBackend, /^trivet: configuration: TRIVET_COSI_BACKEND: COSI_ENDPOINT has no backend /);
  }, 40_000);
});
