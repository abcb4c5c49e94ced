import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { CreateBucketCommand, HeadBucketCommand, ListBucketsCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OverviewReply } from '#admin/contract/overview';
import { chromiumPath, TestBrowser } from '#test/dashboard/browser';
import { until } from '#test/support/parts';
import { processesOf, TestHomes } from './cli.js';

/** One home with everything, Ceph included; each test finds it as the one before left it. */
const homes = new TestHomes();
const home = homes.at(`a home, "mine"`);
const NAMES = ['ceph-mon.a', 'ceph-osd.0', 'gateway', 'postgres', 'radosgw', 'redis', 'worker'];
let firstUp: string;
/** By the supervisor; workers start their tgtd when they come to it. */
const isKept = (name: string): boolean => !name.startsWith('tgtd.');

function s3(): S3Client {
  const env = home.environment();
  const secret = (name: string) => readFileSync(env[name] as string, 'utf8').trim();
  return new S3Client({
    endpoint: env.TRIVET_RGW_ENDPOINT,
    region: 'default',
    forcePathStyle: true,
    credentials: {
      accessKeyId: secret('TRIVET_RGW_ACCESS_KEY_FILE'),
      secretAccessKey: secret('TRIVET_RGW_SECRET_KEY_FILE'),
    },
  });
}

beforeAll(async () => {
  firstUp = await home.must('up', '--detach', '--no-install');
  await s3().send(new CreateBucketCommand({ Bucket: 'kept' }));
});
afterAll(() => homes.clear());

