import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SecondFactors } from '#tenancy/factors/second-factors';
import { AdminLogins } from '#tenancy/logins/admin-logins';
import { FactorChanges } from '#tenancy/logins/factor-changes';
import { CodeNeeded } from '#tenancy/logins/password-logins';
import { AdminHouse, type HouseTenant, type Person, type Reply } from '#test/admin/admin-house';
import { until } from '#test/support/parts';
import { codeNow } from '#test/support/totp';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
});
beforeEach(() => house.forgive());
afterAll(() => house?.close());

type Headers = Record<string, string>;
const post = (headers: Headers, path: string, body: object) =>
  house.call(undefined, 'POST', `/session/factors${path}`, { headers, body });
const logIn = ({ username, password }: Person, code?: string, address = '198.51.100.7'): Promise<Reply> =>
  house.call(undefined, 'POST', '/session', { body: { username, password, code }, address });
const me = async (headers: Headers) => (await house.call(undefined, 'GET', '/session', { headers })).status;
/** Codes are good once: as if the time of the last one were long ago. */
const rewind = ({ userId }: Person) =>
  house.query('UPDATE trivet.user_totp SET used_step = 0 WHERE user_id = $1', [userId]);
const needed = { status: 401, body: { code: 'second_factor_required', retryable: false } };

interface Enrolled {
  headers: Headers;
  secret: string;
  recoveryCodes: string[];
}
async function enrol(who: Person): Promise<Enrolled> {
  const { headers } = await house.login(who);
  const begun = await post(headers, '/totp', { password: who.password });
  expect(begun.status, JSON.stringify(begun.body)).toBe(200);
  const { secret } = begun.body;
  const proved = await post(headers, '/totp/confirm', { code: codeNow(secret) });
  expect(proved.status, JSON.stringify(proved.body)).toBe(200);
  return { headers, secret, recoveryCodes: proved.body.recoveryCodes };
}

describe('a second factor', () => {
  it('is asked for only once a code of it was right, which ends all other logins', async () => {
    const { viewer } = await house.tenant('enrols');
    const [mine, other] = [await house.login(viewer), await house.login(viewer)];
    const begun = await post(mine.headers, '/totp', { password: viewer.password });
    expect(begun.body).toEqual({
      secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
      uri: expect.stringMatching(/^otpauth:\/\/totp\/Trivet:the-viewer(@|%40)enrols\?/),
    });
    expect((await logIn(viewer)).status).toBe(200);
    expect(await post(mine.headers, '/totp/confirm', { code: '000000' })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/body/code' }] },
    });
    const { secret } = begun.body;
    const proved = await post(mine.headers, '/totp/confirm', { code: codeNow(secret) });
    expect(proved.body.recoveryCodes).toHaveLength(10);
    expect([await me(mine.headers), await me(other.headers)]).toEqual([200, 401]);
    expect((await house.call(viewer, 'GET', '/session')).status, 'the API token').toBe(200);
    expect((await house.call(undefined, 'GET', '/session/factors', { headers: mine.headers })).body).toEqual({
      totp: { since: expect.any(String) },
      passkeys: [],
      recoveryCodes: 10,
    });
    // What was used to prove it opens nothing.
    expect(await logIn(viewer, codeNow(secret))).toMatchObject(needed);
    expect(await logIn(viewer)).toMatchObject(needed);
    const entry = (await house.audit('user.add-factor'))[0];
    expect(entry).toMatchObject({ actor: viewer.username, subject_id: viewer.userId, after: { factor: 'totp' } });
    const log = JSON.stringify(await house.query('SELECT * FROM trivet.audit_entry'));
    for (const hidden of [secret, ...proved.body.recoveryCodes]) expect(log).not.toContain(hidden);
    const kept =
      JSON.stringify(await house.query('SELECT * FROM trivet.recovery_code')) +
      JSON.stringify(await house.query('SELECT encode(sealed, $$escape$$) FROM trivet.secret'));
    for (const hidden of [secret, ...proved.body.recoveryCodes]) expect(kept).not.toContain(hidden);
  });

  it('is begun with the password alone: a wrong one is refused, and counts', async () => {
    const { viewer } = await house.tenant('begins');
    const { headers } = await house.login(viewer);
    const statuses: number[] = [];
    for (let n = 0; n < 8; n++) statuses.push((await post(headers, '/totp', { password: `guess ${n}` })).status);
    expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
    expect(statuses.at(-1)).toBe(429);
    expect((await post({ cookie: headers.cookie! }, '/totp', { password: viewer.password })).status).toBe(403);
  });

  it('is not guessed: wrong codes of it count as those of a login, and the right one waits with them', async () => {
    const { viewer } = await house.tenant('guesses');
    const { headers } = await house.login(viewer);
    const { secret } = (await post(headers, '/totp', { password: viewer.password })).body;
    const confirm = (code: string) => post(headers, '/totp/confirm', { code });
    const statuses: number[] = [];
    for (let n = 0; n < 8; n++) statuses.push((await confirm('000000')).status);
    expect(statuses.slice(0, 5)).toEqual([400, 400, 400, 400, 400]);
    expect(statuses.at(-1)).toBe(429);
    expect((await confirm(codeNow(secret))).status).toBe(429);
    await house.forgive();
    expect((await confirm(codeNow(secret))).status).toBe(200);
  });

  it('that was begun too long ago, or never, is proved by no code', async () => {
    const { viewer, operator } = await house.tenant('late');
    const { headers } = await house.login(viewer);
    const { body } = await post(headers, '/totp', { password: viewer.password });
    await house.query("UPDATE trivet.user_totp SET begun_at = now() - interval '16 min' WHERE user_id = $1", [
      viewer.userId,
    ]);
    const late = await post(headers, '/totp/confirm', { code: codeNow(body.secret) });
    expect(late).toMatchObject({ status: 409, body: { detail: expect.stringContaining('begin again') } });
    const never = await house.login(operator);
    expect((await post(never.headers, '/totp/confirm', { code: '123456' })).status).toBe(409);
  });

  it('is not begun while drivers log in as this user, and then keeps drivers out', async () => {
    const { operator } = await house.tenant('drivers');
    const request = { username: operator.username, password: operator.password, arrayIp: '', enveloped: false };
    const driver = () => house.parts.sessions.login({ ...request, address: '198.51.100.1' } as never);
    await driver();
    const { headers } = await house.login(operator);
    expect(await post(headers, '/totp', { password: operator.password })).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('drivers log in as this user') },
    });
    await house.query('DELETE FROM trivet.session_token WHERE user_id = $1', [operator.userId]);
    await enrol(operator);
    await expect(driver()).rejects.toMatchObject({
      kind: 'permission_denied',
      message: expect.stringContaining('second factor'),
    });
    expect(await house.query('SELECT FROM trivet.session_token WHERE user_id = $1', [operator.userId])).toEqual([]);
  });
});

