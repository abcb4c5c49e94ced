import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import {
  driverOf,
  ended,
  idOf,
  makeVolume,
  operationOf,
  pageName,
  poolsSeen,
  readsAllOfMoving,
  unworked,
} from '#test/admin/resource-calls';

let house: AdminHouse;
let volume: string;
const snapshots = '/tenants/acme/snapshots';

beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  await house.appliance.worker();
  await poolsSeen(house, house.acme);
  volume = idOf(await makeVolume(house, house.acme, 'cut'));
}, 60_000);
afterAll(() => house?.close());

const take = (name: string, options: { headers?: Record<string, string>; of?: string } = {}) =>
  house.call(house.acme.operator, 'POST', snapshots, {
    body: { volume: options.of ?? volume, name },
    ...(options.headers ? { headers: options.headers } : {}),
  });
const list = async (query: Record<string, string>) =>
  (await house.call(house.acme.viewer, 'GET', snapshots, { query })).body.items.map(
    (item: { name: string }) => item.name,
  );

describe('a snapshot by the admin API', () => {
  it('is taken, read, and written to the audit log with its operation', async () => {
    const made = await take('first');
    expect(made).toMatchObject({
      status: 201,
      body: {
        name: 'first',
        volume: { id: volume, name: 'cut' },
        backend: 'local',
        state: 'ready',
        cut: '1',
        changedBytes: null,
        template: null,
      },
    });
    const read = await house.call(house.acme.viewer, 'GET', `${snapshots}/${idOf(made)}`);
    expect(read.body).toMatchObject({ id: idOf(made), cutAt: made.body.cutAt });
    const [entry] = await house.audit('snapshot.create');
    expect(entry).toMatchObject({ subject_id: idOf(made), operation_id: expect.any(String) });
  });

  it('is refused where the volume has one of its name, and of no volume', async () => {
    await take('again');
    expect(await take('again')).toMatchObject({ status: 409, body: { code: 'already_exists' } });
    const nowhere = await take('x', { of: '00000000-0000-7000-8000-000000000000' });
    expect(nowhere).toMatchObject({ status: 404, body: { code: 'not_found' } });
    const foreign = await house.call(house.beta.operator, 'POST', '/tenants/beta/snapshots', {
      body: { volume, name: 'stolen' },
    });
    expect(foreign.status).toBe(404);
  });

  it('is seen whatever its name is: only who asks for it hides one', async () => {
    const own = idOf(await makeVolume(house, house.acme, 'own-names'));
    await take('snap-for-clone-2026-11-20T10:32:45Z', { of: own });
    expect(await list({ volume: own })).toEqual(['snap-for-clone-2026-11-20T10:32:45Z']);
  });

  it('is answered with its operation when that is not waited for', async () => {
    const made = await unworked(house, () => take('later', { headers: { prefer: 'wait=0' } }));
    expect(made).toMatchObject({ status: 202, body: { name: 'later', operation: operationOf(made) } });
    expect(await ended(house, operationOf(made))).toBe('succeeded');
  });

  it('says which template made it', async () => {
    const id = idOf(await take('daily-1'));
    await house.query(
      `INSERT INTO trivet.protection_run (tenant_id, template_id, volume_id, schedule, period, snapshot_id)
       SELECT tenant_id, id, $2, 'daily', now(), $3 FROM trivet.protection_template WHERE tenant_id = $1 AND name = 'Retain-30Daily'`,
      [house.acme.id, volume, id],
    );
    const { body } = await house.call(house.acme.viewer, 'GET', `${snapshots}/${id}`);
    expect(body.template).toBe('Retain-30Daily');
  });

  it('is deleted by who read it last, unless a clone hangs on it', async () => {
    const made = await take('cloned');
    const path = `${snapshots}/${idOf(made)}`;
    const clone = await makeVolume(house, house.acme, 'hangs', { source: { snapshot: idOf(made) } });
    expect(clone.status).toBe(201);
    expect((await house.call(house.acme.admin, 'DELETE', path)).status).toBe(428);
    expect((await house.call(house.acme.admin, 'DELETE', path, { ifMatch: '"other"' })).status).toBe(412);
    const held = await house.change(house.acme.admin, 'DELETE', path);
    expect(held).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    await house.change(house.acme.admin, 'DELETE', `/tenants/acme/volumes/${idOf(clone)}`);
    expect((await house.change(house.acme.admin, 'DELETE', path)).status).toBe(204);
    expect((await house.call(house.acme.viewer, 'GET', path)).status).toBe(404);
    const [entry] = await house.audit('snapshot.delete');
    expect(entry).toMatchObject({ subject_name: 'cloned', before: expect.objectContaining({ name: 'cloned' }) });
  });
});

describe('the list of snapshots', () => {
  it('is in the order of the cuts within a volume, and only there', async () => {
    const other = idOf(await makeVolume(house, house.acme, 'ordered'));
    for (const name of ['c', 'a', 'b']) await take(name, { of: other });
    await house.parts.blockStorage.snapshots.create(await driverOf(house, house.acme), {
      name: 'for-a-clone',
      volumeId: other,
      description: '',
      hidden: true,
      config: {},
    });
    expect(await list({ volume: other, sort: 'cut' })).toEqual(['c', 'a', 'b']);
    expect(await list({ volume: other, sort: '-cut' })).toEqual(['b', 'a', 'c']);
    expect(await list({ volume: other, search: 'A' })).toEqual(['a']);
    expect((await list({})).slice(0, 3)).toEqual(['b', 'a', 'c']);
    const without = await house.call(house.acme.viewer, 'GET', snapshots, { query: { sort: 'cut' } });
    expect(without).toMatchObject({ status: 400, body: { errors: [{ pointer: '/query/sort' }] } });
  });

  it.each(['cut', '-cut', 'createdAt', '-createdAt'])(
    'has everything once while others are taken, by %s',
    async sort => {
      const tenant = await house.tenant(`many${sort.toLowerCase()}`.replaceAll('-', 'd'));
      const of = await bareVolume(tenant);
      const query: Record<string, string> = sort.endsWith('cut') ? { sort, volume: of } : { sort };
      const { missed, twice } = await readsAllOfMoving(
        house,
        tenant,
        'snapshots',
        query,
        async ({ from, to, step }) => {
          await house.query(
            `INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool,
                                      folder, size_bytes, cut, cut_at, index_state)
         SELECT $1, gen_random_uuid(), $2, $3, 'page-' || lpad(n::text, 5, '0'), 'ready', false, '', '{}', 'default', '', 4096,
                n + 1, now(), 'indexed'
           FROM generate_series($4::int, $5::int, $6::int) AS n`,
            [tenant.id, tenant.backends.local, of, from, to, step],
          );
        },
      );
      expect({ missed, twice }).toEqual({ missed: [], twice: 0 });
    },
  );
});

async function bareVolume(tenant: HouseTenant): Promise<string> {
  const [row] = await house.query<{ id: string }>(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                destroy_on_delete, description, config)
     VALUES ($1, gen_random_uuid(), $2, $3, 'ready', '{}', 'x', 'default', '', 4096, false, false, '', '{}') RETURNING id`,
    [tenant.id, tenant.backends.local, pageName(0)],
  );
  return row!.id;
}
