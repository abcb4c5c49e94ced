import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse, type HouseTenant, type Person } from '#test/admin/admin-house';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
});
afterAll(() => house?.close());

const names = async (who: Person, query: Record<string, string> = {}) => {
  const { body } = await house.call(who, 'GET', '/tenants', { query });
  return body.items.map(({ name }: { name: string }) => name);
};

describe('tenants', () => {
  it('are all there for the appliance’s people, and just their own for a tenant’s', async () => {
    expect(await names(house.root.viewer)).toEqual(['acme', 'beta', 'default']);
    expect(await names(house.acme.admin)).toEqual(['acme']);
    expect(await names(house.acme.admin, { state: 'suspended' })).toEqual([]);
    expect(await names(house.root.viewer, { state: 'suspended' })).toEqual([]);
  });

  it('come in pages, whatever is made meanwhile', async () => {
    const first = await house.call(house.root.viewer, 'GET', '/tenants', { query: { limit: '2' } });
    expect(first.body.items).toMatchObject([{ name: 'acme' }, { name: 'beta' }]);
    for (const name of ['aaa', 'zeta']) {
      const made = await house.call(house.root.admin, 'POST', '/tenants', { body: { name, displayName: 'Ä Ltd' } });
      expect(made).toMatchObject({
        status: 201,
        headers: { location: `/api/v1/tenants/${name}`, etag: expect.stringMatching(/\.v1\./) },
        body: { name, displayName: 'Ä Ltd', state: 'active', version: 1 },
      });
      expect(made.body).not.toHaveProperty('id');
    }
    const rest = await house.call(house.root.viewer, 'GET', '/tenants', {
      query: { limit: '2', cursor: first.body.next },
    });
    expect(rest.body).toMatchObject({ items: [{ name: 'default' }, { name: 'zeta' }], next: null });
  });

  it('are found by a part of their name or of what they are shown as, page by page', async () => {
    const { root, acme } = house;
    for (const [name, displayName] of [
      ['shop-one', 'The shop of 100 %'],
      ['shop-two', 'Another'],
      ['depot', 'Of the SHOP'],
    ])
      expect((await house.call(root.admin, 'POST', '/tenants', { body: { name, displayName } })).status).toBe(201);
    expect(await names(root.viewer, { search: 'Shop' })).toEqual(['depot', 'shop-one', 'shop-two']);
    expect(await names(root.viewer, { search: 'p-' })).toEqual(['shop-one', 'shop-two']);
    // As they stand: no pattern.
    expect(await names(root.viewer, { search: '0 %' })).toEqual(['shop-one']);
    expect(await names(root.viewer, { search: '_' })).toEqual([]);
    expect(await names(root.viewer, { search: 'shop', state: 'suspended' })).toEqual([]);
    const first = await house.call(root.viewer, 'GET', '/tenants', { query: { search: 'shop', limit: '2' } });
    const { next: cursor } = first.body;
    expect(await names(root.viewer, { search: 'shop', limit: '2', cursor })).toEqual(['shop-two']);
    const another = await house.call(root.viewer, 'GET', '/tenants', {
      query: { search: 'depot', limit: '2', cursor },
    });
    expect(another).toMatchObject({ status: 400, body: { errors: [{ pointer: '/query/cursor' }] } });
    expect(await names(acme.admin, { search: 'shop' })).toEqual([]);
    expect(await names(acme.admin, { search: 'cm' })).toEqual(['acme']);
  });

  it('have a name of their own; that of the appliance itself stays as it is', async () => {
    const again = await house.call(house.root.admin, 'POST', '/tenants', { body: { name: 'acme' } });
    expect(again).toMatchObject({ status: 409, body: { code: 'already_exists' } });
    const own = await house.change(house.root.admin, 'PATCH', '/tenants/appliance', { body: { state: 'suspended' } });
    expect(own).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect((await house.call(house.root.admin, 'POST', '/tenants', { body: { name: 'appliance' } })).status).toBe(409);
  });
});

