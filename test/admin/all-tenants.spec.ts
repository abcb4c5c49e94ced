import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse, type HouseTenant, type Person } from '#test/admin/admin-house';
import { thingsOf } from '#test/admin/tenant-things';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  for (const tenant of [house.acme, house.beta]) await thingsOf(house, tenant);
}, 60_000);
afterAll(() => house?.close());

const list = (path: string, query: Record<string, string> = {}, who: Person = house.root.viewer) =>
  house.call(who, 'GET', path, { query });
type Item = { id: string; name: string; tenant: string };
const items = async (path: string, query?: Record<string, string>): Promise<Item[]> =>
  (await list(path, query)).body.items;
async function insertVolume({ id: tenantId, backends }: HouseTenant, name: string, size: number): Promise<string> {
  const id = uuidv7();
  await house.query(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                destroy_on_delete, description, config)
     VALUES ($1, $2, $3, $4, 'ready', '{}', 'x', 'main', '', $5, false, false, '', '{}')`,
    [tenantId, id, backends.local, name, size],
  );
  return id;
}

const KINDS = ['volumes', 'snapshots', 'hosts', 'buckets'] as const;

describe.each(KINDS)('%s of all tenants', kind => {
  const path = `/${kind}`;

  it('are those of each tenant, with its name, in the same words', async () => {
    const all = await items(path, { limit: '200' });
    for (const tenant of ['acme', 'beta']) {
      const own = (await list(`/tenants/${tenant}${path}`, { limit: '200' })).body.items;
      expect(own.length).toBeGreaterThan(0);
      expect(all.filter(item => item.tenant === tenant)).toEqual(own.map((item: Item) => ({ ...item, tenant })));
      expect(await items(path, { tenant, limit: '200' })).toEqual(own.map((item: Item) => ({ ...item, tenant })));
    }
    expect(new Set(all.map(({ tenant }) => tenant))).toEqual(new Set(['acme', 'beta']));
  });

  it('come in pages, each item once, and take the filters of a tenant’s own list', async () => {
    const all = await items(path, { limit: '200' });
    const paged: Item[] = [];
    for (let next = ''; paged.length < all.length; ) {
      const { body } = await list(path, { limit: '1', ...(next && { cursor: next }) });
      paged.push(...body.items);
      next = body.next;
    }
    expect(paged.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    const found = await items(path, { search: 'only-beta' });
    expect(found.length).toBeGreaterThan(0);
    expect(found.every(({ tenant }) => tenant === 'beta')).toBe(true);
  });

  it('refuse an unknown tenant, a cursor of another list, and whoever is no administrator of the appliance', async () => {
    expect(await list(path, { tenant: 'nobody' })).toMatchObject({ status: 404, body: { code: 'not_found' } });
    const { next } = (await list(path, { limit: '1' })).body;
    expect((await list(`/tenants/acme${path}`, { limit: '1', cursor: next })).status).toBe(400);
    expect((await list(path, { limit: '1', cursor: next, tenant: 'acme' })).status).toBe(400);
    for (const who of [house.acme.viewer, house.acme.admin])
      expect(await list(path, {}, who)).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
  });
});

it('volumes are in the asked order over tenants, and of backends by their name in each', async () => {
  await insertVolume(house.acme, 'a-large-one', 2 ** 40);
  const small = await insertVolume(house.beta, 'a-small-one', 2 ** 20);
  const sizes = (await house.call(house.root.viewer, 'GET', '/volumes', { query: { sort: 'size' } })).body.items;
  expect(sizes.map(({ size }: { size: string }) => Number(size))).toEqual(
    sizes.map(({ size }: { size: string }) => Number(size)).sort((a: number, b: number) => a - b),
  );
  const newest = await items('/volumes', { sort: '-createdAt' });
  expect(newest[0]).toMatchObject({ id: small, tenant: 'beta' });
  const local = await items('/volumes', { backend: 'local', limit: '200' });
  expect(new Set(local.map(({ tenant }) => tenant))).toEqual(new Set(['acme', 'beta']));
  expect(await items('/volumes', { backend: 'nowhere' })).toEqual([]);
});

it('snapshots of a volume are found by its id alone, in the order of their cuts; of no volume there are none', async () => {
  const [one] = (await list('/snapshots', { tenant: 'beta' })).body.items;
  const volume = one.volume.id;
  const found = (await list('/snapshots', { volume, sort: 'cut' })).body.items;
  expect(found.map(({ tenant }: Item) => tenant)).toEqual(found.map(() => 'beta'));
  expect(found.map(({ id }: Item) => id)).toContain(one.id);
  expect(await items('/snapshots', { volume, tenant: 'acme' })).toEqual([]);
  expect(await items('/snapshots', { volume: one.id })).toEqual([]);
  expect((await list('/snapshots', { sort: 'cut' })).status).toBe(400);
});