describe('up with everything', () => {
  it('logs in its home alone', () => {
    const [, fsid] = /^fsid = (\S+)$/m.exec(readFileSync(home.file('ceph', 'ceph.conf'), 'utf8'))!;
    const [system, own] = ['/var/log/ceph', home.file('log')].map(folder =>
      existsSync(folder)
        ? readdirSync(folder).filter(name => readFileSync(join(folder, name), 'utf8').includes(fsid!))
        : [],
    );
    expect(own).not.toEqual([]);
    expect(system).toEqual([]);
  });

  it('is ready, with its doors under stable names', async () => {
    const status = await home.status();
    expect(status).toMatchObject({
      state: 'ready',
      version: '0.1.0',
      home: home.home,
      objectStore: { region: 'default' },
      credentialsFile: home.file('credentials.json'),
      backends: [
        { name: 'local', kind: 'reflink', state: 'up' },
        { name: 'rgw', kind: 'rgw', state: 'up' },
      ],
      skipped: [],
    });
    expect(
      status.processes
        .map(row => row.name)
        .filter(isKept)
        .sort(),
    ).toEqual(NAMES);
    expect(status.processes.every(row => row.restarts === 0)).toBe(true);
    const socket = status.cosi?.endpoint.slice('unix://'.length) as string;
    expect(statSync(socket).isSocket()).toBe(true);
    expect(firstUp).toContain(status.cosi?.endpoint);
    expect(firstUp).toContain(home.file('credentials.json'));
    const { csp, admin } = JSON.parse(readFileSync(home.file('credentials.json'), 'utf8'));
    expect(csp).toEqual({
      username: 'csp',
      password: readFileSync(home.file('secrets', 'csp-password'), 'utf8').trim(),
    });
    expect(admin).toEqual({
      username: 'admin@appliance',
      password: readFileSync(home.file('secrets', 'admin-password'), 'utf8').trim(),
      token: expect.stringMatching(/^trivet_/),
    });
    for (const secret of [csp.password, admin.password, admin.token]) expect(firstUp).not.toContain(secret);
    expect(firstUp).toContain(`${status.admin?.url}/`);
    const me = await fetch(`${status.admin?.url}/api/v1/session`, {
      headers: { authorization: `Bearer ${admin.token}` },
    });
    expect(await me.json()).toMatchObject({ username: 'admin@appliance', role: 'admin', appliance: true });
    for (const door of ['/livez', '/readyz', '/metrics']) {
      expect((await fetch(`${status.http?.url}${door}`)).status).toBe(200);
    }
  });

  it('listens on loopback only', () => {
    const env = home.environment();
    const ports = JSON.parse(readFileSync(home.file('ports.json'), 'utf8')) as Record<string, number>;
    expect(env.TRIVET_HTTP_LISTEN).toBe(`127.0.0.1:${ports.http}`);
    const listening = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1);
    const anywhere = listening
      .map(line => line.trim().split(/\s+/))
      .filter(([, local, , state]) => state === '0A' && local?.startsWith('00000000:'))
      .map(([, local]) => Number.parseInt(local?.split(':')[1] as string, 16));
    expect(anywhere.filter(port => Object.values(ports).includes(port))).toEqual([]);
  });

  it('gives each secret to its owner alone, and none to a command line', () => {
    const names = [
      'postgres.json',
      'redis-password',
      'rgw-access-key',
      'rgw-secret-key',
      'csp-password',
      'admin-password',
    ];
    const secrets = names.map(name => home.file('secrets', name));
    for (const file of [
      ...secrets,
      home.file('kek'),
      home.file('env'),
      home.file('credentials.json'),
      home.file('state.json'),
    ]) {
      expect(`${file} ${(statSync(file).mode & 0o777).toString(8)}`).toBe(`${file} 600`);
    }
    const values = [
      ...Object.values(JSON.parse(readFileSync(home.file('secrets', 'postgres.json'), 'utf8')) as object),
    ];
    for (const name of ['redis-password', 'rgw-secret-key', 'csp-password', 'admin-password'])
      values.push(readFileSync(home.file('secrets', name), 'utf8').trim());
    const lines = processesOf(home.home).join('\n');
    const state = readFileSync(home.file('state.json'), 'utf8');
    for (const value of values) {
      expect(lines.includes(value)).toBe(false);
      expect(state.includes(value)).toBe(false);
    }
  });

  it('does the main job in its demo, and finds nothing wrong in its doctor', async () => {
    const said = await home.must('demo');
    expect(said).toMatch(/writer is refused\n(.*\n)*.*demo: done, and nothing is left behind\n$/);
    const { Buckets } = await s3().send(new ListBucketsCommand({}));
    expect(Buckets?.map(({ Name }) => Name)).toEqual(['kept']);
    const findings = (await home.must('doctor')).trim().split('\n');
    expect(findings.filter(line => !/^(ok|warn {2}(disk|memory|time server))/.test(line))).toEqual([]);
    for (const name of ['key file', 'postgres', 'redis', 'object store', 'gateway', 'worker']) {
      expect(findings.some(line => line.startsWith(`ok    ${name}: `))).toBe(true);
    }
  });

  it('is found by a second up', async () => {
    const before = await home.status();
    expect(await home.must('up', '--detach')).toContain(`already up, supervisor ${home.supervisor}`);
    expect((await home.status()).processes).toEqual(before.processes);
  });

  it('stands beside a second home', async () => {
    const second = homes.at('second');
    second.settings.TRIVET_RGW_ENDPOINT = home.environment().TRIVET_RGW_ENDPOINT as string;
    second.settings.TRIVET_REDIS_URL = 'none';
    await second.must('up', '--detach', '--parts-only');
    expect((await second.status()).processes.map(row => row.name)).toEqual(['postgres']);
    expect((await home.status()).state).toBe('ready');
    await second.must('down', '--purge', '--yes');
    expect((await home.status()).state).toBe('ready');
  });

  it('starts again what dies, and counts it', async () => {
    await home.kill('gateway', 'worker', 'postgres', 'redis', 'radosgw');
    await until('everything runs again', async () => {
      const { state, processes } = await home.status();
      return state === 'ready' && processes.filter(row => row.restarts > 0).length >= 5;
    });
    expect((await home.process('ceph-mon.a')).restarts).toBe(0);
  });

  it('tells a store that died as dead in status, API and page, and as up when it is back', async () => {
    const { admin } = JSON.parse(readFileSync(home.file('credentials.json'), 'utf8'));
    const { url } = (await home.status()).admin!;
    const inStatus = async () => (await home.status()).backends.find(({ name }) => name === 'rgw')?.state;
    const inApi = async () => {
      const headers = { authorization: `Bearer ${admin.token}` };
      const answer = await fetch(`${url}/api/v1/overview`, { headers });
      const { backends, attention } = (await answer.json()) as OverviewReply;
      const { health } = backends.find(({ name }) => name === 'rgw')!;
      return { health, isTold: attention.some(({ what }) => what.includes('Backend rgw of tenant default')) };
    };
    const browser = chromiumPath() === undefined ? undefined : await TestBrowser.launch();
    try {
      const visitor = await browser?.visit(url);
      await visitor?.logIn(admin);
      const row = visitor?.page.getByRole('table', { name: 'Health of backends' }).getByRole('row', { name: /rgw/ });
      await until('it is up', async () => (await inStatus()) === 'up');
      await row?.locator('.badge', { hasText: /up$/ }).waitFor();
      await home.withoutSupervisor(async () => {
        await home.kill('radosgw');
        await until('status says down', async () => (await inStatus()) === 'down', 60_000);
        await until('the API says down', async () => (await inApi()).health === 'down');
        expect((await inApi()).isTold).toBe(true);
        expect((await home.run('status')).stdout).toMatch(/backend rgw {2}down, since/);
        await row?.locator('.badge', { hasText: /down$/ }).waitFor();
      });
      await until('status says up', async () => (await inStatus()) === 'up', 90_000);
      await until('the API says up', async () => (await inApi()).health === 'up');
      expect((await inApi()).isTold).toBe(false);
      await row?.locator('.badge', { hasText: /up$/ }).waitFor();
    } finally {
      await browser?.close();
    }
  }, 180_000);

  it('comes back with its data after everything was killed', async () => {
    const { processes } = await home.status();
    for (const pid of [home.supervisor, ...processes.map(row => row.pid)]) process.kill(pid, 'SIGKILL');
    expect(await home.status()).toMatchObject({ state: 'stopped', processes: [] });
    // And though others have its ports by now.
    const ports = (): Record<string, number> => JSON.parse(readFileSync(home.file('ports.json'), 'utf8'));
    const before = ports();
    const names = ['ceph-mon', 'rgw', 'http'];
    const strangers = names.map(name => createServer().listen(before[name], '127.0.0.1'));
    try {
      await Promise.all(strangers.map(stranger => once(stranger, 'listening')));
      const said = await home.must('up', '--detach', '--no-install');
      for (const name of names)
        expect(said).toContain(`the port of ${name} is ${ports()[name]} instead of ${before[name]}, which`);
    } finally {
      for (const stranger of strangers) stranger.close();
    }
    expect(await home.status()).toMatchObject({ state: 'ready', skipped: [] });
    await s3().send(new HeadBucketCommand({ Bucket: 'kept' }));
  });

  it('clears what a killed supervisor left', async () => {
    const before = (await home.status()).processes.map(row => row.pid);
    process.kill(home.supervisor, 'SIGKILL');
    const left = await home.status();
    expect(left).toMatchObject({ state: 'unsupervised', failure: expect.stringContaining('./trivet up') });
    expect(left.processes.map(row => row.pid)).toEqual(before);
    await home.must('up', '--detach', '--no-install');
    const { state, processes } = await home.status();
    expect({ state, processes: processes.filter(row => row.state !== 'running') }).toEqual({
      state: 'ready',
      processes: [],
    });
    expect(processes.filter(row => before.includes(row.pid))).toEqual([]);
    for (const pid of before) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('leaves nothing behind after down, and is there again after up', async () => {
    await home.must('down');
    expect(processesOf(home.home)).toEqual([]);
    expect((await home.run('status')).code).toBe(3);
    expect(await home.status()).toMatchObject({ state: 'stopped', processes: [] });
    await home.must('up', '--detach', '--no-install');
    await s3().send(new HeadBucketCommand({ Bucket: 'kept' }));
    await home.must('down', '--purge', '--yes');
    expect(() => statSync(home.home)).toThrow('ENOENT');
  });
});