describe('quotas', () => {
  const path = '/tenants/beta/quotas';
  const KEYS = ['volumes', 'volume_bytes', 'snapshots', 'buckets', 'bucket_bytes', 'operations', 'streams'];
  const limits = (body: Record<string, { limit: string | null }>) =>
    Object.fromEntries(Object.entries(body).map(([key, { limit }]) => [key, limit]));

  it('are without limit until one is set; those that are not named stay', async () => {
    const { root, beta } = house;
    const none = await house.call(beta.viewer, 'GET', path);
    expect(none.body).toEqual(Object.fromEntries(KEYS.map(key => [key, { limit: null, used: '0' }])));
    const set = await house.change(root.admin, 'PATCH', path, {
      body: { volumes: '10', volume_bytes: '9007199254740993' },
    });
    expect(set.status).toBe(200);
    const more = await house.change(root.admin, 'PATCH', path, { body: { volumes: null, buckets: '0' } });
    const wanted = {
      ...Object.fromEntries(KEYS.map(key => [key, null])),
      volume_bytes: '9007199254740993',
      buckets: '0',
    };
    expect(limits(more.body)).toEqual(wanted);
    expect(await house.call(beta.viewer, 'GET', path)).toMatchObject({
      body: more.body,
      headers: { etag: more.headers.etag },
    });
    const [entry] = await house.audit('tenant.quotas');
    expect(entry).toMatchObject({
      tenant_name: 'beta',
      actor_kind: 'token',
      actor: 'the-admin@appliance',
      token_name: 'house',
      before: { volumes: '10', volume_bytes: '9007199254740993' },
      after: { volume_bytes: '9007199254740993', buckets: '0' },
    });
  });

  it('are set by the appliance’s administrators alone, on what they have read', async () => {
    const { root, acme, beta } = house;
    expect((await house.change(beta.admin, 'PATCH', path, { body: { volumes: '1' } })).status).toBe(403);
    expect((await house.call(acme.admin, 'GET', path)).status).toBe(404);
    const { headers } = await house.call(root.admin, 'GET', path);
    const ifMatch = String(headers.etag);
    const all = await Promise.all(
      ['1', '2', '3'].map(volumes => house.call(root.admin, 'PATCH', path, { body: { volumes }, ifMatch })),
    );
    expect(all.map(({ status }) => status).sort()).toEqual([200, 412, 412]);
    for (const volumes of ['-1', '1.5', 'many', '', '1e3', -5, 5.5, true, '9'.repeat(19)])
      expect((await house.change(root.admin, 'PATCH', path, { body: { volumes } })).status).toBe(400);
  });

  it('are digits or numbers, and answered as digits', async () => {
    const { root } = house;
    for (const volumes of [12, '12']) {
      const { status, body } = await house.change(root.admin, 'PATCH', path, { body: { volumes } });
      expect([status, body.volumes?.limit]).toEqual([200, '12']);
    }
    expect((await house.change(root.admin, 'PATCH', path, { body: { volumes: null } })).status).toBe(200);
  });

  it('say what there is, what lies in the recycle bin included', async () => {
    const { acme } = house;
    await fill(acme);
    const { body } = await house.call(acme.viewer, 'GET', '/tenants/acme/quotas');
    const used = Object.fromEntries(KEYS.map(key => [key, body[key].used]));
    expect(used).toMatchObject({ volumes: '2', volume_bytes: String(3 * 2 ** 30), snapshots: '0', buckets: '1' });
  });
});

/** A volume, one in the recycle bin, one that is gone; a bucket, and one that is gone. */
async function fill({ id, backends }: HouseTenant): Promise<void> {
  const volume = (name: string, state: string, gib: number) =>
    house.query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
                                  thick, destroy_on_delete, description, config)
       VALUES ($1, $2, $3, $4, $5, '{}', 'x', 'default', '', $6, false, false, '', '{}')`,
      [id, uuidv7(), backends.local, name, state, gib * 2 ** 30],
    );
  await volume('a', 'ready', 1);
  await volume('b', 'binned', 2);
  await volume('c', 'gone', 4);
  for (const [name, state] of [
    ['a', 'ready'],
    ['b', 'gone'],
  ])
    await house.query(
      `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
       VALUES ($1, $2, $3, $4, 'created', $5, '{}', 'x')`,
      [id, uuidv7(), backends.fake, name, state],
    );
}

it('nothing is made for anybody in a tenant that is suspended or being removed', async () => {
  const idle = await house.tenant('idle');
  const none = '0198c0de-0000-7000-8000-000000000000';
  const calls = [
    ['buckets/create', { name: 'x-1' }],
    ['buckets', { name: 'x-2' }],
    ['volumes', { name: 'x', size: '1048576' }],
    ['snapshots', { volume: none, name: 'x' }],
    ['accesses', { name: 'x', buckets: [{ bucket: none, mode: 'read_only' }] }],
    ['hosts', { name: 'x', iqns: ['iqn.2026-01.org.example:x'] }],
    ['publications', { volume: none, host: none }],
  ] as const;
  for (const state of ['suspended', 'draining']) {
    await house.query('UPDATE trivet.tenant SET state = $2 WHERE id = $1', [idle.id, state]);
    for (const [path, body] of calls)
      expect([path, await house.call(house.root.admin, 'POST', `/tenants/idle/${path}`, { body })]).toMatchObject([
        path,
        { status: 409, body: { code: 'failed_precondition', detail: expect.stringContaining('tenant idle') } },
      ]);
  }
});