describe('a login with a second factor', () => {
  let tenant: HouseTenant;
  let enrolled: Enrolled;
  beforeAll(async () => {
    tenant = await house.tenant('codes');
    enrolled = await enrol(tenant.operator);
  });
  beforeEach(() => rewind(tenant.operator));

  it('takes a code once, says by what it was opened, and forgives what failed before', async () => {
    const { operator } = tenant;
    const code = codeNow(enrolled.secret);
    const opened = await logIn(operator, code);
    expect(opened.status).toBe(200);
    expect(await logIn(operator, code)).toMatchObject(needed);
    const listed = await house.call(operator, 'GET', '/session/logins');
    expect(listed.body.items[0].openedBy).toBe('totp');
    expect((await house.audit('session.login'))[0]).toMatchObject({ after: { proved: 'totp' } });
  });

  it('takes a code of the step before or after, and none further away', async () => {
    const { operator } = tenant;
    const { secret } = enrolled;
    for (const off of [-1, 1]) {
      await rewind(operator);
      expect((await logIn(operator, codeNow(secret, off))).status, `${off}`).toBe(200);
    }
    await rewind(operator);
    for (const off of [-3, 3]) expect(await logIn(operator, codeNow(secret, off)), `${off}`).toMatchObject(needed);
  });

  it('takes one code at one of two gateways at once', async () => {
    const { operator } = tenant;
    const factors = new SecondFactors(house.database, house.appliance.secrets);
    const code = codeNow(enrolled.secret);
    const gateways = Array.from({ length: 4 }, () => new AdminLogins(house.database, undefined, undefined, factors));
    const answers = await Promise.allSettled(
      gateways.map((logins, n) => logins.login({ ...operator, code, address: `203.0.113.${n}` })),
    );
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('lets guesses at many gateways, in the instant when an account need wait no longer, wait for one another', async () => {
    const { operator } = tenant;
    for (let n = 0; n < 6; n++) await logIn(operator, '000000');
    await house.query("UPDATE trivet.login_throttle SET blocked_until = now() - interval '1 s'");
    const factors = new SecondFactors(house.database, house.appliance.secrets);
    const gateways = Array.from({ length: 4 }, () => new AdminLogins(house.database, undefined, undefined, factors));
    const answers = await Promise.allSettled(
      gateways.map((logins, n) => logins.login({ ...operator, code: '000000', address: `203.0.113.${n}` })),
    );
    const kinds = answers.map(answer => answer.status === 'rejected' && answer.reason.constructor.name);
    expect(kinds.sort()).toEqual(['CodeNeeded', 'LoginThrottled', 'LoginThrottled', 'LoginThrottled']);
  });

  it('takes a recovery code once, however it is written, also two at once', async () => {
    const { operator } = tenant;
    const [one, other] = enrolled.recoveryCodes as [string, string];
    expect((await logIn(operator, one.toUpperCase().replaceAll('-', ' '))).status).toBe(200);
    expect(await logIn(operator, one)).toMatchObject(needed);
    const raced = await Promise.all([logIn(operator, other, '203.0.113.1'), logIn(operator, other, '203.0.113.2')]);
    expect(raced.map(({ status }) => status).sort()).toEqual([200, 401]);
    const { body } = await house.call(operator, 'GET', '/session/factors');
    expect(body.recoveryCodes).toBe(8);
  });

  it('tells nobody without the password that a code is asked for', async () => {
    const { operator, viewer } = tenant;
    for (const code of [undefined, '123456', codeNow(enrolled.secret)]) {
      const [with2, without] = [
        await logIn({ ...operator, password: 'a guess' }, code),
        await logIn({ ...viewer, password: 'a guess' }, code),
      ];
      expect({ ...with2.body, instance: '' }).toEqual({ ...without.body, instance: '' });
    }
    // The code was not used up by it.
    expect((await logIn(operator, codeNow(enrolled.secret))).status).toBe(200);
  });

  it('is slowed down by wrong codes as by wrong passwords, at once too, and stands in the audit log', async () => {
    const { operator } = tenant;
    const before = (await house.audit('session.refused')).length;
    const tries = await Promise.all(
      Array.from({ length: 40 }, (_, n) => logIn(operator, String(n).padStart(6, '0'), `203.0.113.${n}`)),
    );
    expect(tries.filter(({ status }) => status === 401).length).toBeLessThan(12);
    expect((await logIn(operator, codeNow(enrolled.secret))).status).toBe(429);
    await until('it is written', async () => (await house.audit('session.refused')).length > before);
    // The right password alone forgives nothing.
    await house.forgive();
    for (let n = 0; n < 6; n++) await logIn(operator, '000000');
    await house.query("UPDATE trivet.login_throttle SET blocked_until = now() - interval '1 s'");
    expect(await logIn(operator)).toMatchObject(needed);
    expect(await logIn(operator, '000000')).toMatchObject(needed);
    expect((await logIn(operator, '000000')).status).toBe(429);
  });

  it('that brings the right password alone stands in the audit log, once a minute', async () => {
    const { viewer } = await house.tenant('alone');
    await enrol(viewer);
    for (let n = 0; n < 3; n++) expect(await logIn(viewer)).toMatchObject(needed);
    const entries = async () => (await house.audit('session.refused')).filter(one => one.subject_id === viewer.userId);
    await until('it is written', async () => (await entries()).length > 0);
    expect(await logIn(viewer, '000000')).toMatchObject(needed);
    await until('the wrong code, too', async () => (await entries()).some(one => one.after === null));
    expect((await entries()).filter(one => one.after !== null)).toMatchObject([{ after: { needs: 'code' } }]);
  });

  it('of somebody who has it since the password was compared opens nothing without', async () => {
    const { viewer } = await house.tenant('meanwhile');
    const factors = new SecondFactors(house.database, house.appliance.secrets);
    const logins = new AdminLogins(house.database, undefined, undefined, factors);
    const { call } = house.database;
    const slow = Object.assign(Object.create(house.database), {
      call: async (...given: Parameters<typeof call>) => {
        const rows = await call.apply(house.database, given);
        if (given[0].name === 'login_find')
          await house.query('UPDATE trivet.tenant_user SET totp_since = now() WHERE id = $1', [viewer.userId]);
        return rows;
      },
    });
    const late = new AdminLogins(slow, undefined, undefined, factors);
    await expect(late.login({ ...viewer, address: '198.51.100.9' })).rejects.toMatchObject({ kind: 'unauthenticated' });
    await expect(logins.login({ ...viewer, address: '198.51.100.9' })).rejects.toThrow(/second factor/);
    const opened = "SELECT FROM trivet.admin_token WHERE user_id = $1 AND kind = 'session'";
    expect(await house.query(opened, [viewer.userId])).toEqual([]);
  });
});

describe('a second factor that is there', () => {
  it('goes with the password and a code, and not with one of them, nor with a code that was used', async () => {
    const { admin } = await house.tenant('removes');
    const { headers, secret, recoveryCodes } = await enrol(admin);
    const { password } = admin;
    const remove = (body: object) => post(headers, '/totp/remove', body);
    expect((await remove({ password })).status).toBe(400);
    expect(await remove({ password, code: '000000' })).toMatchObject(needed);
    expect(await remove({ password, code: codeNow(secret) }), 'used to prove it').toMatchObject(needed);
    await rewind(admin);
    expect((await remove({ password: 'a guess', code: codeNow(secret) })).body.code).toBe('unauthenticated');
    expect((await post(headers, '/totp', { password })).status, 'another beside it').toBe(409);
    const renewed = await post(headers, '/recovery-codes', { password, code: recoveryCodes[0] });
    expect(renewed.body.recoveryCodes).toHaveLength(10);
    expect(await remove({ password, code: recoveryCodes[1] }), 'one of those before').toMatchObject(needed);
    expect((await remove({ password, code: renewed.body.recoveryCodes[0] })).status).toBe(204);
    expect((await logIn(admin)).status).toBe(200);
    expect((await post(headers, '/recovery-codes', { password, code: '123456' })).status).toBe(409);
    const left = "SELECT FROM trivet.secret WHERE owner_table = 'user_totp' AND owner_id = $1";
    expect(await house.query(left, [admin.userId])).toEqual([]);
    expect((await enrol(admin)).recoveryCodes).toHaveLength(10);
  });

  it('is reset by an administrator for somebody else, whose logins end; by nobody for oneself', async () => {
    const { admin, operator, viewer } = await house.tenant('resets');
    const { headers } = await enrol(operator);
    await enrol(admin);
    const path = (who: Person) => `/tenants/resets/users/${who.name}/factors`;
    expect((await house.call(viewer, 'DELETE', path(operator))).status).toBe(403);
    expect((await house.call(house.acme.admin, 'DELETE', path(operator))).status).toBe(404);
    expect(await house.call(admin, 'DELETE', path(admin))).toMatchObject({ status: 403 });
    expect((await house.call(admin, 'DELETE', path(operator))).status).toBe(204);
    expect(await me(headers)).toBe(401);
    expect((await logIn(operator)).status).toBe(200);
    expect(await logIn(admin)).toMatchObject(needed);
    expect((await house.audit('user.reset-factors'))[0]).toMatchObject({
      actor: admin.username,
      subject_id: operator.userId,
      after: { had: ['totp'] },
    });
    // The appliance's administrator helps the last one of a tenant.
    expect((await house.call(house.root.admin, 'DELETE', path(admin))).status).toBe(204);
    expect((await logIn(admin)).status).toBe(200);
  });

  it('is asked of an API token that changes the password', async () => {
    const { operator } = await house.tenant('token-password');
    const { recoveryCodes } = await enrol(operator);
    const change = (code?: string) =>
      house.call(operator, 'POST', '/session/password', {
        body: { password: operator.password, newPassword: 'another long one', code },
      });
    expect(await change()).toMatchObject(needed);
    expect(await change('000000')).toMatchObject(needed);
    expect((await change(recoveryCodes[0])).status).toBe(204);
  });

  it('is not changed by what was proved before it was there', async () => {
    const { viewer } = await house.tenant('before');
    const { tenantId, tenant, userId, username } = viewer;
    const owner = { tenantId, tenant, userId, username };
    const factors = new SecondFactors(house.database, house.appliance.secrets);
    // The password is compared, and the factor comes before what it was compared for.
    const logins = {
      verifyAgain: async () => {
        await enrol(viewer);
        return { ...owner, account: username, role: 'viewer' as const, password: '' };
      },
      forget: () => {},
    };
    const changes = new FactorChanges({ database: house.database, logins, factors, issuer: '' });
    const actor = { kind: 'user' as const, name: username, address: '198.51.100.9' };
    const given = { password: viewer.password, code: '000000' };
    await expect(changes.remove(actor, owner, given)).rejects.toThrow(CodeNeeded);
    logins.verifyAgain = async () => ({ ...owner, account: username, role: 'viewer' as const, password: '' });
    await expect(changes.renewRecovery(actor, owner, given)).rejects.toThrow(CodeNeeded);
    expect(await logIn(viewer)).toMatchObject(needed);
  });

  it('goes with its user, secret and all', async () => {
    const { admin, viewer } = await house.tenant('goes');
    await enrol(viewer);
    const rows = () => house.query('SELECT FROM trivet.secret WHERE owner_id = $1', [viewer.userId]);
    expect(await rows()).toHaveLength(1);
    await house.change(admin, 'DELETE', `/tenants/goes/users/${viewer.name}`);
    expect(await rows()).toEqual([]);
  });

  it('without its secret, as after a lost key file, is told by a recovery code', async () => {
    const { viewer } = await house.tenant('lost-key');
    const { secret, recoveryCodes } = await enrol(viewer);
    await rewind(viewer);
    await house.query('DELETE FROM trivet.secret WHERE owner_id = $1', [viewer.userId]);
    expect(await logIn(viewer, codeNow(secret))).toMatchObject(needed);
    expect((await logIn(viewer, recoveryCodes[0])).status).toBe(200);
  });
});
