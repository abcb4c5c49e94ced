import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse, type Person } from '#test/admin/admin-house';
import { CbtClient } from '#test/cbt/client';
import { message } from '#test/cbt/wire';
import { CosiClient } from '#test/cosi/client';
import { FakeControl } from '#test/fakes/object/fake-control';
import type { DaemonProcess } from '#test/support/appliance';
import { until } from '#test/support/parts';

const IDENTITY = '/csi.v1.Identity/GetPluginInfo';
const ALLOCATED = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';

/** Sockets as a real gateway opens them, by rows that the API writes beside it. */
describe('endpoints', () => {
  let house: AdminHouse;
  let gateway: DaemonProcess;
  let port: number;
  const clients: { close(): void }[] = [];

  beforeAll(async () => {
    const env = { TRIVET_ENDPOINT_CHECK_MS: '100', TRIVET_CSI_DRIVER_NAME: 'csi.of.settings' };
    house = await AdminHouse.create({ block: 'fake', env });
    await house.call(house.root.admin, 'POST', '/tenants/appliance/backends', {
      body: { name: 'common', kind: 'fake', config: { file: join(house.appliance.folder, 'common.db') } },
    });
    for (const tenant of ['acme', 'beta'])
      await house.call(house.root.admin, 'POST', `/tenants/${tenant}/backends`, {
        body: { name: 'common', share: 'common' },
      });
    gateway = await startGateway();
    await house.appliance.worker();
  }, 60_000);
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
  });
  afterAll(() => house?.close());

  async function startGateway(env: Record<string, string> = {}): Promise<DaemonProcess> {
    const started = await house.appliance.gateway(env);
    port = Number(new URL(house.appliance.cspUrl).port);
    return started;
  }

  const root = (): Person => house.root.admin;
  const of = (tenant: string, name = '') => `/tenants/${tenant}/endpoints${name && `/${name}`}`;
  const pathOf = (tenant: string, name: string, protocol: string) =>
    join(house.appliance.folder, 'run', 'endpoints', tenant, name, `${protocol}.sock`);
  const create = (tenant: string, body: object) => house.call(root(), 'POST', of(tenant), { body });
  /** As the gateway that serves it tells. */
  async function seen(tenant: string, name: string, at = port) {
    const reply = await fetch(`http://127.0.0.1:${at}/api/v1${of(tenant, name)}`, {
      headers: { authorization: `Bearer ${root().token}` },
    });
    return (await reply.json()) as { open: boolean; problem: string | null; socket: string; driverName: string };
  }
  async function opened(tenant: string, name: string, protocol: 'cosi' | 'csi'): Promise<string> {
    await until(`${name} of ${tenant} is open`, async () => (await seen(tenant, name)).open);
    return pathOf(tenant, name, protocol);
  }
  const cosi = (path: string): CosiClient => {
    const client = new CosiClient(path);
    clients.push(client);
    return client;
  };
  const csi = (path: string): CbtClient => {
    const client = CbtClient.overSocket(path);
    clients.push(client);
    return client;
  };
  const makeBucket = async (client: CosiClient, name: string) =>
    (await client.call('v1alpha1', 'DriverCreateBucket', { name })).code;

  it('give each tenant a COSI socket of its own, and buckets of one name that are two', async () => {
    for (const tenant of ['acme', 'beta']) {
      const made = await create(tenant, {
        name: 'buckets',
        protocol: 'cosi',
        backend: 'common',
        driverName: `cosi.${tenant}.example`,
      });
      expect(made.status, JSON.stringify(made.body)).toBe(201);
      expect(made.headers.location).toBe(`/api/v1${of(tenant, 'buckets')}`);
      expect(made.body).toMatchObject({
        backend: 'common',
        state: 'active',
        socket: pathOf(tenant, 'buckets', 'cosi'),
      });
      const client = cosi(await opened(tenant, 'buckets', 'cosi'));
      expect(await client.call('v1alpha1', 'DriverGetInfo', {})).toMatchObject({
        reply: { name: `cosi.${tenant}.example` },
      });
      expect(await makeBucket(client, 'photos')).toBe('OK');
      const granted = await client.call('v1alpha1', 'DriverGrantBucketAccess', {
        bucket_id: 'photos',
        name: 'ba',
        authentication_type: 'Key',
      });
      expect(granted.code).toBe('OK');
    }
    const configs = await house.query<{ config: { file: string } }>(
      `SELECT config FROM trivet.backend WHERE shared_from IS NOT NULL ORDER BY id`,
    );
    expect(new Set(configs.map(({ config }) => config.file)).size).toBe(2);
    for (const { config } of configs) {
      const store = new FakeControl(config.file);
      expect(store.buckets().map(({ name }) => name)).toEqual(['photos']);
      expect(store.principals()).toHaveLength(1);
      store.close();
    }
    const [entry] = await house.audit('endpoint.create');
    expect(entry).toMatchObject({ tenant_name: 'beta', subject_name: 'buckets', actor: root().username });
  });

  it('have their socket alone in a folder that only its owner enters', async () => {
    const path = pathOf('acme', 'buckets', 'cosi');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    expect(statSync(dirname(dirname(path))).mode & 0o777).toBe(0o711);
  });

  it.skipIf(process.getuid?.() !== 0)('give the socket and its folder to the group that is named', async () => {
    expect((await create('acme', { name: 'grouped', protocol: 'csi', group: '12345' })).body.group).toBe('12345');
    const path = await opened('acme', 'grouped', 'csi');
    expect([statSync(path).mode & 0o777, statSync(path).gid]).toEqual([0o660, 12345]);
    expect([statSync(dirname(path)).mode & 0o777, statSync(dirname(path)).gid]).toEqual([0o750, 12345]);
  });

  it('serve changed blocks by their own driver name, of their tenant alone', async () => {
    await create('acme', { name: 'snapshots', protocol: 'csi', driverName: 'csi.acme.example' });
    const client = csi(await opened('acme', 'snapshots', 'csi'));
    expect((await client.unary(IDENTITY)).toString()).toContain('csi.acme.example');
    const changed = await house.change(root(), 'PATCH', of('acme', 'snapshots'), { body: { driverName: 'csi.other' } });
    expect(changed.status).toBe(200);
    await until('the new name is told, over the same connection', async () =>
      (await client.unary(IDENTITY)).toString().includes('csi.other'),
    );
    const driver = house.appliance.driver();
    await driver.login();
    await until('a volume can be made', () => driver.createVolume('v', 8 << 20).then(Boolean, () => false));
    const volume = await driver.volumeNamed('v');
    const snapshot = await driver.createSnapshot(volume!.id, 's');
    const request = message({ 1: snapshot.id });
    // It is one of the tenant default.
    await create('default', { name: 'own', protocol: 'csi' });
    const own = csi(await opened('default', 'own', 'csi'));
    expect((await own.call(ALLOCATED, request)).code).toBe('OK');
    expect((await own.unary(IDENTITY)).toString()).toContain('csi.of.settings');
    expect((await client.call(ALLOCATED, request)).code).toBe('NOT_FOUND');
  });

  it.each([
    ['an endpoint', () => ({ path: of('acme', 'buckets'), reason: { reason: 'bills' } })],
    ['its tenant', () => ({ path: '/tenants/acme', reason: {} })],
  ])('close at once when %s is suspended, and open again', async (_, what) => {
    const { path, reason } = what();
    const client = cosi(pathOf('acme', 'buckets', 'cosi'));
    const folder = dirname(pathOf('acme', 'buckets', 'cosi'));
    expect(await makeBucket(client, 'photos')).toBe('OK');
    const began = performance.now();
    const body = { state: 'suspended', ...reason };
    expect((await house.change(root(), 'PATCH', path, { body })).status).toBe(200);
    expect(['PERMISSION_DENIED', 'UNAVAILABLE']).toContain(await makeBucket(client, 'photos'));
    await until('the socket is gone', () => !existsSync(pathOf('acme', 'buckets', 'cosi')));
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(await seen('acme', 'buckets')).toMatchObject({ open: false, problem: expect.stringContaining('suspended') });
    // A sidecar has it mounted.
    expect(existsSync(folder)).toBe(true);
    expect(await makeBucket(cosi(pathOf('beta', 'buckets', 'cosi')), 'photos')).toBe('OK');

    expect((await house.change(root(), 'PATCH', path, { body: { state: 'active' } })).status).toBe(200);
    await opened('acme', 'buckets', 'cosi');
    expect(await makeBucket(cosi(pathOf('acme', 'buckets', 'cosi')), 'photos')).toBe('OK');
  });

  it('say why they are not open, and open once that is over', async () => {
    const path = pathOf('acme', 'blocked', 'csi');
    mkdirSync(path, { recursive: true });
    const made = await create('acme', { name: 'blocked', protocol: 'csi' });
    expect(made.status).toBe(201);
    await until('it has a problem', async () => /is not a socket/.test((await seen('acme', 'blocked')).problem ?? ''));
    rmSync(path, { recursive: true });
    await opened('acme', 'blocked', 'csi');

    await create('acme', { name: 'nobodys', protocol: 'csi', group: 'no-such-group' });
    await until('it has one too', async () =>
      /there is no group no-such-group/.test((await seen('acme', 'nobodys')).problem ?? ''),
    );
    const name = 'n'.repeat(63);
    await create('acme', { name, protocol: 'csi' });
    await until('so has one whose path is too long', async () => {
      const { problem } = await seen('acme', name);
      return /at most 107 bytes, got \d+/.test(problem ?? '');
    });
    expect(gateway.exited).toBe(false);
  });

  it('are what the overview says of their legs, to a tenant of its own alone', async () => {
    const seenBy = async ({ token }: Person) => {
      const headers = { authorization: `Bearer ${token}` };
      const reply = await fetch(`http://127.0.0.1:${port}/api/v1/overview`, { headers });
      return (await reply.json()) as { legs: object[]; attention: object[] };
    };
    const leg = (name: string, health: string, detail: string) =>
      expect.objectContaining({ name, health, detail: expect.stringContaining(detail) });
    // Nobody has looked before: an overview is read once in five seconds.
    const beta = await seenBy(house.beta.viewer);
    expect(beta.legs).toContainEqual(leg('cosi', 'ok', 'its door answers'));
    expect(beta.legs).toContainEqual(leg('cbt', 'ok', 'over REST alone'));
    const acme = await seenBy(house.acme.viewer);
    expect(acme.legs).toContainEqual(leg('cbt', 'degraded', 'endpoint acme/nobodys: group: there is no group'));
    const whole = await seenBy(house.root.viewer);
    expect(whole.legs).toContainEqual(leg('cosi', 'ok', 'its 3 doors answer'));
    expect(whole.attention).toContainEqual(
      expect.objectContaining({ severity: 'warning', what: expect.stringContaining('CBT is served in part') }),
    );
  });

  it('are refused when they could be nothing', async () => {
    const { backends } = house.acme;
    expect(Object.keys(backends).sort()).toEqual(['fake', 'local']);
    const bad = (body: object) => create('acme', body);
    expect(await bad({ name: 'x', protocol: 'cosi', backend: 'nothing' })).toMatchObject({ status: 404 });
    expect(await bad({ name: 'x', protocol: 'cosi', backend: 'local' })).toMatchObject({ status: 400 });
    expect(await bad({ name: 'x', protocol: 'cosi' })).toMatchObject({ status: 400 });
    expect(await bad({ name: '../x', protocol: 'csi' })).toMatchObject({ status: 400 });
    expect(await bad({ name: 'buckets', protocol: 'csi' })).toMatchObject({ status: 409 });
    expect(await create('default', { name: 'cosi', protocol: 'csi' })).toMatchObject({ status: 400 });
    expect(await house.call(house.acme.admin, 'POST', of('acme'), { body: {} })).toMatchObject({ status: 403 });
  });

  it('of the configuration are shown with their paths, and are changed there', async () => {
    expect(await seen('default', 'cosi')).toMatchObject({
      open: true,
      problem: null,
      socket: house.appliance.socketPath,
    });
    expect(await seen('default', 'csi')).toMatchObject({
      open: false,
      problem: expect.stringContaining('TRIVET_CSI_ENDPOINT is not set'),
    });
    const change = (body: object) => house.change(root(), 'PATCH', of('default', 'cosi'), { body });
    expect(await change({ driverName: 'other' })).toMatchObject({ status: 409 });
    expect(await house.change(root(), 'DELETE', of('default', 'cosi'))).toMatchObject({ status: 409 });
    expect((await change({ state: 'suspended' })).status).toBe(200);
    await until('it is closed', () => !existsSync(house.appliance.socketPath));
    expect((await change({ state: 'active' })).status).toBe(200);
    await until('it is open', async () => (await seen('default', 'cosi')).open);
  });

  it('are served by one of two gateways on a host, and by the other when that one ends', async () => {
    const first = { gateway, port };
    const second = await startGateway({ COSI_ENDPOINT: '' });
    expect(await seen('acme', 'buckets', first.port)).toMatchObject({ open: true });
    const other = await seen('acme', 'buckets');
    expect(other).toMatchObject({ open: false, problem: expect.stringContaining('another process serves') });
    expect(await makeBucket(cosi(other.socket), 'photos')).toBe('OK');
    await first.gateway.stop('SIGKILL');
    await opened('acme', 'buckets', 'cosi');
    expect(await makeBucket(cosi(other.socket), 'photos')).toBe('OK');
    gateway = second;
  });

  it('are back after a gateway was killed, and what is no more is cleared away', async () => {
    const path = pathOf('acme', 'buckets', 'cosi');
    const base = join(house.appliance.folder, 'run', 'endpoints');
    const kept = join(base, 'gone', 'kept');
    mkdirSync(kept, { recursive: true });
    writeFileSync(join(kept, 'notes.txt'), 'of somebody else');
    // Of a process that lives.
    const living = join(base, 'gone', 'living', 'cosi.sock');
    mkdirSync(dirname(living), { recursive: true });
    const server = createServer();
    await new Promise<void>(done => server.listen(living, done));
    const left = pathOf('acme', 'snapshots', 'csi');
    expect(existsSync(left)).toBe(true);
    await gateway.stop('SIGKILL');
    expect(existsSync(path)).toBe(true);
    expect((await house.change(root(), 'DELETE', of('acme', 'snapshots'))).status).toBe(204);
    gateway = await startGateway();
    try {
      await opened('acme', 'buckets', 'cosi');
      expect(await makeBucket(cosi(path), 'photos')).toBe('OK');
      expect(existsSync(dirname(left))).toBe(false);
      expect(existsSync(join(kept, 'notes.txt'))).toBe(true);
      expect(existsSync(living)).toBe(true);
    } finally {
      server.close();
    }
  });

  it('go with their folder when they are deleted, and leave what was made through them', async () => {
    const path = pathOf('beta', 'buckets', 'cosi');
    expect((await house.change(root(), 'DELETE', of('beta', 'buckets'))).status).toBe(204);
    await until('the folders are gone', () => !existsSync(dirname(dirname(path))));
    const rows = await house.query(
      `SELECT FROM trivet.bucket WHERE tenant_id = $1 AND name = 'photos' AND state = 'ready'`,
      [house.beta.id],
    );
    expect(rows).toHaveLength(1);
    const [entry] = await house.audit('endpoint.delete');
    expect(entry).toMatchObject({ tenant_name: 'beta', subject_name: 'buckets' });
  });

  it('leave no socket when the gateway stops', async () => {
    const path = pathOf('acme', 'buckets', 'cosi');
    expect(existsSync(path)).toBe(true);
    expect((await gateway.stop('SIGTERM')).code).toBe(0);
    expect(existsSync(path)).toBe(false);
    expect(existsSync(dirname(path))).toBe(true);
  });
});
