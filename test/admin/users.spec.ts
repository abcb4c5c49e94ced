import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AdminHouse } from '#test/admin/admin-house';
import { until } from '#test/support/parts';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
});
beforeEach(() => house.forgive());
afterAll(() => house?.close());

const USERS = '/tenants/acme/users';
const PASSWORD = 'a password of bob';
const bob = (name: string, role = 'operator') => ({ name, role, password: PASSWORD });

describe('users', () => {
  it('are made, shown, changed and deleted by an administrator of their tenant', async () => {
    const { acme } = house;
    const made = await house.call(acme.admin, 'POST', USERS, { body: bob('bob') });
    expect(made).toMatchObject({
      status: 201,
      headers: { etag: expect.stringMatching(/\.v1\./), location: '/api/v1/tenants/acme/users/bob' },
      body: { name: 'bob', username: 'bob@acme', role: 'operator', state: 'active', tokens: 0 },
    });
    expect((await house.call(acme.viewer, 'GET', `${USERS}/bob`)).body).toEqual(made.body);
    const first = String(made.headers.etag);
    const changed = await house.call(acme.admin, 'PATCH', `${USERS}/bob`, { body: { role: 'viewer' }, ifMatch: first });
    const second = String(changed.headers.etag);
    expect(changed).toMatchObject({
      status: 200,
      headers: { etag: expect.stringMatching(/\.v2\./) },
      body: { role: 'viewer' },
    });
    const stale = await house.call(acme.admin, 'PATCH', `${USERS}/bob`, { body: { role: 'admin' }, ifMatch: first });
    expect(stale).toMatchObject({ status: 412, body: { code: 'precondition_failed' } });
    expect((await house.call(acme.admin, 'DELETE', `${USERS}/bob`, { ifMatch: first })).status).toBe(412);
    expect((await house.call(acme.admin, 'DELETE', `${USERS}/bob`)).status).toBe(428);
    expect((await house.call(acme.admin, 'DELETE', `${USERS}/bob`, { ifMatch: second })).status).toBe(204);
    expect((await house.call(acme.admin, 'GET', `${USERS}/bob`)).status).toBe(404);
    const written = await house.query<{ action: string; before: unknown; after: unknown; actor: string }>(
      "SELECT action, before, after, actor FROM trivet.audit_entry WHERE subject_name = 'bob@acme' ORDER BY seq",
    );
    const [operator, viewer] = ['operator', 'viewer'].map(role => ({ name: 'bob', role, state: 'active' }));
    expect(written).toEqual([
      { action: 'user.create', before: null, after: operator, actor: 'the-admin@acme' },
      { action: 'user.change', before: operator, after: viewer, actor: 'the-admin@acme' },
      { action: 'user.delete', before: viewer, after: null, actor: 'the-admin@acme' },
    ]);
  });

  it('are shown in pages by name', async () => {
    const tenant = await house.tenant('paged');
    const names = ['a', 'b', 'c', 'the-admin', 'the-operator', 'the-viewer'];
    for (const name of names.slice(0, 3))
      await house.call(house.root.admin, 'POST', '/tenants/paged/users', { body: bob(name) });
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: Record<string, string> = { limit: '4', ...(cursor ? { cursor } : {}) };
      const { body } = await house.call(tenant.viewer, 'GET', '/tenants/paged/users', { query });
      seen.push(...body.items.map(({ name }: { name: string }) => name));
      cursor = body.next;
    } while (cursor);
    expect(seen).toEqual(names);
  });

  it('have names of their own, and passwords that are none in the log', async () => {
    const { acme } = house;
    await house.call(acme.admin, 'POST', USERS, { body: bob('twin') });
    const again = await house.call(acme.admin, 'POST', USERS, { body: bob('twin') });
    expect(again).toMatchObject({ status: 409, body: { code: 'already_exists', errors: [{ pointer: '/body/name' }] } });
    for (const body of [bob('Twin'), bob('a b'), { ...bob('x'), password: 'short' }, { ...bob('x'), role: 'root' }])
      expect((await house.call(acme.admin, 'POST', USERS, { body })).status).toBe(400);
    await house.change(acme.admin, 'PATCH', `${USERS}/twin`, { body: { password: 'another password' } });
    const [{ before, after }] = (await house.audit('user.change')) as [{ before: unknown; after: unknown }];
    expect(before).not.toHaveProperty('password');
    expect(after).toMatchObject({ name: 'twin', password: '[redacted]' });
    const all = JSON.stringify(await house.query('SELECT * FROM trivet.audit_entry'));
    for (const secret of [PASSWORD, 'another password']) expect(all).not.toContain(secret);
  });

  it('get their new role with their next call, whatever they log in by', async () => {
    const tenant = await house.tenant('roles');
    const path = '/tenants/roles/users/the-operator';
    const { headers } = await house.login(tenant.operator);
    const role = async () => [
      (await house.call(tenant.operator, 'GET', '/session')).body.role,
      (await house.call(undefined, 'GET', '/session', { headers })).body.role,
    ];
    expect(await role()).toEqual(['operator', 'operator']);
    await house.change(tenant.admin, 'PATCH', path, { body: { role: 'viewer' } });
    expect(await role()).toEqual(['viewer', 'viewer']);
    await house.change(tenant.admin, 'PATCH', path, { body: { role: 'admin' } });
    // A token has the role that it was given, and no more.
    expect(await role()).toEqual(['operator', 'admin']);
  });

  it('who are given another password log in anew; their API tokens go on', async () => {
    const tenant = await house.tenant('renewed');
    const { headers } = await house.login(tenant.viewer);
    const body = { password: 'another password' };
    expect((await house.change(tenant.admin, 'PATCH', '/tenants/renewed/users/the-viewer', { body })).status).toBe(200);
    expect((await house.call(undefined, 'GET', '/session', { headers })).status).toBe(401);
    expect((await house.call(tenant.viewer, 'GET', '/session')).status).toBe(200);
    expect((await house.login(tenant.viewer)).reply.status).toBe(401);
    expect((await house.login({ ...tenant.viewer, ...body })).reply.status).toBe(200);
  });

  it('who are disabled get in by nothing; their API tokens work again later, their logins do not', async () => {
    const tenant = await house.tenant('resting');
    const path = '/tenants/resting/users/the-viewer';
    const { headers } = await house.login(tenant.viewer);
    expect((await house.change(tenant.admin, 'PATCH', path, { body: { state: 'disabled' } })).body.state).toBe(
      'disabled',
    );
    expect((await house.call(tenant.viewer, 'GET', '/session')).status).toBe(401);
    expect((await house.call(undefined, 'GET', '/session', { headers })).status).toBe(401);
    expect((await house.login(tenant.viewer)).reply.status).toBe(401);
    // As any other failure, and not as a login that was overtaken.
    await until('it is written down', async () =>
      (await house.audit('session.refused')).some(entry => entry.subject_id === tenant.viewer.userId),
    );
    await house.change(tenant.admin, 'PATCH', path, { body: { state: 'active' } });
    expect((await house.call(tenant.viewer, 'GET', '/session')).status).toBe(200);
    expect((await house.call(undefined, 'GET', '/session', { headers })).status).toBe(401);
    await house.forgive();
    expect((await house.login(tenant.viewer)).reply.status).toBe(200);
  });
});

