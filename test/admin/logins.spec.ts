import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AdminLogins } from '#tenancy/logins/admin-logins';
import { OpenLogins } from '#tenancy/logins/open-logins';
import { AdminHouse, type HouseTenant, type Person } from '#test/admin/admin-house';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
});
beforeEach(() => house.forgive());
afterAll(() => house?.close());

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
type Headers = Record<string, string>;

const loginOf = async (who: Person, address = '198.51.100.7', userAgent = FIREFOX): Promise<Headers> =>
  (await house.login(who, { address, headers: { 'user-agent': userAgent } })).headers;
const me = async (headers: Headers): Promise<number> =>
  (await house.call(undefined, 'GET', '/session', { headers })).status;
const listed = async (headers: Headers) =>
  (await house.call(undefined, 'GET', '/session/logins', { headers })).body.items;
const end = (headers: Headers, path = '') => house.call(undefined, 'DELETE', `/session/logins${path}`, { headers });

describe("one's own logins", () => {
  let tenant: HouseTenant;
  beforeAll(async () => {
    tenant = await house.tenant('own-logins');
  });

  it('are listed newest first, with where from, by what, and which is this one; of nobody else', async () => {
    const first = await loginOf(tenant.viewer);
    const second = await loginOf(tenant.viewer, '2001:db8::1', `${'x'.repeat(400)}`);
    await loginOf(tenant.admin);
    const items = await listed(first);
    expect(items).toMatchObject([
      { current: false, address: '2001:db8::1', userAgent: 'x'.repeat(256), openedBy: 'password' },
      { current: true, address: '198.51.100.7', userAgent: FIREFOX, openedBy: 'password' },
    ]);
    expect((await listed(second)).map(({ current }: { current: boolean }) => current)).toEqual([true, false]);
    const lives = new Date(items[0].expiresAt).getTime() - new Date(items[0].createdAt).getTime();
    expect(lives / 3_600_000).toBeCloseTo(12, 1);
    expect(JSON.stringify(items)).not.toContain('token');
  });

  it('end one by one, at once here, with an entry in the audit log; nobody ends that of another', async () => {
    const [mine, other, theirs] = [
      await loginOf(tenant.operator),
      await loginOf(tenant.operator),
      await loginOf(tenant.admin),
    ];
    const [id] = (await listed(mine))
      .filter(({ current }: { current: boolean }) => !current)
      .map((row: { id: string }) => row.id);
    const [foreign] = (await listed(theirs)).map((row: { id: string }) => row.id);
    expect(await end(mine, `/${foreign}`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    // An API token is no login, and is not ended as one.
    expect((await end(mine, `/${tenant.operator.tokenId}`)).status).toBe(404);
    expect(await me(theirs)).toBe(200);
    expect((await end(mine, `/${id}`)).status).toBe(204);
    expect([await me(mine), await me(other)]).toEqual([200, 401]);
    expect((await end(mine, `/${id}`)).status).toBe(404);
    expect((await house.audit('session.end'))[0]).toMatchObject({
      actor: tenant.operator.username,
      subject_id: tenant.operator.userId,
      after: { login: id, from: '198.51.100.7' },
    });
  });

  it('end all but the one that asks; by an API token all of them', async () => {
    const [mine, other] = [await loginOf(tenant.operator), await loginOf(tenant.operator)];
    const before = (await listed(mine)).length;
    expect(await end(mine)).toMatchObject({ status: 200, body: { ended: before - 1 } });
    expect([await me(mine), await me(other)]).toEqual([200, 401]);
    expect((await house.call(tenant.operator, 'GET', '/session')).status).toBe(200);
    const entries = await house.audit('session.end');
    expect(await end(mine)).toMatchObject({ status: 200, body: { ended: 0 } });
    expect(await house.audit('session.end')).toHaveLength(entries.length);
    expect((await house.call(tenant.operator, 'DELETE', '/session/logins')).body).toEqual({ ended: 1 });
    expect(await me(mine)).toBe(401);
  });

  it('are too many to be named all in one entry of the audit log: their number, and the first hundred', async () => {
    const { tenantId, userId } = tenant.operator;
    await house.query(
      `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash, expires_at)
       SELECT $1, gen_random_uuid(), $2, 'session', '', 'operator', sha256(n::text::bytea), now() + interval '1 h'
         FROM generate_series(1, 101) AS n`,
      [tenantId, userId],
    );
    expect((await house.call(tenant.operator, 'DELETE', '/session/logins')).body).toEqual({ ended: 101 });
    const [entry] = await house.audit('session.end');
    expect(entry).toMatchObject({ after: { count: 101 } });
    expect((entry as { after: { logins: string[] } }).after.logins).toHaveLength(100);
  });

  it('are ended by nobody who cannot read this page', async () => {
    const mine = await loginOf(tenant.viewer);
    const { 'x-csrf-token': _, ...cookie } = mine;
    const [{ id }] = await listed(mine);
    for (const path of ['', `/${id}`]) expect((await end(cookie, path)).status, path).toBe(403);
    expect(await me(mine)).toBe(200);
  });

  it('that end at another gateway are refused here within the five seconds that a login is remembered', async () => {
    const { viewer } = tenant;
    const elsewhere = new AdminLogins(house.database);
    const { token } = await house.login(viewer);
    expect(await elsewhere.authenticate(token!)).toMatchObject({ userId: viewer.userId });
    const owner = { tenantId: tenant.id, tenant: tenant.name, userId: viewer.userId, username: viewer.username };
    await new OpenLogins(house.database).endAll({ kind: 'system', name: 'test', address: '' }, owner);
    // One that has not asked yet asks the database.
    expect(await new AdminLogins(house.database).authenticate(token!)).toBeUndefined();
  });
});

describe('logins of a user', () => {
  it('are shown to the tenant, and ended by its administrator', async () => {
    const tenant = await house.tenant('their-logins');
    const { viewer, operator, admin } = tenant;
    const path = `/tenants/their-logins/users/${viewer.name}/logins`;
    const [one, mine] = [await loginOf(viewer), await loginOf(operator)];
    expect((await house.call(operator, 'GET', path)).body.items).toMatchObject([
      { current: false, address: '198.51.100.7' },
    ]);
    expect((await house.call(operator, 'DELETE', path)).status).toBe(403);
    expect((await house.call(house.acme.admin, 'DELETE', path)).status).toBe(404);
    expect(await me(one)).toBe(200);
    expect(await house.call(admin, 'DELETE', path)).toMatchObject({ status: 200, body: { ended: 1 } });
    expect([await me(one), await me(mine)]).toEqual([401, 200]);
    expect((await house.call(viewer, 'GET', '/session')).status).toBe(200);
    expect((await house.audit('session.end'))[0]).toMatchObject({ actor: admin.username, subject_id: viewer.userId });
    expect((await house.call(admin, 'GET', path.replace(viewer.name, 'nobody'))).status).toBe(404);
  });
});
