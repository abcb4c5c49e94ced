import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EndpointCaller } from '#storage/object/endpoint';
import { AdminHouse } from '#test/admin/admin-house';
import {
  ended,
  grantOn,
  insertBuckets,
  operationOf,
  readsAllOfMoving,
  registerBucket,
  sidecarOf,
  unworked,
} from '#test/admin/resource-calls';
import { until } from '#test/support/parts';

let house: AdminHouse;
let sidecar: EndpointCaller;
const buckets = '/tenants/acme/buckets';

beforeAll(async () => {
  house = await AdminHouse.create();
  await house.appliance.worker();
  sidecar = await sidecarOf(house, house.acme);
}, 60_000);
afterAll(() => house?.close());

async function make(name: string, parameters: Record<string, string> = {}): Promise<string> {
  await house.parts.storage.buckets.create(sidecar, { name, protocols: ['s3'], parameters });
  const [row] = await house.query<{ id: string }>("SELECT id FROM trivet.bucket WHERE name = $1 AND state <> 'gone'", [
    name,
  ]);
  return row!.id;
}

const pending = (kind: string) =>
  house.query("SELECT FROM trivet.operation WHERE kind = $1 AND state = 'pending'", [kind]);
const get = (id: string) => house.call(house.acme.viewer, 'GET', `${buckets}/${id}`);
const list = async (query: Record<string, string>) =>
  (await house.call(house.acme.viewer, 'GET', buckets, { query })).body.items.map(
    (item: { name: string }) => item.name,
  );