describe('the last administrator of the appliance', () => {
  const path = '/tenants/appliance/users/the-admin';
  it('is neither deleted, disabled nor made less', async () => {
    const { root } = house;
    const { headers } = await house.call(root.admin, 'GET', path);
    const ifMatch = String(headers.etag);
    for (const body of [{ role: 'operator' }, { state: 'disabled' }, { role: 'viewer', password: PASSWORD }])
      expect(await house.call(root.admin, 'PATCH', path, { body, ifMatch })).toMatchObject({
        status: 409,
        body: { code: 'failed_precondition', detail: expect.stringContaining('last administrator') },
      });
    expect((await house.call(root.admin, 'DELETE', path, { ifMatch })).status).toBe(409);
    expect((await house.call(root.admin, 'PATCH', path, { body: { role: 'admin' }, ifMatch })).status).toBe(200);
    // Tenants may be without one: the appliance's make another.
    const tenant = await house.tenant('headless');
    const gone = await house.change(root.admin, 'DELETE', '/tenants/headless/users/the-admin');
    expect([gone.status, tenant.name]).toEqual([204, 'headless']);
  });

  it('is one of two who take each other’s role at the same moment', async () => {
    const { root } = house;
    await house.call(root.admin, 'POST', '/tenants/appliance/users', { body: bob('second', 'admin') });
    const paths = [path, '/tenants/appliance/users/second'];
    const tags = await Promise.all(paths.map(one => house.call(root.admin, 'GET', one)));
    const replies = await Promise.all(
      paths.map((one, n) =>
        house.call(root.admin, 'PATCH', one, { body: { role: 'viewer' }, ifMatch: String(tags[n]!.headers.etag) }),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409]);
    await house.query("UPDATE trivet.tenant_user SET role = 'admin' WHERE name = 'the-admin' AND tenant_id = $1", [
      root.id,
    ]);
  });
});
