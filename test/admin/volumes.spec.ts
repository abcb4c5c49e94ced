import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse } from '#test/admin/admin-house';
import {
  driverOf,
  ended,
  idOf,
  insertVolumes,
  MIB,
  makeVolume,
  operationOf,
  pausedWorkers,
  poolsSeen,
  readAll,
  unworked,
} from '#test/admin/resource-calls';

let house: AdminHouse;
const volumes = '/tenants/acme/volumes';
const of = (id: string) => `${volumes}/${id}`;

beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  await house.appliance.worker();
  await poolsSeen(house, house.acme);
}, 60_000);
afterAll(() => house?.close());

const get = (id: string) => house.call(house.acme.viewer, 'GET', of(id));
const names = async (query: Record<string, string> = {}) =>
  (await house.call(house.acme.viewer, 'GET', volumes, { query })).body.items.map(
    (item: { name: string }) => item.name,
  );

describe('a volume by the admin API', () => {
  it('is made, with who asked for it at its operation and in the audit log', async () => {
    const made = await makeVolume(house, house.acme, 'made', { description: 'of the shop' });
    expect(made.status).toBe(201);
    expect(made.headers.location).toBe(`/api/v1${of(idOf(made))}`);
    expect(made.body).toMatchObject({
      name: 'made',
      backend: 'local',
      state: 'ready',
      size: String(8 * MIB),
      description: 'of the shop',
      operation: null,
      publications: 0,
      snapshots: 0,
      cloneOf: null,
      binnedUntil: null,
    });
    const read = await get(idOf(made));
    expect(read.body).toEqual(made.body);
    expect(read.headers.etag).toBe(made.headers.etag);
    const [entry] = await house.audit('volume.create');
    expect(entry).toMatchObject({
      tenant_id: house.acme.id,
      actor: house.acme.operator.username,
      subject_id: idOf(made),
      subject_name: 'made',
      after: expect.objectContaining({ name: 'made', size: String(8 * MIB) }),
    });
    const [operation] = await house.query('SELECT kind, actor FROM trivet.operation WHERE id = $1', [
      entry!.operation_id,
    ]);
    expect(operation).toMatchObject({ kind: 'volume.create', actor: expect.stringContaining('the-operator@acme') });
  });

  it('is refused where there is one of its name, on an unknown backend, and beyond what a pool has', async () => {
    await makeVolume(house, house.acme, 'taken');
    const again = await makeVolume(house, house.acme, 'taken');
    expect(again).toMatchObject({ status: 409, body: { code: 'already_exists', retryable: false } });
    const nowhere = await makeVolume(house, house.acme, 'nowhere', { backend: 'no-such' });
    expect(nowhere).toMatchObject({ status: 400, body: { errors: [{ pointer: '/body/backend' }] } });
    const pool = await makeVolume(house, house.acme, 'nowhere', { pool: 'no-such' });
    expect(pool).toMatchObject({ status: 400, body: { errors: [{ pointer: '/body/pool' }] } });
    const large = await makeVolume(house, house.acme, 'large', { size: String(2n ** 50n) });
    expect(large).toMatchObject({ status: 507, body: { code: 'resource_exhausted' } });
    expect(await house.query("SELECT FROM trivet.audit_entry WHERE subject_name IN ('nowhere', 'large')")).toEqual([]);
  });

  it('is answered with its operation when that is not waited for', async () => {
    const body = { name: 'later', size: String(MIB) };
    const headers = { prefer: 'wait=0' };
    const made = await unworked(house, () => house.call(house.acme.operator, 'POST', volumes, { body, headers }));
    expect(made).toMatchObject({ status: 202, body: { name: 'later', operation: operationOf(made) } });
    expect(made.headers['retry-after']).toBe('1');
    expect(await ended(house, operationOf(made))).toBe('succeeded');
    expect((await get(idOf(made))).body).toMatchObject({ state: 'ready', operation: null });
  });

  it('keeps the trace of its caller with its operation, if it is one', async () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const kept = async (name: string, traceparent: string) => {
      const body = { name, size: String(MIB) };
      const headers = { prefer: 'wait=0', traceparent };
      const made = await unworked(house, () => house.call(house.acme.operator, 'POST', volumes, { body, headers }));
      const [row] = await house.query<{ traceparent: string | null }>(
        'SELECT traceparent FROM trivet.operation WHERE id = $1',
        [operationOf(made)],
      );
      return row!.traceparent;
    };
    expect(await kept('traced', trace)).toBe(trace);
    const wrong = [`${trace}-x`, `${trace}, ${trace}`, `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, "'; DROP TABLE x"];
    for (const [n, header] of wrong.entries()) expect(await kept(`untraced-${n}`, header), header).toBeNull();
  });

  it('is cloned from a snapshot and from a volume', async () => {
    const source = idOf(await makeVolume(house, house.acme, 'source'));
    const snapshot = await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', {
      body: { volume: source, name: 'of-source' },
    });
    const clone = { body: { name: 'clone-1', source: { snapshot: idOf(snapshot) } } };
    const first = await house.call(house.acme.operator, 'POST', volumes, clone);
    expect(first).toMatchObject({ status: 201, body: { cloneOf: 'source', size: String(8 * MIB) } });
    const second = await makeVolume(house, house.acme, 'clone-2', { source: { volume: source } });
    expect(second).toMatchObject({ status: 201, body: { cloneOf: 'source' } });
    const small = await makeVolume(house, house.acme, 'clone-3', { source: { volume: source }, size: String(MIB) });
    expect(small).toMatchObject({ status: 400, body: { errors: [{ pointer: '/body/size' }] } });
  });

  it('is made of no image that is not there, and of none by a path', async () => {
    for (const image of ['none.img', '../none.img'])
      expect(await makeVolume(house, house.acme, 'registered', { source: { image } }), image).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: expect.stringContaining('/body/source') }] },
      });
  });

  it('is expanded, described and protected by who has read it last', async () => {
    const made = await makeVolume(house, house.acme, 'grows');
    const id = idOf(made);
    const etag = String(made.headers.etag);
    const change = (body: object, ifMatch?: string) =>
      house.call(house.acme.operator, 'PATCH', of(id), { body, ...(ifMatch ? { ifMatch } : {}) });
    expect((await change({ description: 'x' })).status).toBe(428);
    const wanted = { size: String(16 * MIB), description: 'more', protectionTemplate: 'Retain-30Daily' };
    const changed = await change(wanted, etag);
    expect(changed).toMatchObject({ status: 200, body: wanted });
    expect(changed.headers.etag).not.toBe(etag);
    expect((await change({ description: 'lost' }, etag)).status).toBe(412);
    const smaller = await change({ size: String(MIB) }, String(changed.headers.etag));
    expect(smaller).toMatchObject({ status: 400, body: { errors: [{ pointer: '/body/size' }] } });
    const unknown = await change({ protectionTemplate: 'none' }, String(changed.headers.etag));
    expect(unknown).toMatchObject({ status: 400, body: { errors: [{ pointer: '/body/protectionTemplate' }] } });
    const without = await change({ protectionTemplate: null }, String(changed.headers.etag));
    expect(without.body).toMatchObject({ description: 'more', protectionTemplate: null });
    const entries = await house.query<Record<string, unknown>>(
      'SELECT before, after, operation_id FROM trivet.audit_entry WHERE subject_id = $1 AND action = $2 ORDER BY seq',
      [id, 'volume.change'],
    );
    expect(entries).toMatchObject([
      { before: { size: String(8 * MIB), description: '' }, after: wanted, operation_id: expect.any(String) },
      { after: { protectionTemplate: null }, operation_id: null },
    ]);
  });

  it('goes to the recycle bin, comes back, and goes for good', async () => {
    const made = await makeVolume(house, house.acme, 'bin');
    const id = idOf(made);
    const del = (ifMatch: unknown) => house.call(house.acme.admin, 'DELETE', of(id), { ifMatch: String(ifMatch) });
    expect((await house.call(house.acme.operator, 'DELETE', of(id), { ifMatch: '*' })).status).toBe(403);
    expect((await del(made.headers.etag)).status).toBe(204);
    expect(await names({ search: 'bin' })).toEqual([]);
    expect(await names({ state: 'binned', search: 'bin' })).toEqual(['bin']);
    expect((await get(id)).body).toMatchObject({ state: 'binned', binnedUntil: expect.any(String) });

    await makeVolume(house, house.acme, 'bin');
    const restore = (body: object) => house.call(house.acme.operator, 'POST', `${of(id)}/restore`, { body });
    expect(await restore({})).toMatchObject({ status: 409, body: { code: 'already_exists' } });
    expect(await restore({ name: 'bin-again' })).toMatchObject({
      status: 200,
      body: { name: 'bin-again', state: 'ready' },
    });
    expect(await restore({})).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });

    expect((await del((await get(id)).headers.etag)).status).toBe(204);
    expect((await house.change(house.acme.operator, 'PATCH', of(id), { body: { description: 'x' } })).status).toBe(409);
    expect((await del((await get(id)).headers.etag)).status).toBe(204);
    expect((await get(id)).status).toBe(404);
    const [row] = await house.query('SELECT state FROM trivet.volume WHERE id = $1', [id]);
    expect(row).toEqual({ state: 'gone' });
    const actions = await house.query('SELECT action FROM trivet.audit_entry WHERE subject_id = $1 ORDER BY seq', [id]);
    expect(actions.map(({ action }) => action)).toEqual([
      'volume.create',
      'volume.delete',
      'volume.restore',
      'volume.delete',
      'volume.purge',
    ]);
  });

  it('that hosts have is deleted by force alone, and not by who saw it without a host', async () => {
    const made = await makeVolume(house, house.acme, 'forced');
    const driver = await driverOf(house, house.acme);
    const host = { uuid: 'h-forced', name: 'forced', wwpns: [], nqns: [], networks: [] };
    const { blockStorage } = house.parts;
    await blockStorage.hosts.put(driver, { ...host, iqns: ['iqn.2026-01.org.example:forced'] });
    await blockStorage.publications.publish(driver, idOf(made), { host: 'h-forced', accessProtocol: 'iscsi' });
    const del = (ifMatch: unknown, query: Record<string, string>) =>
      house.call(house.acme.admin, 'DELETE', of(idOf(made)), { ifMatch: String(ifMatch), query });
    expect((await del(made.headers.etag, { force: 'true' })).status).toBe(412);
    const { headers, body } = await get(idOf(made));
    expect(body.publications).toBe(1);
    expect(await del(headers.etag, {})).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect((await del(headers.etag, { force: 'true' })).status).toBe(204);
  });

  it('that is being deleted already is answered with that deletion', async () => {
    const made = await makeVolume(house, house.acme, 'twice');
    const headers = { prefer: 'wait=0' };
    const del = (ifMatch: unknown) =>
      house.call(house.acme.admin, 'DELETE', of(idOf(made)), { headers, ifMatch: String(ifMatch) });
    await using _ = await pausedWorkers(house);
    const first = await del(made.headers.etag);
    expect(first.status).toBe(202);
    const second = await del((await get(idOf(made))).headers.etag);
    expect(second.status).toBe(202);
    expect(operationOf(second)).toBe(operationOf(first));
    const [{ n }] = (await house.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM trivet.audit_entry WHERE subject_id = $1 AND action = 'volume.delete'",
      [idOf(made)],
    )) as [{ n: number }];
    expect(n).toBe(1);
  });

  it('is changed by one of two who read the same', async () => {
    const made = await makeVolume(house, house.acme, 'contended');
    const change = (description: string) =>
      house.call(house.acme.operator, 'PATCH', of(idOf(made)), {
        body: { description },
        ifMatch: String(made.headers.etag),
      });
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map(change));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
    const won = replies.find(({ status }) => status === 200);
    expect((await get(idOf(made))).body.description).toBe(won!.body.description);
    const written = await house.query(
      "SELECT FROM trivet.audit_entry WHERE subject_id = $1 AND action = 'volume.change'",
      [idOf(made)],
    );
    expect(written).toHaveLength(1);
  });

  it('whose backend does not answer is accepted, goes on, and says so at its operation', async () => {
    const faults = house.appliance.fakeBlock!;
    faults.addFault({ method: 'stage', mode: 'fail-before', error: 'unavailable', message: 'ordered', count: 2 });
    const made = await makeVolume(house, house.acme, 'patient');
    expect(made).toMatchObject({ status: 202, body: { state: 'creating', operation: operationOf(made) } });
    expect(await ended(house, operationOf(made))).toBe('succeeded');
    expect((await get(idOf(made))).body.state).toBe('ready');
  });

  it('that cannot be made says why, and which operation tried', async () => {
    const faults = house.appliance.fakeBlock!;
    faults.addFault({
      method: 'stage',
      mode: 'fail-before',
      error: 'resource_exhausted',
      message: 'no room',
      count: 1,
    });
    const refused = await makeVolume(house, house.acme, 'hopeless');
    expect(refused).toMatchObject({ status: 507, body: { code: 'resource_exhausted' } });
    expect(refused.body.detail).toContain('no room');
    const [operation] = await house.query('SELECT state FROM trivet.operation WHERE id = $1', [
      refused.body.operation.split('/').at(-1),
    ]);
    expect(operation).toEqual({ state: 'failed' });
  });

  it('that grows already is not changed by a second call, which is told by whom', async () => {
    const made = await makeVolume(house, house.acme, 'growing');
    await using _ = await pausedWorkers(house);
    const grow = async (mib: number) =>
      house.change(house.acme.operator, 'PATCH', of(idOf(made)), {
        body: { size: String(mib * MIB) },
        headers: { prefer: 'wait=0' },
      });
    const first = await grow(16);
    expect(first.status).toBe(202);
    const second = await grow(32);
    expect(second).toMatchObject({ status: 409, body: { code: 'aborted', retryable: true } });
    expect(second.body.operation).toBe(first.headers.location);
  });

  it.each(['', ' ', ' front', 'line\nend', 'nul\0', 'x'.repeat(201)])('is not named %j', async name => {
    expect(await makeVolume(house, house.acme, name)).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/body/name' }] },
    });
  });

  it('is refused beyond the quota, with the reason', async () => {
    const small = await house.tenant('small');
    await poolsSeen(house, small);
    await house.query("INSERT INTO trivet.tenant_quota (tenant_id, key, value) VALUES ($1, 'volumes', 1)", [small.id]);
    expect((await makeVolume(house, small, 'one')).status).toBe(201);
    const second = await makeVolume(house, small, 'two');
    expect(second).toMatchObject({ status: 507, body: { code: 'resource_exhausted', retryable: false } });
    expect(second.body.detail).toContain('small');
    const written = await house.query(
      "SELECT FROM trivet.audit_entry WHERE tenant_id = $1 AND action = 'volume.create'",
      [small.id],
    );
    expect(written).toHaveLength(1);
  });
});

describe('the list of volumes', () => {
  it('has everything once over all pages, in each order, while others are made and deleted', async () => {
    const many = await house.tenant('many');
    await insertVolumes(house, many, { from: 0, to: 1_998, step: 2 });
    const there = Array.from({ length: 1_000 }, (_, n) => `page-${String(2 * n).padStart(5, '0')}`);
    for (const sort of ['name', '-name', 'createdAt', '-createdAt', 'size', '-size']) {
      let made = 1;
      const items = await readAll(house, many, 'volumes', { sort, limit: '37' }, async () => {
        await insertVolumes(house, many, { from: made, to: made + 40, step: 2 });
        made += 42;
        await house.query("DELETE FROM trivet.volume WHERE tenant_id = $1 AND name = 'page-00001'", [many.id]);
      });
      const seen = items.map(({ name }) => name);
      expect(new Set(items.map(({ id }) => id)).size).toBe(items.length);
      const seenSet = new Set(seen);
      expect(there.filter(name => !seenSet.has(name))).toEqual([]);
      if (sort.endsWith('name')) expect(seen).toEqual(sort === 'name' ? [...seen].sort() : [...seen].sort().reverse());
      await house.query(
        "DELETE FROM trivet.volume WHERE tenant_id = $1 AND right(name, 1) IN ('1', '3', '5', '7', '9')",
        [many.id],
      );
    }
  });

  it('refuses a cursor of another list, order or making', async () => {
    const { body } = await house.call(house.acme.viewer, 'GET', volumes, { query: { limit: '1' } });
    expect(body.next).toEqual(expect.any(String));
    const with_ = (query: Record<string, string>) => house.call(house.acme.viewer, 'GET', volumes, { query });
    const made = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const [print] = JSON.parse(Buffer.from(body.next, 'base64url').toString());
    const refused: Record<string, string>[] = [
      { cursor: body.next, sort: '-name' },
      { cursor: body.next, state: 'ready' },
      { cursor: 'nonsense' },
      { cursor: made({}) },
      { cursor: made([print]) },
      { cursor: made([print, 'a', 'no-uuid']) },
      { cursor: made([print, 'a\0', '00000000-0000-0000-0000-000000000000']) },
    ];
    for (const query of refused)
      expect(await with_(query)).toMatchObject({ status: 400, body: { errors: [{ pointer: '/query/cursor' }] } });
    expect((await with_({ cursor: body.next, limit: '2' })).status).toBe(200);
  });

  it('is filtered by state, backend, condition and a part of the name, taken as it stands', async () => {
    await makeVolume(house, house.acme, '50%_of');
    await makeVolume(house, house.acme, '50 of');
    expect(await names({ search: '50%_' })).toEqual(['50%_of']);
    expect(await names({ search: '50% OF' })).toEqual([]);
    expect(await names({ search: '50', backend: 'fake' })).toEqual([]);
    expect(await names({ search: '50', backend: 'local', state: 'ready' })).toHaveLength(2);
    await house.query(
      `UPDATE trivet.volume SET condition = '{"type": "lost", "message": "its image is gone"}' WHERE name = '50 of'`,
    );
    const lost = await house.call(house.acme.viewer, 'GET', volumes, { query: { condition: 'true' } });
    expect(lost.body.items).toMatchObject([
      { name: '50 of', condition: { type: 'lost', message: 'its image is gone' } },
    ]);
    expect(await names({ condition: 'false', search: '50' })).toEqual(['50%_of']);
  });
});
