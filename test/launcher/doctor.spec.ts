import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOME_MARK } from '#platform/config/config';
import { programFile } from '#platform/package-root';
import { TestAppliance } from '#test/support/appliance';
import { freePort } from '#test/support/free-port';
import { parts, until } from '#test/support/parts';
import { OwnPostgres } from '#test/support/postgres-server';
import { OwnRedis } from '#test/support/redis-server';
import type { Finding } from '../../apps/cli/src/doctor/check.js';
import { Home } from '../../apps/cli/src/home.js';

const MAIN = programFile('trivet');

/** Each finding of doctor, by a set-up that is broken in just that way; the settings are those of a container. */
let postgres: OwnPostgres;
let appliance: TestAppliance;
let folder: string;
beforeAll(async () => {
  // The one that a run of tests shares waits for no disk, which doctor finds.
  postgres = await OwnPostgres.start({ throwAway: false });
  appliance = await TestAppliance.start({ backend: 'fake', postgres: postgres.urls });
  folder = mkdtempSync(join(tmpdir(), 'trivet-doctor-'));
});
afterAll(async () => {
  await appliance?.close();
  await postgres?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Report {
  code: number;
  ok: boolean;
  findings: Finding[];
}

function doctor(change: Record<string, string> = {}, settings = appliance.env): Promise<Report> {
  const env = { PATH: '/usr/bin:/bin', ...settings, TRIVET_HOME: join(folder, 'none'), ...change };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [MAIN, 'doctor', '--json'], { env }, (error, stdout, stderr) => {
      if (stdout === '') reject(new Error(stderr));
      else resolve({ code: error === null ? 0 : Number(error.code), ...(JSON.parse(stdout) as Omit<Report, 'code'>) });
    });
  });
}

const of = ({ findings }: Report, name: string) => findings.filter(finding => finding.name === name);

/** It is found, doctor fails, and there is something to do about it. */
function expectFailure(report: Report, name: string, detail: string | RegExp): void {
  expect(report).toMatchObject({ code: 1, ok: false });
  expect(of(report, name)).toContainEqual({
    name,
    level: 'fail',
    detail: typeof detail === 'string' ? expect.stringContaining(detail) : expect.stringMatching(detail),
    remedy: expect.stringMatching(/\w/),
  });
}