describe('a bucket by the admin API', () => {
  it('is shown with the parameters that it was made with', async () => {
    const id = await make('shown', { versioning: 'true', tags: 'team=shop,env=test', quotaMaxSize: '1Gi' });
    expect((await get(id)).body).toMatchObject({
      name: 'shown',
      backend: 'fake',
      origin: 'created',
      state: 'ready',
      parameters: {
        versioning: 'true',
        tags: 'env=test,team=shop',
        quotaMaxSize: '1073741824',
        deletePolicy: 'retain',
        objectLock: 'false',
      },
      accesses: 0,
      usedBytes: null,
      condition: null,
      operation: null,
    });
    expect((await house.call(house.beta.admin, 'GET', `/tenants/beta/buckets/${id}`)).status).toBe(404);
  });

  describe('is made', () => {
    const create = (body: object, who = house.acme.operator, headers: Record<string, string> = {}) =>
      house.call(who, 'POST', `${buckets}/create`, { body, headers });

    it('as a class of drivers would have it, by an operator, whose name stands in the audit log', async () => {
      const made = await create({ name: 'by-hand', parameters: { versioning: 'true' } });
      expect(made).toMatchObject({
        status: 201,
        body: {
          name: 'by-hand',
          state: 'ready',
          origin: 'created',
          parameters: { versioning: 'true' },
          operation: null,
        },
      });
      expect(made.headers.location).toBe(`/api/v1${buckets}/${made.body.id}`);
      expect((await get(made.body.id)).body).toEqual(made.body);
      expect(house.appliance.fake!.bucket('by-hand')).toBeDefined();
      const [entry] = await house.audit('bucket.create');
      expect(entry).toMatchObject({ subject_id: made.body.id, actor: house.acme.operator.username, door: 'admin' });
      // What a driver asks for afterwards under this name is the same one.
      const request = { name: 'by-hand', protocols: ['s3'] as const, parameters: { versioning: 'true' } };
      expect((await house.parts.storage.buckets.create(sidecar, request)).operation).toBeUndefined();
      expect((await create({ name: 'by-viewer' }, house.acme.viewer)).status).toBe(403);
    });

    it('once: who asks again is told, unless by the same Idempotency-Key', async () => {
      const headers = { 'idempotency-key': 'one-bucket' };
      const [first, again] = [
        await create({ name: 'once' }, house.acme.operator, headers),
        await create({ name: 'once' }, house.acme.operator, headers),
      ];
      expect(again).toMatchObject({ status: 201, body: first.body, headers: { 'idempotency-replayed': 'true' } });
      const refused = { status: 409, body: { code: 'already_exists' } };
      expect(await create({ name: 'once' })).toMatchObject(refused);
      expect(await create({ name: 'once', parameters: { versioning: 'true' } })).toMatchObject(refused);
      house.appliance.fake!.seedForeignBucket('of-somebody');
      expect(await create({ name: 'of-somebody' })).toMatchObject(refused);
      expect(await house.query("SELECT FROM trivet.bucket WHERE name = 'of-somebody' AND state <> 'gone'")).toEqual([]);
    });

    it('by an operation that goes on, or is refused before there is one', async () => {
      const going = await unworked(house, () => create({ name: 'later' }, house.acme.operator, { prefer: 'wait=0' }));
      expect(going).toMatchObject({ status: 202, body: { name: 'later', state: 'creating' } });
      expect(await ended(house, operationOf(going))).toBe('succeeded');
      for (const [body, pointer] of [
        [{ name: 'No Name' }, '/body/name'],
        [{ name: 'x', backend: 'tape' }, '/body/backend'],
        [{ name: 'with-wishes', parameters: { colour: 'red' } }, undefined],
      ] as const) {
        const refused = await create(body);
        expect(refused.status, JSON.stringify(refused.body)).toBe(400);
        if (pointer) expect(refused.body.errors[0].pointer).toBe(pointer);
        else expect(refused.body.detail).toMatch(/colour/);
      }
    });
  });

  it('is deleted by who read it last, with the operation of it in the audit log', async () => {
    const id = await make('deleted');
    const path = `${buckets}/${id}`;
    expect((await house.call(house.acme.admin, 'DELETE', path)).status).toBe(428);
    expect((await house.call(house.acme.admin, 'DELETE', path, { ifMatch: '"stale"' })).status).toBe(412);
    expect((await house.change(house.acme.operator, 'DELETE', path)).status).toBe(403);
    const headers = { prefer: 'wait=0' };
    const accepted = await unworked(house, () => house.change(house.acme.admin, 'DELETE', path, { headers }));
    expect(accepted.status).toBe(202);
    expect(await ended(house, operationOf(accepted))).toBe('succeeded');
    expect((await get(id)).status).toBe(404);
    const [entry] = await house.audit('bucket.delete');
    expect(entry).toMatchObject({ subject_id: id, subject_name: 'deleted', operation_id: operationOf(accepted) });
    const [operation] = await house.query('SELECT actor FROM trivet.operation WHERE id = $1', [operationOf(accepted)]);
    expect(operation!.actor).toContain(house.acme.admin.username);
  });

  it('that holds objects and was made to retain them is refused, with the operation that says so', async () => {
    const id = await make('full');
    house.appliance.fake!.seedObjects('full', 3);
    const refused = await house.change(house.acme.admin, 'DELETE', `${buckets}/${id}`);
    expect(refused).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(refused.body.operation).toMatch(/^\/api\/v1\/operations\//);
    expect((await get(id)).body.state).toBe('ready');
  });

  it('that was registered is only let go', async () => {
    const id = await registerBucket(house, house.acme, 'theirs');
    const fake = house.appliance.fake!;
    const grant = () => grantOn(house.parts.storage, sidecar, 'of-theirs', 'theirs');
    const {
      value: { accountId },
    } = await grant();
    expect(fake.grants('theirs')).toMatchObject([{ uid: accountId }]);
    await house.query("UPDATE trivet.access SET stale = true WHERE name = 'of-theirs'");

    // Also of what is being put right meanwhile nothing stays on a bucket that is registered no more.
    await house.appliance.process('worker').stop();
    const healing = grant().catch(error => error);
    await until('the grant waits', async () => (await pending('access.grant')).length > 0);
    await house.query(
      "UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE kind = 'access.grant'",
    );
    const headers = { prefer: 'wait=0' };
    const deleted = await house.change(house.acme.admin, 'DELETE', `${buckets}/${id}`, { headers });
    await house.appliance.worker();
    expect(await ended(house, operationOf(deleted))).toBe('succeeded');
    expect(fake.grants('theirs')).toEqual([]);
    await house.query("UPDATE trivet.operation SET next_run_at = now() WHERE kind = 'access.grant'");
    expect(await healing).toMatchObject({ kind: 'not_found' });
    expect(fake.grants('theirs')).toEqual([]);
    expect(await house.query('SELECT FROM trivet.bucket_grant WHERE bucket_id = $1', [id])).toEqual([]);
    expect(await house.audit('bucket.release')).toMatchObject([{ subject_name: 'theirs' }]);
    expect((await get(id)).status).toBe(404);
  });

  it('that a sidecar is letting go of is deleted after that', async () => {
    const id = await registerBucket(house, house.acme, 'leaving');
    const path = `${buckets}/${id}`;
    let released: Promise<unknown> | undefined;
    const refused = await unworked(house, async () => {
      released = house.parts.storage.buckets.delete(sidecar, 'leaving');
      await until('it waits', async () => (await pending('bucket.release')).length > 0);
      return house.change(house.acme.admin, 'DELETE', path, { headers: { prefer: 'wait=0' } });
    });
    expect(refused).toMatchObject({ status: 409, body: { operation: expect.any(String) } });
    await released;
    expect((await get(id)).status).toBe(200);
    expect((await house.change(house.acme.admin, 'DELETE', path)).status).toBe(204);
    expect((await get(id)).status).toBe(404);
  });

  it('that is let go of keeps no grant of which the revocation was given up meanwhile', async () => {
    await registerBucket(house, house.acme, 'refusing');
    const fake = house.appliance.fake!;
    const {
      value: { accountId },
    } = await grantOn(house.parts.storage, sidecar, 'of-refusing', 'refusing');
    await house.appliance.process('worker').stop();
    const released = house.parts.storage.buckets.delete(sidecar, 'refusing').catch(error => error);
    await until('the release waits', async () => (await pending('bucket.release')).length > 0);
    await house.query(
      "UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE kind = 'bucket.release'",
    );
    fake.addFault({ method: 'removeKey', resource: accountId, mode: 'fail-before', error: 'failed_precondition' });
    const revoked = house.parts.storage.accesses.revoke(sidecar, accountId).catch(error => error);
    await house.appliance.worker();
    const parked = await until('the revocation waits for a person', async () => {
      const [row] = await house.query<{ id: string }>(
        "SELECT id FROM trivet.operation WHERE kind = 'access.revoke' AND state = 'needs_attention'",
      );
      return row;
    });
    const giveUp = { body: { reason: 'a test wants it' } };
    const given = await house.call(house.acme.admin, 'POST', `/operations/${parked.id}/resolve`, giveUp);
    expect(given.status).toBe(200);
    await revoked;
    await house.query("UPDATE trivet.operation SET next_run_at = now() WHERE kind = 'bucket.release'");
    expect(await released).toMatchObject({ operation: { outcome: { state: 'succeeded' } } });
    expect(fake.grants('refusing')).toEqual([]);
  });

  it('of a tenant without any socket is deleted all the same', async () => {
    const beta = await sidecarOf(house, house.beta);
    await house.parts.storage.buckets.create(beta, { name: 'left', protocols: ['s3'], parameters: {} });
    await house.query('DELETE FROM trivet.endpoint WHERE tenant_id = $1', [house.beta.id]);
    const { body } = await house.call(house.beta.viewer, 'GET', '/tenants/beta/buckets');
    expect(body.items).toHaveLength(1);
    const path = `/tenants/beta/buckets/${body.items[0].id}`;
    expect((await house.change(house.beta.admin, 'DELETE', path)).status).toBe(204);
  });
});

describe('a bucket that exists already', () => {
  const register = (tenant: string, body: object, who = house.root.admin) =>
    house.call(who, 'POST', `/tenants/${tenant}/buckets`, { body });

  it('is registered for a tenant whose sockets have names of their own, or none', async () => {
    const { id, name, backends } = await house.tenant('brownfield');
    house.appliance.fake!.seedForeignBucket('brown', 3);
    const registered = await register(name, { name: 'brown' });
    expect(registered).toMatchObject({ status: 201, body: { name: 'brown', origin: 'registered', state: 'ready' } });
    await house.query(
      `INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
       SELECT tenant_id, gen_random_uuid(), 'second', kind, config FROM trivet.backend WHERE tenant_id = $1 AND id = $2`,
      [id, backends.fake],
    );
    expect(await register(name, { name: 'brown' })).toMatchObject({
      status: 400,
      body: { detail: 'backend: tenant brownfield has the backends fake, second: name one' },
    });
    const again = await register(name, { name: 'brown', backend: 'fake' });
    expect(again).toMatchObject({ status: 201, body: { id: registered.body.id } });
    // The second call changed nothing.
    expect(await house.audit('bucket.register')).toMatchObject([
      { tenant_name: name, actor: house.root.admin.username, subject_id: registered.body.id, subject_name: 'brown' },
    ]);
  });

  it('is not registered by its tenant, nor where there is none', async () => {
    house.appliance.fake!.seedForeignBucket('wanted');
    expect(await register('acme', { name: 'wanted' }, house.acme.admin)).toMatchObject({ status: 403 });
    expect(await register('acme', { name: 'no-such-bucket' })).toMatchObject({ status: 404 });
    expect(await register('acme', { name: 'a/b' })).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
    expect(await house.query("SELECT FROM trivet.bucket WHERE name = 'wanted'")).toEqual([]);
  });

  it('is not registered when Trivet made it for another tenant, whom the refusal does not name', async () => {
    await make('of-acme');
    const { id, name } = await house.tenant('neighbour');
    const { status, body } = await register(name, { name: 'of-acme' });
    expect({ status, detail: body.detail }).toEqual({
      status: 409,
      detail: expect.stringContaining('bucket of-acme was made by Trivet for another tenant or appliance'),
    });
    expect(JSON.stringify(body)).not.toContain(house.acme.id);
    expect(await house.query('SELECT FROM trivet.bucket WHERE tenant_id = $1', [id])).toEqual([]);
  });
});

describe('the list of buckets', () => {
  it('is filtered by state, backend, condition and a part of the name', async () => {
    await make('filter-one');
    await make('filter-two');
    await house.query(
      `UPDATE trivet.bucket SET condition = '{"type": "lost", "message": "gone", "at": "2026-01-02T03:04:05Z"}' WHERE name = 'filter-two'`,
    );
    expect(await list({ search: 'FILTER' })).toEqual(['filter-one', 'filter-two']);
    expect(await list({ search: 'filter', sort: '-name' })).toEqual(['filter-two', 'filter-one']);
    expect(await list({ search: 'filter', condition: 'true' })).toEqual(['filter-two']);
    expect(await list({ search: 'filter', backend: 'none' })).toEqual([]);
    expect(await list({ search: 'filter', state: 'deleting' })).toEqual([]);
  });

  it.each(['name', '-createdAt'])('has everything once while others are made, by %s', async sort => {
    const many = await house.tenant(`many-${sort.replace('-', '').toLowerCase()}`);
    const { missed, twice } = await readsAllOfMoving(house, many, 'buckets', { sort }, async ({ from, to, step }) => {
      const names = [];
      for (let n = from; n <= to; n += step) names.push(`page-${String(n).padStart(5, '0')}`);
      await insertBuckets(house, many, ...names);
    });
    expect({ missed, twice }).toEqual({ missed: [], twice: 0 });
  });
});
