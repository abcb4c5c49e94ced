import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Passwords } from '#tenancy/credentials/passwords';
import { AdminLogins } from '#tenancy/logins/admin-logins';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { until } from '#test/support/parts';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
});
beforeEach(() => house.forgive());
afterAll(() => house?.close());

const post = (username: string, password: string, address = '198.51.100.7') =>
  house.call(undefined, 'POST', '/session', { body: { username, password }, address });
const me = async (headers: Record<string, string>) =>
  (await house.call(undefined, 'GET', '/session', { headers })).status;

describe('a login', () => {
  it('gives a cookie that no script reads, says who it is, and stands in the audit log', async () => {
    const { acme } = house;
    const { reply, headers, token } = await house.login(acme.operator, { address: '198.51.100.7' });
    expect(reply).toMatchObject({
      status: 200,
      body: { username: 'the-operator@acme', tenant: 'acme', appliance: false, role: 'operator', token: null },
    });
    const set = String(reply.headers['set-cookie']);
    expect(set).toMatch(/^trivet_session=trivet_[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Expires=/);
    const lives = new Date(reply.body.expiresAt).getTime() - Date.now();
    expect(lives / 3_600_000).toBeCloseTo(12, 1);
    expect(reply.body.csrf).toBe(headers['x-csrf-token']);
    expect(JSON.stringify(reply.body)).not.toContain(token);
    expect((await house.call(undefined, 'GET', '/session', { headers })).body).toEqual(reply.body);
    const [entry] = await house.audit('session.login');
    expect(entry).toMatchObject({
      tenant_name: 'acme',
      actor_kind: 'user',
      actor: 'the-operator@acme',
      address: '198.51.100.7',
      subject_kind: 'user',
      subject_id: acme.operator.userId,
    });
  });

  it('of the appliance’s administrators is one like any other', async () => {
    const { reply } = await house.login(house.root.admin);
    expect(reply.body).toMatchObject({ username: 'the-admin@appliance', appliance: true, role: 'admin' });
  });

  it.each([
    ['is disabled', "state = 'disabled'"],
    ['gets another password', "password = password || 'x'"],
  ])('of somebody who %s while the password is compared opens nothing', async (_, change) => {
    const { viewer } = await house.tenant(`overtaken-${change.length}`);
    const passwords = new Passwords();
    const verify = passwords.verify.bind(passwords);
    passwords.verify = async (...given) => {
      const verdict = await verify(...given);
      await house.query(`UPDATE trivet.tenant_user SET ${change} WHERE id = $1`, [viewer.userId]);
      return verdict;
    };
    const login = new AdminLogins(house.database, passwords).login({ ...viewer, address: '198.51.100.9' });
    await expect(login).rejects.toMatchObject({ kind: 'unauthenticated' });
    const opened = "SELECT FROM trivet.admin_token WHERE user_id = $1 AND kind = 'session'";
    expect(await house.query(opened, [viewer.userId])).toEqual([]);
  });

  it('that is refused says the same to everybody, and stands in the audit log of a user that there is', async () => {
    const { acme } = house;
    const wrong = await post(acme.viewer.username, 'no such password');
    const unknown = await post('nobody@acme', 'no such password');
    const nowhere = await post('nobody@nowhere', 'no such password');
    for (const reply of [wrong, unknown, nowhere]) {
      const { instance: _, ...problem } = reply.body;
      expect({ status: reply.status, problem }).toEqual({
        status: 401,
        problem: {
          type: '/docs/problems#unauthenticated',
          title: 'Not logged in',
          status: 401,
          code: 'unauthenticated',
          detail: 'the user name or the password is wrong',
          retryable: false,
          operation: null,
        },
      });
      expect(reply.headers['set-cookie']).toBeUndefined();
    }
    const entries = await until('the failure is written', async () => {
      const written = await house.audit('session.refused');
      return written.length > 0 && written;
    });
    expect(entries).toMatchObject([{ subject_name: 'the-viewer@acme', address: '198.51.100.7', tenant_name: 'acme' }]);
    expect(JSON.stringify(entries)).not.toContain('no such password');
  });

  it('after a hundred wrong passwords waits for that account, and not for others', async () => {
    const { acme, beta } = house;
    // From many addresses, so that it is the account that waits.
    const tries = await Promise.all(
      Array.from({ length: 100 }, (_, n) => post(acme.admin.username, 'a guess', `203.0.113.${n}`)),
    );
    const statuses = tries.map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect(statuses.filter(status => status === 401).length).toBeLessThan(12);
    const blocked = await post(acme.admin.username, acme.admin.password, '203.0.113.200');
    expect(blocked).toMatchObject({ status: 429, body: { code: 'too_many_logins', retryable: true } });
    expect(Number(blocked.headers['retry-after'])).toBeGreaterThan(0);
    expect((await post(beta.admin.username, beta.admin.password, '203.0.113.200')).status).toBe(200);
    expect((await house.call(acme.admin, 'GET', '/session')).status).toBe(200);
  });

  it('from an address with many failures waits there, and not elsewhere', async () => {
    for (let n = 0; n < 25; n++) await post(`guess-${n}@acme`, 'a guess', '192.0.2.99');
    const { username, password } = house.beta.viewer;
    expect((await post(username, password, '192.0.2.99')).status).toBe(429);
    expect((await post(username, password, '192.0.2.98')).status).toBe(200);
  });
});

describe('a change by the page', () => {
  const body = { name: 'by-page', role: 'viewer' };
  const path = '/tenants/acme/tokens';

  it('needs what only scripts of the page can send back', async () => {
    const { headers } = await house.login(house.acme.viewer);
    const { 'x-csrf-token': csrf, ...cookie } = headers;
    const other = await house.login(house.acme.viewer);
    for (const sent of [undefined, '', 'x', `${csrf}x`, other.headers['x-csrf-token']]) {
      const reply = await house.call(undefined, 'POST', path, {
        body,
        headers: { ...cookie, ...(sent === undefined ? {} : { 'x-csrf-token': sent }) },
      });
      expect(reply, sent).toMatchObject({ status: 403, body: { errors: [{ pointer: '/header/x-csrf-token' }] } });
    }
    expect(await me(cookie)).toBe(200);
    expect((await house.call(undefined, 'POST', path, { body, headers })).status).toBe(201);
  });

  it('is nobody’s with a cookie that is none', async () => {
    for (const cookie of ['trivet_session=', 'trivet_session=trivet_x', 'other=1', '=', ';;', 'trivet_session'])
      expect(await me({ cookie })).toBe(401);
  });
});

describe('a logout', () => {
  it('ends that login at once, and no other', async () => {
    const [one, other] = [await house.login(house.acme.viewer), await house.login(house.acme.viewer)];
    const reply = await house.call(undefined, 'DELETE', '/session', { headers: one.headers });
    expect(reply.status).toBe(204);
    expect(String(reply.headers['set-cookie'])).toMatch(/^trivet_session=; .*Expires=Thu, 01 Jan 1970/);
    expect(await me(one.headers)).toBe(401);
    expect(await me(other.headers)).toBe(200);
    expect((await house.audit('session.logout'))[0]).toMatchObject({ actor: 'the-viewer@acme' });
  });

  it('revokes no API token', async () => {
    expect((await house.call(house.acme.viewer, 'DELETE', '/session')).status).toBe(204);
    expect((await house.call(house.acme.viewer, 'GET', '/session')).status).toBe(200);
  });
});

describe("one's own password", () => {
  let tenant: HouseTenant;
  beforeAll(async () => {
    tenant = await house.tenant('passwords');
  });
  const change = (headers: Record<string, string>, password: string, newPassword: string) =>
    house.call(undefined, 'POST', '/session/password', { headers, body: { password, newPassword } });

  it('is changed by whoever knows the old one; other logins and tokens of drivers end, API tokens stay', async () => {
    const { viewer } = tenant;
    const driver = await house.parts.sessions.login({
      username: viewer.username,
      password: viewer.password,
      arrayIp: '',
      enveloped: false,
      address: '127.0.0.1',
    });
    const [one, other] = [await house.login(viewer), await house.login(viewer)];
    expect((await change(one.headers, 'not the old one', 'another password')).status).toBe(401);
    expect((await change(one.headers, viewer.password, 'short')).status).toBe(400);
    expect(await me(other.headers)).toBe(200);
    expect((await change(one.headers, viewer.password, 'another password')).status).toBe(204);
    expect(await me(one.headers)).toBe(200);
    expect(await me(other.headers)).toBe(401);
    expect((await house.call(viewer, 'GET', '/session')).status).toBe(200);
    expect(await house.query('SELECT FROM trivet.session_token WHERE id = $1', [driver.id])).toEqual([]);
    expect((await house.login(viewer)).reply.status).toBe(401);
    expect((await house.login({ ...viewer, password: 'another password' })).reply.status).toBe(200);
    const [entry] = await house.audit('user.password');
    expect(entry).toMatchObject({ actor: viewer.username, subject_name: viewer.username });
    expect(JSON.stringify(entry)).not.toContain('another password');
  });

  it('makes its user another version: a change of what was read before is stale', async () => {
    const { operator, admin } = tenant;
    const path = '/tenants/passwords/users/the-operator';
    const { headers } = await house.call(admin, 'GET', path);
    const login = await house.login(operator);
    await change(login.headers, operator.password, 'another password');
    const stale = await house.call(admin, 'PATCH', path, { body: { role: 'viewer' }, ifMatch: String(headers.etag) });
    expect(stale.status).toBe(412);
  });

  it('is guessed no faster here than at a login', async () => {
    const { headers } = await house.login(tenant.admin);
    const statuses: number[] = [];
    for (let n = 0; n < 8; n++) statuses.push((await change(headers, `guess ${n}`, 'another password')).status);
    expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
    expect(statuses.at(-1)).toBe(429);
  });
});
