import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { until } from '#test/support/parts';

describe('a pool that tenants share', () => {
  let house: AdminHouse;
  let pool: string;
  beforeAll(async () => {
    house = await AdminHouse.create({ block: 'fake' });
    pool = join(house.appliance.folder, 'shared-pool');
    mkdirSync(pool);
    const config = { file: join(house.appliance.folder, 'shared-block.db'), pools: [{ name: 'main', path: pool }] };
    const call = (tenant: string, body: object) =>
      house.call(house.root.admin, 'POST', `/tenants/${tenant}/backends`, { body });
    expect((await call('appliance', { name: 'files', kind: 'fake-block', config })).status).toBe(201);
    for (const tenant of ['acme', 'beta'])
      expect((await call(tenant, { name: 'files', share: 'files' })).status).toBe(201);
    await house.appliance.worker();
    await until('all three are up', async () => {
      const states = await Promise.all(
        ['appliance', 'acme', 'beta'].map(async tenant => (await see(tenant)).health.state),
      );
      return states.every(state => state === 'up');
    });
  }, 60_000);
  afterAll(() => house?.close());

  const see = async (tenant: string) =>
    (await house.call(house.root.admin, 'GET', `/tenants/${tenant}/backends/files`)).body;
  const caller = (tenant: HouseTenant, backendId: string) => ({
    tenantId: tenant.id,
    backendId,
    backendKind: 'fake-block',
    deadline: Date.now() + 20_000,
  });
  const request = (name: string, sizeBytes: bigint) => ({
    name,
    sizeBytes,
    description: '',
    folder: '',
    thick: false,
    encrypted: false,
    deduplication: false,
    limitIops: -1,
    limitMbps: -1,
    destroyOnDelete: true,
    config: {},
  });

  it('is promised once, whoever asks, and told of to each tenant as far as it concerns it', async () => {
    const { blockStorage } = house.parts;
    const [acme, beta] = [caller(house.acme, (await see('acme')).id), caller(house.beta, (await see('beta')).id)];
    const total = BigInt((await see('appliance')).capacity.total);
    const most = (total * 3n) / 4n;
    await blockStorage.createVolume(acme, request('large', most));
    const refused = blockStorage.createVolume(beta, request('large', most));
    await expect(refused).rejects.toMatchObject({
      kind: 'resource_exhausted',
      message: expect.stringMatching(/to volumes of all who share it, of which \d+ are left, and/),
    });
    await blockStorage.createVolume(beta, request('small', 1n << 20n));
    expect(readdirSync(join(pool, 'tenants')).sort()).toEqual([house.acme.id, house.beta.id].sort());
    expect((await see('acme')).holds.volumes).toBe(1);
    expect((await see('appliance')).holds.volumes).toBe(2);
  });

  it('gives its place in one recycle bin to whoever needs it', async () => {
    const { blockStorage } = house.parts;
    const [acme, beta] = [caller(house.acme, (await see('acme')).id), caller(house.beta, (await see('beta')).id)];
    const { id } = await blockStorage.createVolume(acme, { ...request('old', 1n << 30n), destroyOnDelete: false });
    await blockStorage.deleteVolume(acme, id, { force: false });
    const total = BigInt((await see('appliance')).capacity.total);
    const left = async () => {
      const refused = await blockStorage.createVolume(beta, request('none', total)).catch(String);
      return BigInt(/of which (\d+) are left with the recycle bin emptied/.exec(refused as string)![1]!);
    };
    const late = await blockStorage.createVolume(beta, request('late', await left()));
    expect(await house.query('SELECT binned_until <= now() AS leaves FROM trivet.volume WHERE id = $1', [id])).toEqual([
      { leaves: true },
    ]);
    await blockStorage.deleteVolume(beta, late.id, { force: false });
  });

  it('gets nothing new from the moment on that the cordon is answered', async () => {
    const { blockStorage } = house.parts;
    const beta = caller(house.beta, (await see('beta')).id);
    const path = '/tenants/appliance/backends/files';
    const etag = async () => String((await house.call(house.root.admin, 'GET', path)).headers.etag);
    for (let round = 0; round < 3; round++) {
      const ifMatch = await etag();
      const creations = Array.from({ length: 30 }, (_, n) =>
        blockStorage.createVolume(beta, request(`race-${round}-${n}`, 4096n)).then(
          () => 'made',
          (error: { field?: string }) => error.field,
        ),
      );
      const count = async () =>
        (await house.query(`SELECT FROM trivet.volume WHERE name LIKE 'race-${round}-%'`)).length;
      // Some are through then, some are not.
      await until('it has begun', async () => (await count()) > 0);
      const body = { state: 'cordoned' };
      expect((await house.call(house.root.admin, 'PATCH', path, { body, ifMatch })).status).toBe(200);
      const made = await count();
      const ended = await Promise.all(creations);
      expect(ended.filter(outcome => outcome === 'made')).toHaveLength(made);
      expect(ended.filter(outcome => outcome === 'backend')).toHaveLength(30 - made);
      expect(await count()).toBe(made);
      expect((await house.change(house.root.admin, 'PATCH', path, { body: { state: 'active' } })).status).toBe(200);
    }
  });

  it('is not taken from who has volumes there', async () => {
    const { file } = (await see('appliance')).config;
    const other = { file, pools: [{ name: 'other', path: pool }] };
    const path = '/tenants/appliance/backends/files';
    const changed = await house.change(house.root.admin, 'PATCH', path, { body: { config: other } });
    expect(changed).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(changed.body.detail).toMatch(/pool main holds volumes/);
    const elsewhere = { file: `${file}-2`, pools: [{ name: 'main', path: pool }] };
    const moved = await house.change(house.root.admin, 'PATCH', path, { body: { config: elsewhere } });
    expect(moved).toMatchObject({ status: 409 });
    expect(moved.body.detail).toMatch(/config\.file says where things are/);
  });

  it('is tested from the gateway, and by what workers see', async () => {
    const { body } = await house.call(house.acme.operator, 'POST', '/tenants/acme/backends/files/test');
    expect(body).toMatchObject({ ok: true });
    expect(body.checks.map((check: { name: string }) => check.name)).toEqual([
      'pool main',
      'exporter',
      'worker sees pool main',
    ]);
  });
});
