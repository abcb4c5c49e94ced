import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse, type Person } from '#test/admin/admin-house';
import { until } from '#test/support/parts';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
});
afterAll(() => house?.close());

const PATH = '/tenants/acme/tokens';
const make = (who: Person | string, body: Record<string, unknown>, path = PATH) =>
  house.call(who, 'POST', path, { body });

describe('an API token', () => {
  it('is shown once, works until it is revoked, and shows when it was used', async () => {
    const { acme } = house;
    const made = await make(acme.operator, { name: 'script', role: 'viewer', expiresInDays: 2 });
    expect(made.status).toBe(201);
    const { token, ...view } = made.body;
    expect(view).toMatchObject({ name: 'script', user: 'the-operator@acme', role: 'viewer', lastUsedAt: null });
    expect((new Date(view.expiresAt).getTime() - Date.now()) / 86_400_000).toBeCloseTo(2, 2);
    expect((await house.call(token, 'GET', '/session')).body).toMatchObject({
      username: 'the-operator@acme',
      role: 'viewer',
      token: 'script',
      csrf: null,
    });
    const listed = async () => {
      const { body } = await house.call(acme.viewer, 'GET', PATH, { query: { user: 'the-operator' } });
      return body.items.find(({ id }: { id: string }) => id === view.id);
    };
    await until('its use is noted', async () => (await listed()).lastUsedAt);
    expect(JSON.stringify(await listed())).not.toContain(token.slice(7));
    expect((await house.call(acme.operator, 'DELETE', `${PATH}/${view.id}`)).status).toBe(204);
    expect((await house.call(token, 'GET', '/session')).status).toBe(401);
    expect((await house.call(acme.operator, 'DELETE', `${PATH}/${view.id}`)).status).toBe(404);
    expect(await listed()).toBeUndefined();
    const entries = await house.query('SELECT * FROM trivet.audit_entry WHERE subject_id = $1 ORDER BY seq', [view.id]);
    expect(entries).toMatchObject([
      { action: 'token.create', actor: 'the-operator@acme', actor_kind: 'token', token_name: 'house', before: null },
      { action: 'token.revoke', after: null },
    ]);
    expect(JSON.stringify(entries)).not.toContain(token.slice(7));
    const stored = await house.query<{ all: string }>(
      'SELECT string_agg(t::text, chr(10)) AS all FROM trivet.admin_token t',
    );
    expect(stored[0]!.all).not.toContain(token.slice(7));
  });

  describe('is rotated', () => {
    const REFUSED = { status: 409, body: { code: 'failed_precondition' } };
    const rotate = (who: Person | string, id: string, body: object = {}) =>
      house.call(who, 'POST', `${PATH}/${id}/rotate`, { body });
    const works = async (token: string) => (await house.call(token, 'GET', '/session')).status === 200;
    const named = async (prefix: string) =>
      (await house.call(house.acme.viewer, 'GET', PATH)).body.items
        .map(({ name }: { name: string }) => name)
        .filter((name: string) => name.startsWith(prefix));

    it('into another of its name and rights, and works beside it until the grace is over', async () => {
      const { acme } = house;
      const first = (await make(acme.operator, { name: 'rotated', role: 'viewer', expiresInDays: 90 })).body;
      const second = await rotate(acme.operator, first.id, { graceSeconds: 3_600 });
      expect(second).toMatchObject({ status: 201, body: { name: 'rotated', role: 'viewer', user: first.user } });
      expect(second.body.id).not.toBe(first.id);
      const days = (new Date(second.body.expiresAt).getTime() - Date.now()) / 86_400_000;
      expect(days).toBeCloseTo(90, 1);
      expect([await works(first.token), await works(second.body.token)]).toEqual([true, true]);
      expect((await named('rotated')).sort()).toEqual(['rotated', 'rotated (former)']);
      const [former] = await house.query<{ seconds: number }>(
        'SELECT extract(epoch FROM expires_at - now())::float8 AS seconds FROM trivet.admin_token WHERE id = $1',
        [first.id],
      );
      expect(former!.seconds).toBeGreaterThan(3_500);
      expect(former!.seconds).toBeLessThanOrEqual(3_600);
      // No third one, unless both end.
      expect(await rotate(acme.operator, second.body.id)).toMatchObject({
        status: 409,
        body: { code: 'failed_precondition', retryable: true },
      });
      expect(await rotate(acme.operator, first.id)).toMatchObject({ status: 409 });
      const third = await rotate(acme.operator, second.body.id, { graceSeconds: 0, expiresInDays: 1 });
      expect(third.status).toBe(201);
      expect([await works(first.token), await works(second.body.token), await works(third.body.token)]).toEqual([
        false,
        false,
        true,
      ]);
      expect(await named('rotated')).toEqual(['rotated']);
      const entries = await house.audit('token.rotate');
      expect(entries[0]).toMatchObject({ subject_id: third.body.id, before: { id: second.body.id } });
      expect(JSON.stringify(entries)).not.toContain(third.body.token.slice(7));
    });

    it('when the former has ended by itself, and stays without an end when it had none', async () => {
      const { acme } = house;
      const first = (await make(acme.operator, { name: 'endless', role: 'viewer' })).body;
      const second = (await rotate(acme.operator, first.id, { graceSeconds: 1 })).body;
      expect(second.expiresAt).toBeNull();
      await house.query("UPDATE trivet.admin_token SET expires_at = now() - interval '1 s' WHERE id = $1", [first.id]);
      expect((await rotate(acme.operator, second.id)).status).toBe(201);
    });

    it('from the former again, when the one after it is gone with an answer that was not heard', async () => {
      const { acme } = house;
      const first = (await make(acme.operator, { name: 'unheard', role: 'viewer' })).body;
      const lost = (await rotate(acme.operator, first.id, { graceSeconds: 3_600 })).body;
      expect(await rotate(acme.operator, first.id, { graceSeconds: 3_600 })).toMatchObject(REFUSED);
      expect((await house.call(acme.operator, 'DELETE', `${PATH}/${lost.id}`)).status).toBe(204);
      const heard = await rotate(acme.operator, first.id, { graceSeconds: 3_600, expiresInDays: 30 });
      expect(heard).toMatchObject({ status: 201, body: { name: 'unheard' } });
      expect((await named('unheard')).sort()).toEqual(['unheard', 'unheard (former)']);
      expect([await works(first.token), await works(heard.body.token)]).toEqual([true, true]);
      expect((await rotate(acme.operator, heard.body.id, { graceSeconds: 0 })).status).toBe(201);
      const [entry] = await house.audit('token.rotate');
      expect(entry).toMatchObject({ after: { graceMs: 0, ended: [{ id: first.id, name: 'unheard (former)' }] } });
    });

    it('never into one that may more than its user by now', async () => {
      const { acme } = house;
      const user = { name: 'fallen', role: 'operator', password: 'of somebody fallen' };
      await house.call(acme.admin, 'POST', '/tenants/acme/users', { body: user });
      const { id } = (await make(acme.admin, { name: 'high', user: 'fallen', role: 'operator' })).body;
      await house.query("UPDATE trivet.tenant_user SET role = 'viewer' WHERE name = 'fallen'");
      expect(await rotate(acme.admin, id)).toMatchObject(REFUSED);
    });

    it('never when it has ended', async () => {
      const { acme } = house;
      const { id } = (await make(acme.operator, { name: 'ended', role: 'viewer', expiresInDays: 1 })).body;
      await house.query("UPDATE trivet.admin_token SET expires_at = now() - interval '1 s' WHERE id = $1", [id]);
      expect(await rotate(acme.operator, id)).toMatchObject(REFUSED);
    });

    it("never when it is that of the commands on the gateway's own host", async () => {
      const { root } = house;
      const path = '/tenants/appliance/tokens';
      const admin = { name: 'admin', role: 'admin', password: 'of the first of all' };
      await house.call(root.admin, 'POST', '/tenants/appliance/users', { body: admin });
      const { id } = (await make(root.admin, { name: 'launcher', user: 'admin', role: 'admin' }, path)).body;
      expect(await house.call(root.admin, 'POST', `${path}/${id}/rotate`, { body: {} })).toMatchObject(REFUSED);
    });

    it('by whose it is, or an administrator, and by nobody with fewer rights than it has', async () => {
      const { acme } = house;
      const own = (await make(acme.operator, { name: 'guarded', role: 'operator' })).body;
      expect((await rotate(acme.viewer, own.id)).status).toBe(403);
      const small = (await make(acme.operator, { name: 'small-of-operator', role: 'viewer' })).body.token;
      expect(await rotate(small, own.id)).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
      expect(await works(own.token)).toBe(true);
      expect(
        (await house.call(house.beta.admin, 'POST', `/tenants/beta/tokens/${own.id}/rotate`, { body: {} })).status,
      ).toBe(404);
      expect((await rotate(acme.admin, own.id)).status).toBe(201);
      expect((await rotate(acme.admin, 'no-id')).status).toBe(400);
    });
  });

  it('has no more rights than its user, nor than who makes it', async () => {
    const { acme } = house;
    expect((await make(acme.operator, { name: 'more', role: 'admin' })).status).toBe(403);
    const small = (await make(acme.admin, { name: 'small', role: 'viewer' })).body.token;
    // The user is an administrator, the token that calls is not.
    expect((await make(small, { name: 'grown', role: 'operator' })).status).toBe(403);
    expect((await make(small, { name: 'as-small', role: 'viewer' })).status).toBe(201);
    expect(await make(acme.admin, { name: 'x', user: 'the-viewer', role: 'admin' })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/body/role' }] },
    });
  });

  it('is made for oneself, by an administrator for anybody of the tenant', async () => {
    const { acme, root } = house;
    expect((await make(acme.operator, { name: 'x', user: 'the-viewer', role: 'viewer' })).status).toBe(403);
    expect((await make(acme.operator, { name: 'own', user: 'the-operator@acme', role: 'viewer' })).status).toBe(201);
    const forOther = await make(acme.admin, { name: 'given', user: 'the-viewer', role: 'viewer' });
    expect(forOther.body.user).toBe('the-viewer@acme');
    expect((await make(root.admin, { name: 'from-above', user: 'the-admin', role: 'admin' })).status).toBe(201);
    expect((await make(root.operator, { name: 'x', user: 'the-viewer', role: 'viewer' })).status).toBe(403);
    // Who runs the appliance is no user of the tenant.
    expect(await make(root.admin, { name: 'x', role: 'viewer' })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/body/user' }] },
    });
    expect((await make(root.admin, { name: 'own', role: 'admin' }, '/tenants/appliance/tokens')).status).toBe(201);
    for (const user of ['nobody', 'the-viewer@beta', 'the-admin@appliance'])
      expect((await make(acme.admin, { name: 'x', user, role: 'viewer' })).status).toBe(404);
  });

  it('is revoked by its owner, and by an administrator', async () => {
    const { acme, beta } = house;
    const made = async (name: string) => (await make(acme.operator, { name, role: 'viewer' })).body;
    const [one, two] = [await made('one'), await made('two')];
    expect((await house.call(acme.viewer, 'DELETE', `${PATH}/${one.id}`)).status).toBe(403);
    expect((await house.call(beta.admin, 'DELETE', `${PATH}/${one.id}`)).status).toBe(404);
    expect((await house.call(beta.admin, 'DELETE', `/tenants/beta/tokens/${one.id}`)).status).toBe(404);
    expect((await house.call(one.token, 'GET', '/session')).status).toBe(200);
    expect((await house.call(acme.admin, 'DELETE', `${PATH}/${one.id}`)).status).toBe(204);
    // By itself, which ends it.
    expect((await house.call(two.token, 'DELETE', `${PATH}/${two.id}`)).status).toBe(204);
    for (const { token } of [one, two]) expect((await house.call(token, 'GET', '/session')).status).toBe(401);
  });

  it('has a name of its own among those of its user, and none without an active one', async () => {
    const { acme } = house;
    await make(acme.viewer, { name: 'same', role: 'viewer' });
    expect(await make(acme.viewer, { name: 'same', role: 'viewer' })).toMatchObject({
      status: 409,
      body: { code: 'already_exists', errors: [{ pointer: '/body/name' }] },
    });
    expect((await make(acme.operator, { name: 'same', role: 'viewer' })).status).toBe(201);
    const off = { name: 'off', role: 'viewer', password: 'of somebody off' };
    await house.call(acme.admin, 'POST', '/tenants/acme/users', { body: off });
    await house.change(acme.admin, 'PATCH', '/tenants/acme/users/off', { body: { state: 'disabled' } });
    expect(await make(acme.admin, { name: 'x', user: 'off', role: 'viewer' })).toMatchObject({
      status: 409,
      body: { code: 'failed_precondition' },
    });
  });

  it('that has expired opens nothing', async () => {
    const { token, id } = (await make(house.acme.viewer, { name: 'short', role: 'viewer', expiresInDays: 1 })).body;
    await house.query("UPDATE trivet.admin_token SET expires_at = now() - interval '1 s' WHERE id = $1", [id]);
    expect((await house.call(token, 'GET', '/session')).status).toBe(401);
  });
});

it('tokens come in pages, oldest first, also of one user', async () => {
  const tenant = await house.tenant('many');
  for (let n = 0; n < 5; n++) await make(tenant.viewer, { name: `t${n}`, role: 'viewer' }, '/tenants/many/tokens');
  const read = async (query: Record<string, string>) =>
    (await house.call(tenant.viewer, 'GET', '/tenants/many/tokens', { query })).body;
  const first = await read({ user: 'the-viewer@many', limit: '4' });
  const rest = await read({ user: 'the-viewer@many', limit: '4', cursor: first.next });
  expect([...first.items, ...rest.items].map(({ name }) => name)).toEqual(['house', 't0', 't1', 't2', 't3', 't4']);
  expect(rest.next).toBeNull();
  expect((await read({})).items).toHaveLength(8);
});
