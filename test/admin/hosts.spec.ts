import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import {
  driverOf,
  ended,
  idOf,
  makeVolume,
  operationOf,
  poolsSeen,
  readsAllOfMoving,
  unworked,
} from '#test/admin/resource-calls';

let house: AdminHouse;

beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  await house.appliance.worker();
  await poolsSeen(house, house.acme);
}, 60_000);
afterAll(() => house?.close());

const PASSWORD = 'secret-of-chap-1';

async function putHost(tenant: HouseTenant, name: string, changes: object = {}): Promise<string> {
  await house.parts.blockStorage.hosts.put(await driverOf(house, tenant), {
    uuid: `uuid-of-${name}`,
    name,
    iqns: [`iqn.2026-01.org.example:${name}`],
    wwpns: [],
    nqns: [],
    networks: ['127.0.0.1/8'],
    chap: { user: `chap-${name}`, password: PASSWORD },
    ...changes,
  });
  const [row] = await house.query<{ id: string }>('SELECT id FROM trivet.host WHERE tenant_id = $1 AND name = $2', [
    tenant.id,
    name,
  ]);
  return row!.id;
}

async function publish(tenant: HouseTenant, volume: string, host: string): Promise<void> {
  const driver = await driverOf(house, tenant);
  await house.parts.blockStorage.publications.publish(driver, volume, {
    host: `uuid-of-${host}`,
    accessProtocol: 'iscsi',
  });
}

const publications = (query: Record<string, string> = {}) =>
  house.call(house.acme.viewer, 'GET', '/tenants/acme/publications', { query });

