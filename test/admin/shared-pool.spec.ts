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
    destroyOnDelete: true,
    config: {},
  });

  it('is promised once, whoever asks, and told of to each tenant as far as it concerns it', async () => {
    const { blockStorage } = house.parts;
    const [acme, beta] = [caller(house.acme, (await see('acme')).id), caller(house.beta, (await see('beta')).id)];
    const total = BigInt((await see('appliance')).capacity.total);
    const most = (total * 3n) / 4n;
    await blockStorage.volumes.create(acme, request('large', most));
    const refused = blockStorage.volumes.create(beta, request('large', most));
    await expect(refused).rejects.toMatchObject({
      kind: 'resource_exhausted',
      message: expect.stringMatching(
        /can promise \d+ more: it promises at most \d+ bytes to all who share it, 1 times its size, and 0 are promised to this tenant.*; raise its thin ratio \(trivet pool thin main RATIO --tenant appliance\)/,
      ),
    });
    await blockStorage.volumes.create(beta, request('small', 1n << 20n));
    expect(readdirSync(join(pool, 'tenants')).sort()).toEqual([house.acme.id, house.beta.id].sort());
    expect((await see('acme')).holds.volumes).toBe(1);
    expect((await see('appliance')).holds.volumes).toBe(2);
  });

  it('gives its place in one recycle bin to whoever needs it', async () => {
    const { blockStorage } = house.parts;
    const [acme, beta] = [caller(house.acme, (await see('acme')).id), caller(house.beta, (await see('beta')).id)];
    const {
      value: { id },
    } = await blockStorage.volumes.create(acme, { ...request('old', 1n << 30n), destroyOnDelete: false });
    await blockStorage.volumes.delete(acme, id, { force: false });
    const total = BigInt((await see('appliance')).capacity.total);
    const left = async () => {
      const refused = await blockStorage.volumes.create(beta, request('none', total)).catch(String);
      return BigInt(/can promise (\d+) more with the recycle bin emptied/.exec(refused as string)![1]!);
    };
    const late = await blockStorage.volumes.create(beta, request('late', await left()));
    expect(await house.query('SELECT binned_until <= now() AS leaves FROM trivet.volume WHERE id = $1', [id])).toEqual([
      { leaves: true },
    ]);
    // Whose place it was is told who needed it in no other words.
    const given = `SELECT tenant_name, actor_kind, actor, subject_id, after FROM trivet.audit_entry WHERE action = 'volume.give_way'`;
    expect(await house.query(given)).toEqual([
      {
        tenant_name: 'acme',
        actor_kind: 'system',
        actor: 'recycle-bin',
        subject_id: id,
        after: { for: 'others who share pool main' },
      },
    ]);
    await blockStorage.volumes.delete(beta, late.value.id, { force: false });
  });

  it('has one thin ratio, which its owner sets for all who share it', async () => {
    const { blockStorage } = house.parts;
    const beta = caller(house.beta, (await see('beta')).id);
    const [pool] = (await see('beta')).pools;
    const [total, promised] = [BigInt(pool.total), BigInt(pool.promised)];
    // Of all: acme has three quarters of it.
    expect(promised).toBeGreaterThan(total / 2n);
    const set = (tenant: string, thinRatios: object) =>
      house.change(house.root.admin, 'PATCH', `/tenants/${tenant}/backends/files`, { body: { thinRatios } });
    const refused = await set('beta', { main: 3 });
    expect(refused).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(refused.body.detail).toContain('trivet pool thin main 3 --tenant appliance');
    for (const wrong of [{ main: 0 }, { main: 1_001 }, { other: 2 }])
      expect((await set('appliance', wrong)).status, JSON.stringify(wrong)).toBe(400);
    expect(await set('appliance', { main: 3 })).toMatchObject({
      status: 200,
      body: { pools: [{ name: 'main', thinRatio: 3 }] },
    });
    expect((await see('beta')).pools).toMatchObject([{ thinRatio: 3, daysToFull: null }]);
    await blockStorage.volumes.create(beta, request('beyond', total));
    const [entry] = await house.audit('backend.change');
    expect(entry).toMatchObject({ before: { thinRatios: { main: 1 } }, after: { thinRatios: { main: 3 } } });
    // One who shares it from now on has it, too.
    const gamma = await house.tenant('gamma');
    const body = { name: 'files', share: 'files' };
    expect((await house.call(house.root.admin, 'POST', '/tenants/gamma/backends', { body })).status).toBe(201);
    await until('gamma sees the pool', async () => (await see('gamma')).pools.length > 0);
    await blockStorage.volumes.create(caller(gamma, (await see('gamma')).id), request('late', total / 2n));
  });

  it('is full in so many days, by how it grew', async () => {
    const [{ id }] = (await house.query(
      "SELECT b.id FROM trivet.backend b JOIN trivet.tenant t ON t.id = b.tenant_id WHERE t.name = 'appliance'",
    )) as [{ id: string }];
    const [{ total, used }] = (await see('appliance')).pools;
    await house.query('DELETE FROM trivet.pool_sample');
    // A hundredth of what is left each day, for two days.
    await house.query(
      `INSERT INTO trivet.pool_sample (tenant_id, backend_id, pool, at, used_bytes, total_bytes)
       SELECT $1, $2, 'main', date_trunc('hour', now()) - n * interval '1 hour', 1e12 - n * ($3::numeric / 2400), $4
         FROM generate_series(1, 48) AS n`,
      [house.root.id, id, String(BigInt(total) - BigInt(used)), total],
    );
    const [{ daysToFull }] = (await see('appliance')).pools;
    expect(daysToFull).toBeCloseTo(100, -1);
    const { body } = await house.call(house.root.viewer, 'GET', '/overview');
    const shown = body.capacity.find((pool: { tenant: string }) => pool.tenant === 'appliance');
    expect(shown.daysToFull).toBeCloseTo(daysToFull, 0);
  });

  it('beside object stores, which workers ask whether they could be used when nobody else does', async () => {
    const of = async (name: string) =>
      (await house.call(house.root.admin, 'GET', `/tenants/acme/backends/${name}`)).body.health;
    await until('somebody asked', async () => (await of('fake')).state === 'up');
    const body = {
      name: 'dead',
      kind: 'rgw',
      config: { endpoint: 'http://127.0.0.1:1' },
      credentials: { accessKeyId: 'AKID', secretAccessKey: 'secret' },
    };
    expect((await house.call(house.root.admin, 'POST', '/tenants/acme/backends', { body })).status).toBe(201);
    await until('it was found dead', async () => (await of('dead')).state === 'down');
    expect(await of('dead')).toMatchObject({
      reason: expect.stringContaining('cannot be reached'),
      since: expect.any(String),
    });
  });

  it('gets nothing new from the moment on that the cordon is answered', async () => {
    const { blockStorage } = house.parts;
    const beta = caller(house.beta, (await see('beta')).id);
    const path = '/tenants/appliance/backends/files';
    const etag = async () => String((await house.call(house.root.admin, 'GET', path)).headers.etag);
    for (let round = 0; round < 3; round++) {
      const ifMatch = await etag();
      const creations = Array.from({ length: 30 }, (_, n) =>
        blockStorage.volumes.create(beta, request(`race-${round}-${n}`, 4096n)).then(
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
