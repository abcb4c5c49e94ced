import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminOps } from '#backends/rgw/admin-ops';
import { HttpTransport } from '#backends/s3/http-transport';
import { unleased } from '#platform/lease-signal';
import { reportBackends } from '#storage/block/pools/pool-report';
import { AdminHouse } from '#test/admin/admin-house';
import { sidecarOf } from '#test/admin/resource-calls';
import { rgwParts } from '#test/object-backend/rgw-harness';
import { until } from '#test/support/parts';

const rgw = rgwParts();
const ROOT = '/tenants/acme/backends';
const CAPS = ['users', 'buckets', 'metadata', 'usage'].map(type => ({ type, perm: '*' }));

/** A store that is there and does not let us in is not up, whoever found out: a look of ours, or the work itself. */
describe.skipIf(rgw === undefined)('credentials that a real RGW refuses', () => {
  const uid = `keys-${randomUUID().slice(0, 8)}`;
  const accessKeyId = `AK${randomUUID().replaceAll('-', '').slice(0, 16).toUpperCase()}`;
  const read = (file: string) => readFileSync(file, 'utf8').trim();
  let house: AdminHouse;
  let admin: AdminOps;
  beforeAll(async () => {
    const keys = { accessKeyId: read(rgw!.accessKeyFile), secretAccessKey: read(rgw!.secretKeyFile) };
    admin = new AdminOps(
      new HttpTransport({ endpoint: rgw!.endpoint, region: rgw!.region, name: 'rgw', expiring: true }),
      keys,
    );
    await storeHas('the-first-secret');
    house = await AdminHouse.create();
    await house.appliance.worker();
  });
  afterAll(async () => {
    await admin?.deleteUser(uid, signal());
    await house?.close();
  });
  const signal = () => unleased(AbortSignal.timeout(30_000));

  /** As whoever runs the store gives a new secret to the user that Trivet is at it. */
  const storeHas = (secret: string) => {
    const data = {
      user_id: uid,
      display_name: uid,
      suspended: 0,
      max_buckets: -1,
      op_mask: 'read, write, delete',
      type: 'rgw',
      keys: [{ user: uid, access_key: accessKeyId, secret_key: secret }],
      caps: CAPS,
    };
    return admin.change('PUT', '/admin/metadata/user', { key: uid }, signal(), JSON.stringify({ data }));
  };
  const register = async (name: string, credentials: object) => {
    const config = { endpoint: rgw!.endpoint, region: rgw!.region, ownerUid: `owner-${uid}-${name}` };
    const reply = await house.call(house.root.admin, 'POST', ROOT, {
      body: { name, kind: 'rgw', config, credentials },
    });
    expect(reply.status, JSON.stringify(reply.body)).toBe(201);
  };
  const healthOf = async (name: string) => (await house.call(house.acme.viewer, 'GET', `${ROOT}/${name}`)).body.health;
  const isNow = (name: string, state: string) =>
    until(`${name} is ${state}`, async () => {
      const health = await healthOf(name);
      return health.state === state ? health : undefined;
    });
  /** As a sidecar asks for it. */
  const bucketAt = async (backend: string) => {
    const { id } = (await house.call(house.acme.viewer, 'GET', `${ROOT}/${backend}`)).body;
    const caller = await sidecarOf(house, house.acme, { id, kind: 'rgw' });
    return (name: string) =>
      house.parts.storage.buckets.create(caller, { name: `${name}-${uid}`, protocols: ['s3'], parameters: {} });
  };

  it.each([
    ['a secret that is not its key’s', { accessKeyId, secretAccessKey: 'another' }, 'SignatureDoesNotMatch'],
    ['a key that it does not know', { accessKeyId: 'AKNOBODY', secretAccessKey: 'x' }, 'InvalidAccessKeyId'],
  ])('%s: workers find it out, and all say so, with what it answered and since when', async (_, keys, code) => {
    const name = code.toLowerCase();
    const from = Date.now() - 1_000;
    await register(name, keys);
    const health = await isNow(name, 'down');
    expect(health).toMatchObject({ circuit: 'closed', since: expect.any(String) });
    expect(health.reason).toMatch(new RegExp(`^credentials: .*\\(it answered 403 ${code}\\)$`));
    expect(Date.parse(health.since)).toBeGreaterThan(from);
    // It may be some seconds old.
    const shown = await until('the overview has it', async () => {
      const { body } = await house.call(house.acme.viewer, 'GET', '/overview');
      return body.backends.find((backend: { name: string }) => backend.name === name);
    });
    expect(shown).toMatchObject({ health: 'down', detail: health.reason, since: health.since });
    const report = (await reportBackends(house.database)).find(each => each.name === name);
    expect(report?.health).toMatchObject({ state: 'down', reason: health.reason });
    // Asked again it is the same, and since the same time.
    const { body: tested } = await house.call(house.acme.operator, 'POST', `${ROOT}/${name}/test`);
    expect(tested).toMatchObject({
      ok: false,
      checks: [
        { name: 'answers', ok: true },
        { name: 'credentials', ok: false },
      ],
    });
    expect(await healthOf(name)).toEqual(health);
  });

  it('changed under our feet: the work itself finds it out at once, and the right ones mend it', async () => {
    await register('rotated', { accessKeyId, secretAccessKey: 'the-first-secret' });
    await isNow('rotated', 'up');
    const bucket = await bucketAt('rotated');
    await bucket('first');
    await storeHas('the-second-secret');
    await expect(bucket('second')).rejects.toThrow('SignatureDoesNotMatch');
    // Nobody has asked it since: that would take a minute.
    const health = await healthOf('rotated');
    expect(health).toMatchObject({ state: 'down', circuit: 'closed', since: expect.any(String) });
    expect(health.reason).toMatch(/^credentials: .*403 SignatureDoesNotMatch/);
    const mended = await house.change(house.root.admin, 'PATCH', `${ROOT}/rotated`, {
      body: { credentials: { accessKeyId, secretAccessKey: 'the-second-secret' } },
    });
    expect(mended.status, JSON.stringify(mended.body)).toBe(200);
    expect(await isNow('rotated', 'up')).toMatchObject({ reason: null });
    // What was accepted meanwhile is carried out by itself.
    await house.appliance.settled();
    expect(await bucket('second')).toMatchObject({ value: { bucketId: `second-${uid}` } });
  });
});