describe('a host by the admin API', () => {
  it('is shown without its CHAP password, with how many volumes it has', async () => {
    const id = await putHost(house.acme, 'shown');
    const { status, body } = await house.call(house.acme.viewer, 'GET', `/tenants/acme/hosts/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id,
      uuid: 'uuid-of-shown',
      name: 'shown',
      iqns: ['iqn.2026-01.org.example:shown'],
      chapUser: 'chap-shown',
      publications: 0,
    });
    const list = await house.call(house.acme.viewer, 'GET', '/tenants/acme/hosts', { query: { search: 'SHOW' } });
    expect(list.body.items).toEqual([body]);
    expect(JSON.stringify([body, list.body])).not.toContain(PASSWORD);
    expect((await house.call(house.beta.admin, 'GET', `/tenants/beta/hosts/${id}`)).status).toBe(404);
  });

  describe('that no driver has named', () => {
    const CHAP = { user: 'database-1', password: 'canary-of-host1' };
    const create = (body: object, who = house.acme.admin) => house.call(who, 'POST', '/tenants/acme/hosts', { body });
    const publish = (volume: string, host: string, who = house.acme.admin, headers: Record<string, string> = {}) =>
      house.call(who, 'POST', '/tenants/acme/publications', { body: { volume, host }, headers });

    it('is made known with its account, and given a volume with all that its initiator needs', async () => {
      const iqns = ['iqn.2026-01.org.example:database-1'];
      const host = await create({ name: 'database-1', iqns, chap: CHAP });
      expect(host).toMatchObject({
        status: 201,
        body: { name: 'database-1', iqns, chapUser: CHAP.user, publications: 0 },
      });
      expect(host.headers.location).toBe(`/api/v1/tenants/acme/hosts/${host.body.id}`);
      const volume = idOf(await makeVolume(house, house.acme, 'by-hand'));
      const made = await publish(volume, host.body.id);
      expect(made).toMatchObject({
        status: 201,
        body: {
          volume: { id: volume, name: 'by-hand' },
          host: { id: host.body.id, name: 'database-1' },
          accessProtocol: 'iscsi',
          state: 'applied',
          target: expect.stringMatching(/^iqn\./),
          lun: 1,
          serialNumber: expect.any(String),
          portals: [expect.stringMatching(/:\d+$/)],
          chap: CHAP,
        },
      });
      const { chap: _, ...shown } = made.body;
      expect((await house.call(house.acme.viewer, 'GET', `/tenants/acme/publications/${shown.id}`)).body).toEqual(
        shown,
      );
      expect(made.headers.location).toBe(`/api/v1/tenants/acme/publications/${shown.id}`);
      const entries = [...(await house.audit('host.create')), ...(await house.audit('publication.create'))];
      expect(entries).toContainEqual(expect.objectContaining({ subject_id: host.body.id, subject_name: 'database-1' }));
      expect(entries).toContainEqual(
        expect.objectContaining({ subject_id: shown.id, actor: house.acme.admin.username, door: 'admin' }),
      );
      expect(JSON.stringify([host.body, entries, await house.query('SELECT * FROM trivet.operation')])).not.toContain(
        CHAP.password,
      );
      expect(await publish(volume, host.body.id)).toMatchObject({ status: 409, body: { code: 'already_exists' } });
      const end = await house.call(house.acme.admin, 'DELETE', `/tenants/acme/publications/${shown.id}`);
      expect(end.status).toBe(204);
    });

    it('is given one by an operation that goes on, once by its key', async () => {
      const { body: host } = await create({ name: 'slow', iqns: ['iqn.2026-01.org.example:slow'] });
      const volume = idOf(await makeVolume(house, house.acme, 'slowly'));
      const headers = { prefer: 'wait=0', 'idempotency-key': 'slowly' };
      const [going, again] = await unworked(house, async () => [
        await publish(volume, host.id, house.acme.admin, headers),
        await publish(volume, host.id, house.acme.admin, headers),
      ]);
      expect(going).toMatchObject({ status: 202, body: { state: 'wanted', portals: [], target: null, chap: null } });
      expect(again).toMatchObject({ status: 202, body: going!.body });
      expect(await ended(house, operationOf(going!))).toBe('succeeded');
    });

    it('is refused what it cannot have, by who may not give it, and a name that is none', async () => {
      const { body: host } = await create({ name: 'refused', iqns: ['iqn.2026-01.org.example:refused'] });
      const volume = idOf(await makeVolume(house, house.acme, 'refused'));
      expect((await publish(volume, host.id, house.acme.operator)).status).toBe(403);
      const none = '0198c0de-0000-7000-8000-000000000000';
      for (const [of, to, pointer] of [
        [volume, none, '/body/host'],
        [none, host.id, '/body/volume'],
      ] as const)
        expect(await publish(of, to)).toMatchObject({ status: 404, body: { errors: [{ pointer }] } });
      for (const [body, pointer] of [
        [{ name: 'x', iqns: ['node-1'] }, '/body/iqns/0'],
        [{ name: 'x', iqns: [] }, '/body/iqns'],
        [
          { name: 'x', iqns: ['iqn.2026-01.org.example:x'], chap: { user: 'x', password: 'short' } },
          '/body/chap/password',
        ],
      ] as const)
        expect(await create(body)).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
      // An account has one password, whoever has it.
      const other = { name: 'x', iqns: ['iqn.2026-01.org.example:x'], chap: { ...CHAP, password: 'another-of-host' } };
      expect(await create(other)).toMatchObject({ status: 409, body: { errors: [{ pointer: '/body/chap/user' }] } });
      expect((await create({ name: 'x', iqns: ['iqn.2026-01.org.example:x'] }, house.acme.operator)).status).toBe(403);
    });
  });

  it('is forgotten when it has no volume, by who read it last', async () => {
    const id = await putHost(house.acme, 'forgotten');
    const path = `/tenants/acme/hosts/${id}`;
    const { headers } = await house.call(house.acme.viewer, 'GET', path);
    const volume = idOf(await makeVolume(house, house.acme, 'of-forgotten'));
    await publish(house.acme, volume, 'forgotten');
    const del = (ifMatch: unknown) => house.call(house.acme.admin, 'DELETE', path, { ifMatch: String(ifMatch) });
    expect(await del(headers.etag)).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    await house.parts.blockStorage.publications.unpublish(
      await driverOf(house, house.acme),
      volume,
      'uuid-of-forgotten',
    );
    await house.parts.blockStorage.hosts.put(await driverOf(house, house.acme), {
      uuid: 'uuid-of-forgotten',
      name: 'forgotten',
      iqns: ['iqn.2026-01.org.example:other'],
      wwpns: [],
      nqns: [],
      networks: [],
    });
    expect((await del(headers.etag)).status).toBe(412);
    const again = await house.call(house.acme.viewer, 'GET', path);
    expect((await del(again.headers.etag)).status).toBe(204);
    expect((await house.call(house.acme.viewer, 'GET', path)).status).toBe(404);
    expect((await del('*')).status).toBe(404);
    const entries = await house.audit('host.delete');
    expect(entries).toMatchObject([{ subject_name: 'forgotten', before: expect.objectContaining({ id }) }]);
  });

  it('is listed once over all pages while others come', async () => {
    const many = await house.tenant('many');
    const { missed, twice } = await readsAllOfMoving(house, many, 'hosts', {}, async ({ from, to, step }) => {
      await house.query(
        `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
         SELECT $1, gen_random_uuid(), 'u' || n, 'page-' || lpad(n::text, 5, '0'), '{}', '{}', '{}', '{}'
           FROM generate_series($2::int, $3::int, $4::int) AS n`,
        [many.id, from, to, step],
      );
    });
    expect({ missed, twice }).toEqual({ missed: [], twice: 0 });
  });

  describe('beside those of a driver', () => {
    const iqn = (name: string) => `iqn.2026-01.org.example:${name}`;
    const create = (body: object) => house.call(house.acme.admin, 'POST', '/tenants/acme/hosts', { body });
    const publish = (volume: string, host: string) =>
      house.call(house.acme.admin, 'POST', '/tenants/acme/publications', { body: { volume, host } });

    it('is the one that the admin API means, also when a driver calls another one by its id', async () => {
      const { body: host } = await create({ name: 'meant', iqns: [iqn('meant')] });
      await putHost(house.acme, 'shadow', { uuid: host.id, chap: undefined });
      const volume = idOf(await makeVolume(house, house.acme, 'meant'));
      const made = await publish(volume, host.id);
      expect(made).toMatchObject({ status: 201, body: { host: { id: host.id, name: 'meant' } } });
      const path = `/tenants/acme/publications/${made.body.id}`;
      expect((await house.call(house.acme.admin, 'DELETE', path)).status).toBe(204);
      expect((await house.call(house.acme.admin, 'GET', path)).status).toBe(404);
      const end = await house.call(house.acme.admin, 'DELETE', `/tenants/acme/hosts/${host.id}`, { ifMatch: '*' });
      expect(end.status).toBe(204);
      expect((await house.call(house.acme.admin, 'GET', `/tenants/acme/hosts/${host.id}`)).status).toBe(404);
    });

    it('is changed by no driver, which may say what is so', async () => {
      const { body: host } = await create({ name: 'kept', iqns: [iqn('kept')] });
      const same = { uuid: host.uuid, networks: [], chap: undefined };
      await putHost(house.acme, 'kept', same);
      for (const change of [{ iqns: [iqn('of-driver')] }, { chap: { user: 'of-driver', password: PASSWORD } }])
        await expect(putHost(house.acme, 'kept', { ...same, ...change })).rejects.toMatchObject({
          kind: 'already_exists',
          field: 'uuid',
        });
      const { body } = await house.call(house.acme.viewer, 'GET', `/tenants/acme/hosts/${host.id}`);
      expect(body).toEqual(host);
    });

    it('has initiators of its own, once, whatever is asked at the same moment', async () => {
      const body = { name: 'alone', iqns: [iqn('alone')] };
      const replies = await Promise.all([create(body), create(body), create(body)]);
      expect(replies.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
      const refused = { status: 409, body: { code: 'already_exists', errors: [{ pointer: '/body/iqns' }] } };
      expect(await create({ name: 'other', iqns: [iqn('others'), iqn('ALONE')] })).toMatchObject(refused);
      await putHost(house.acme, 'node');
      expect(await create({ name: 'person', iqns: [iqn('node')] })).toMatchObject(refused);
      // A driver may call its node by two names, and gets nobody else's.
      await putHost(house.acme, 'node-again', { iqns: [iqn('node')] });
      for (const name of ['node', 'taker'])
        await expect(putHost(house.acme, name, { iqns: [iqn(name), iqn('alone')] })).rejects.toMatchObject({
          kind: 'already_exists',
          field: 'iqns',
        });
    });

    it('is told of its own password alone: that of a node is what its driver gave it', async () => {
      const host = await putHost(house.acme, 'driven');
      const volume = idOf(await makeVolume(house, house.acme, 'to-driven'));
      const made = await publish(volume, host);
      expect(made).toMatchObject({ status: 201, body: { state: 'applied', chap: null } });
      expect(JSON.stringify(made.body)).not.toContain(PASSWORD);
    });
  });
});

describe('operations of what hangs on an object', () => {
  it('are found by the volume and by the host, whoever else has some', async () => {
    const host = await putHost(house.acme, 'related');
    const volume = idOf(await makeVolume(house, house.acme, 'related-1'));
    const other = idOf(await makeVolume(house, house.acme, 'related-2'));
    await publish(house.acme, volume, 'related');
    for (const of of [volume, other]) {
      const body = { volume: of, name: 'monday' };
      expect((await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', { body })).status).toBe(201);
    }
    const kinds = async (query: Record<string, string>, who = house.acme.viewer) => {
      const reply = await house.call(who, 'GET', '/operations', { query });
      expect(reply.status, JSON.stringify(reply.body)).toBe(200);
      // The index of a snapshot comes by itself, in its own time.
      return reply.body.items
        .map(({ kind }: { kind: string }) => kind)
        .filter((kind: string) => kind !== 'changes.index');
    };
    const all = ['snapshot.create', 'volume.publish', 'volume.create'];
    expect(await kinds({ related: volume })).toEqual(all);
    expect(await kinds({ related: volume, sort: 'createdAt' })).toEqual([...all].reverse());
    expect(await kinds({ related: volume, kind: 'volume', state: 'succeeded' })).toEqual(all.slice(1));
    expect(await kinds({ related: volume, kind: 'volume', limit: '1' })).toEqual(['volume.publish']);
    expect(await kinds({ related: other })).toEqual(['snapshot.create', 'volume.create']);
    expect(await kinds({ related: host })).toEqual(['volume.publish']);
    expect(await kinds({ related: volume, tenant: 'acme' }, house.root.viewer)).toEqual(all);
    // Another tenant has no such object.
    expect(await kinds({ related: volume }, house.beta.viewer)).toEqual([]);
    const nowhere = await house.call(house.root.viewer, 'GET', '/operations', { query: { related: volume } });
    expect(nowhere.status).toBe(400);
    expect(nowhere.body.errors[0].pointer).toBe('/query/tenant');
  });
});

describe('a publication by the admin API', () => {
  it('is found by its volume and its host, and ended at the host', async () => {
    const host = await putHost(house.acme, 'reader');
    const [one, two] = [
      idOf(await makeVolume(house, house.acme, 'read-1')),
      idOf(await makeVolume(house, house.acme, 'read-2')),
    ];
    await publish(house.acme, one, 'reader');
    await publish(house.acme, two, 'reader');
    const found = await publications({ host });
    expect(found.body.items).toMatchObject([
      { volume: { name: 'read-1' }, host: { id: host, name: 'reader' }, state: 'applied', lun: 1 },
      { volume: { name: 'read-2' } },
    ]);
    expect(found.body.items[0].target).toMatch(/^iqn\./);
    const [publication] = (await publications({ volume: two })).body.items;
    expect(publication.volume.id).toBe(two);

    const path = `/tenants/acme/publications/${publication.id}`;
    expect((await house.call(house.acme.operator, 'DELETE', path)).status).toBe(403);
    const headers = { prefer: 'wait=0' };
    const accepted = await unworked(house, () => house.call(house.acme.admin, 'DELETE', path, { headers }));
    expect(accepted.status).toBe(202);
    expect(await ended(house, operationOf(accepted))).toBe('succeeded');
    expect((await publications({ host })).body.items).toMatchObject([{ volume: { name: 'read-1' } }]);
    expect((await house.call(house.acme.admin, 'DELETE', path)).status).toBe(404);
    const [entry] = await house.audit('publication.delete');
    expect(entry).toMatchObject({ subject_id: publication.id, operation_id: operationOf(accepted) });
  });
});