describe('trivet doctor', () => {
  it('finds nothing wrong where nothing is', async () => {
    const report = await doctor();
    expect(report.findings.filter(({ level }) => level === 'fail')).toEqual([]);
    expect(report).toMatchObject({ code: 0, ok: true });
    const names = report.findings.map(({ name }) => name);
    const all = [
      'node',
      'disk',
      'time server',
      'key file',
      'postgres',
      'schema',
      'stored secrets',
      'engine role',
      'redis',
    ];
    expect(names).toEqual(expect.arrayContaining([...all, 'COSI socket']));
  });

  it('has something to do for whatever is not well', async () => {
    for (const { level, remedy } of (await doctor({ TRIVET_REDIS_URL: 'redis://127.0.0.1:1' })).findings)
      if (level !== 'ok') expect(remedy).toMatch(/\w/);
  });

  it('PostgreSQL that does not answer, and one that refuses the password', async () => {
    const port = await freePort();
    expectFailure(
      await doctor({ TRIVET_DATABASE_URL: `postgresql://u:p@127.0.0.1:${port}/x` }),
      'postgres',
      'ECONNREFUSED',
    );
    const url = new URL(appliance.env.TRIVET_DATABASE_URL!);
    url.password = 'wrong';
    expectFailure(await doctor({ TRIVET_DATABASE_URL: url.href }), 'postgres', 'password authentication failed');
  });

  it('an application role that sees all tenants, and an engine role that sees too much', async () => {
    const { superuserUrl, appUrl } = appliance.database;
    expectFailure(await doctor({ TRIVET_DATABASE_URL: superuserUrl }), 'postgres', 'can bypass row security');
    expectFailure(await doctor({ TRIVET_DATABASE_ENGINE_URL: superuserUrl }), 'engine role', 'can bypass row security');
    expectFailure(await doctor({ TRIVET_DATABASE_ENGINE_URL: appUrl }), 'engine role', 'may read secrets');
  });

  it('a database that nobody has migrated', async () => {
    const url = new URL(parts().postgres.appUrl);
    url.pathname = '/postgres';
    const report = await doctor({ TRIVET_DATABASE_URL: url.href });
    expectFailure(report, 'schema', 'there is none');
    expect(of(report, 'schema')[0]!.remedy).toContain('migrate');
  });

  it('a key file that others may read, that is none, and that belongs to another database', async () => {
    const kek = (name: string, content: string, mode = 0o600): string => {
      const path = join(folder, name);
      writeFileSync(path, content);
      chmodSync(path, mode);
      return path;
    };
    const another = `${randomBytes(32).toString('base64')}\n`;
    expectFailure(await doctor({ TRIVET_KEK_FILE: kek('open', another, 0o644) }), 'key file', 'has mode 644');
    expectFailure(await doctor({ TRIVET_KEK_FILE: kek('short', 'abc\n') }), 'key file', '');
    expectFailure(await doctor({ TRIVET_KEK_FILE: join(folder, 'nowhere') }), 'key file', 'nowhere');
    expectFailure(
      await doctor({ TRIVET_KEK_FILE: kek('other', another) }),
      'stored secrets',
      /^the key file opens 0 of [1-9]/,
    );
  });

  it.runIf(parts().redis)('a Redis that forgets jobs, and one that is away', async () => {
    const redis = await OwnRedis.reserve();
    try {
      await redis.start();
      const report = await doctor({ TRIVET_REDIS_URL: redis.url });
      expect(of(report, 'redis')).toMatchObject([
        { level: 'warn', detail: 'appendonly is off', remedy: expect.any(String) },
      ]);
      await redis.kill();
      expectFailure(await doctor({ TRIVET_REDIS_URL: redis.url }), 'redis', 'ECONNREFUSED');
    } finally {
      await redis.close();
    }
  });

  it('a socket that is missing, open to everybody, replaceable, deaf, or no socket', async () => {
    const at = (name: string) => join(folder, name, 'cosi.sock');
    const endpoint = (name: string) => ({ COSI_ENDPOINT: `unix://${at(name)}` });
    expectFailure(await doctor(endpoint('missing')), 'COSI socket', 'does not exist');
    mkdirSync(join(folder, 'file'));
    writeFileSync(at('file'), '');
    expectFailure(await doctor(endpoint('file')), 'COSI socket', 'is no socket');
    mkdirSync(join(folder, 'deaf'));
    const server: Server = createServer(socket => socket.on('error', () => {})).listen(at('deaf'));
    await once(server, 'listening');
    try {
      chmodSync(at('deaf'), 0o666);
      chmodSync(join(folder, 'deaf'), 0o777);
      const report = await doctor(endpoint('deaf'));
      expectFailure(report, 'COSI socket', 'everybody may connect');
      expectFailure(report, 'COSI socket', 'everybody may put another socket');
      expectFailure(report, 'COSI socket', 'does not answer');
    } finally {
      server.close();
    }
  });

  it('volumes of before sizes were whole blocks, of every tenant, each with what to do', async () => {
    const { query } = appliance.database;
    const [own, other] = ['default', 'with-old-volumes'];
    await query('INSERT INTO trivet.tenant (id, name) VALUES (gen_random_uuid(), $1)', [other]);
    const volume = async (tenant: string, name: string, bytes: number, state = 'ready') => {
      await query(
        `INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
         SELECT id, gen_random_uuid(), 'old', 'reflink', '{"pools": []}' FROM trivet.tenant WHERE name = $1
         ON CONFLICT DO NOTHING`,
        [tenant],
      );
      await query(
        `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
           destroy_on_delete, description, config)
         SELECT b.tenant_id, gen_random_uuid(), b.id, $2, $4, '{}', '', 'default', '', $3, false, true, '', '{}'
           FROM trivet.backend b JOIN trivet.tenant t ON t.id = b.tenant_id WHERE t.name = $1 AND b.name = 'old'`,
        [tenant, name, bytes, state],
      );
    };
    await volume(own, 'odd', 5);
    await volume(own, 'whole', 1_024);
    await volume(own, 'odd-and-gone', 7, 'gone');
    await volume(own, 'odd-in-the-bin', 513, 'binned');
    await volume(other, 'odd-of-another', 1_000);
    const report = await doctor({ TRIVET_POOLS: `default=${folder}` });
    const told = (name: string, bytes: number): Finding => ({
      name: `volume ${name}`,
      level: 'warn',
      detail: `its size, ${bytes} bytes, is no multiple of 512: hosts see the rest of its last block as well`,
      remedy: 'expand it to a multiple of 512 bytes',
    });
    const found = report.findings
      .filter(({ name }) => name.startsWith('volume '))
      .sort((a, b) => a.name.localeCompare(b.name));
    expect(found).toEqual([told('odd', 5), told('odd-in-the-bin', 513), told('odd-of-another', 1_000)]);
    expect(report).toMatchObject({ code: 0, ok: true });
  });

  it('pools of one name that two backends of a tenant have', async () => {
    const { query } = appliance.database;
    const tenant = 'with-one-pool-twice';
    await query('INSERT INTO trivet.tenant (id, name) VALUES (gen_random_uuid(), $1)', [tenant]);
    for (const name of ['near', 'far'])
      await query(
        `INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
         SELECT id, gen_random_uuid(), $2, 'reflink', '{"pools": [{"name": "fast", "path": "/srv/fast"}]}' FROM trivet.tenant WHERE name = $1`,
        [tenant, name],
      );
    const { findings } = await doctor({ TRIVET_POOLS: `default=${folder}` });
    const found = findings.find(({ name }) => name === 'pool fast');
    expect(found).toMatchObject({
      level: 'warn',
      detail: expect.stringContaining('one tenant has it in far and near'),
    });
  });

  it('a setting that is wrong', async () => {
    expectFailure(await doctor({ TRIVET_LEASE_MS: 'long' }), 'settings', 'TRIVET_LEASE_MS');
  });

  it('an object store and an API that are away', async () => {
    const port = await freePort();
    const report = await doctor({
      TRIVET_RGW_ENDPOINT: `http://127.0.0.1:${port}`,
      TRIVET_ADMIN_URL: `http://127.0.0.1:${port}`,
      TRIVET_ADMIN_TOKEN_FILE: join(folder, 'no-token'),
    });
    expectFailure(report, 'object store', '');
    expectFailure(report, 'admin API', 'no-token');
  });

  it('a home that does not exist and cannot be made, with and without settings', async () => {
    const bare = (home: string) => doctor({ TRIVET_HOME: home }, {});
    const nowhere = '/proc/nope does not exist, and cannot be made: /proc can hold no files';
    const without = await bare('/proc/nope');
    for (const report of [without, await doctor({ TRIVET_HOME: '/proc/nope' })]) {
      expectFailure(report, 'home', nowhere);
      expect(of(report, 'disk')).toEqual([]);
    }
    expect(of(without, 'appliance')).toEqual([]);
    const file = join(folder, 'no-folder');
    writeFileSync(file, '');
    expectFailure(await bare(join(file, 'home')), 'home', `${file} is not a folder`);
    expect(of(await bare(join(folder, 'none')), 'appliance')[0]?.remedy).toBe('./trivet up --detach');
  });

  it('processes that a home left behind', async () => {
    const home = Home.open(join(folder, 'home'));
    const left = spawn('/bin/sleep', ['1000'], { stdio: 'ignore', env: { [HOME_MARK]: home.path } });
    try {
      await once(left, 'spawn');
      const report = await until('it bears the mark', async () => {
        const now = await new Promise<Report>((resolve, reject) => {
          const env = { PATH: '/usr/bin:/bin', TRIVET_HOME: home.path };
          execFile(process.execPath, [MAIN, 'doctor', '--json'], { env }, (_, stdout, stderr) =>
            stdout === '' ? reject(new Error(stderr)) : resolve(JSON.parse(stdout) as Report),
          );
        });
        return of(now, 'leftover process').length > 0 ? now : undefined;
      });
      expect(of(report, 'leftover process')).toEqual([
        {
          name: 'leftover process',
          level: 'warn',
          detail: `sleep, pid ${left.pid}`,
          remedy: expect.stringContaining('trivet'),
        },
      ]);
    } finally {
      left.kill('SIGKILL');
    }
  });
});
