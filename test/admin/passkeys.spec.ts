import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { csrfOf } from '#admin/requests/admin.guard';
import { madePasskey, relyingParty } from '#tenancy/factors/passkey-protocol';
import { AdminHouse, type Person, type Reply } from '#test/admin/admin-house';
import { TestAuthenticator } from '#test/support/authenticator';
import { codeNow } from '#test/support/totp';

const ORIGIN = 'https://trivet.example:8743';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ env: { TRIVET_PUBLIC_URL: ORIGIN } });
});
beforeEach(() => house.forgive());
afterAll(() => house?.close());

type Headers = Record<string, string>;
const post = (headers: Headers, path: string, body?: object, address = '198.51.100.7') =>
  house.call(undefined, 'POST', `/session${path}`, { headers, body, address });

async function add(who: Person, name = 'laptop') {
  const { headers } = await house.login(who);
  const begun = await post(headers, '/passkeys/options', { password: who.password });
  expect(begun.status, JSON.stringify(begun.body)).toBe(200);
  const { challenge } = begun.body.options;
  const device = new TestAuthenticator();
  const body = { name, ...device.make({ challenge, origin: ORIGIN }) };
  const added = await post(headers, '/passkeys', body);
  expect(added.status, JSON.stringify(added.body)).toBe(200);
  return { headers, device, id: added.body.id as string, body, challenge };
}
const begin = async (): Promise<string> => (await post({}, '/passkey/options')).body.options.challenge;
const logIn = async (device: TestAuthenticator, change: object = {}, address?: string): Promise<Reply> =>
  post({}, '/passkey', device.prove({ challenge: await begin(), origin: ORIGIN, ...change }), address);
const unproved = {
  status: 401,
  body: { code: 'unauthenticated', detail: expect.stringContaining('this passkey opens nothing') },
};

describe('a passkey', () => {
  it('logs in by itself, as its user, with what a password opens and nothing asked besides', async () => {
    const { operator } = await house.tenant('keys');
    const { device, id } = await add(operator);
    expect((await house.call(undefined, 'GET', '/session/passkey')).body).toEqual({ host: 'trivet.example' });
    const reply = await logIn(device);
    expect(reply).toMatchObject({ status: 200, body: { username: operator.username, role: 'operator', token: null } });
    const token = /^trivet_session=([^;]+); Path=\/; HttpOnly; SameSite=Strict/.exec(
      String(reply.headers['set-cookie']),
    )![1]!;
    expect(reply.body.csrf).toBe(csrfOf(token));
    const factors = await house.call(operator, 'GET', '/session/factors');
    expect(factors.body.passkeys).toMatchObject([{ id, name: 'laptop', lastUsedAt: expect.any(String) }]);
    const logins = await house.call(operator, 'GET', '/session/logins');
    expect(logins.body.items[0].openedBy).toBe('passkey');
    expect((await house.audit('session.login'))[0]).toMatchObject({ after: { proved: 'passkey', passkey: id } });
  });

  it('is not asked for a code, and takes one to be added or removed, by a user who has an app', async () => {
    const { viewer } = await house.tenant('both');
    const { headers, device, id } = await add(viewer);
    const { secret } = (await post(headers, '/factors/totp', { password: viewer.password })).body;
    const { recoveryCodes } = (await post(headers, '/factors/totp/confirm', { code: codeNow(secret) })).body;
    expect((await logIn(device)).status).toBe(200);
    const { password } = viewer;
    const needed = { status: 401, body: { code: 'second_factor_required' } };
    expect(await post(headers, '/passkeys/options', { password })).toMatchObject(needed);
    expect(await post(headers, `/passkeys/${id}/remove`, { password })).toMatchObject(needed);
    expect((await post(headers, '/passkeys/options', { password, code: recoveryCodes[0] })).status).toBe(200);
    expect((await post(headers, `/passkeys/${id}/remove`, { password, code: recoveryCodes[1] })).status).toBe(204);
    expect(await logIn(device)).toMatchObject(unproved);
  });

  it('is added with the password alone, to a challenge of this user that is good once', async () => {
    const { viewer, operator } = await house.tenant('adds');
    const { headers, body, challenge } = await add(viewer);
    expect(await post(headers, '/passkeys', { ...body, name: 'again' }), 'the same answer').toMatchObject(unproved);
    expect((await post(headers, '/passkeys/options', { password: 'a guess' })).status).toBe(401);
    const other = await house.login(operator);
    const theirs = (await post(other.headers, '/passkeys/options', { password: operator.password })).body.options
      .challenge;
    const device = new TestAuthenticator();
    const make = (change: object) => ({ name: 'x', ...device.make({ challenge: theirs, origin: ORIGIN, ...change }) });
    expect(await post(headers, '/passkeys', make({})), 'of another user').toMatchObject(unproved);
    expect(await post(headers, '/passkeys', make({ challenge: await begin() })), 'of a login').toMatchObject(unproved);
    expect(await post(headers, '/passkeys', make({ challenge })), 'used').toMatchObject(unproved);
    const own = (await post(other.headers, '/passkeys/options', { password: operator.password })).body.options
      .challenge;
    const copied = { name: 'x', ...(await add(operator, 'its own')).device.make({ challenge: own, origin: ORIGIN }) };
    expect(await post(other.headers, '/passkeys', copied), 'there already').toMatchObject({ status: 409 });
    const rows = await house.query('SELECT FROM trivet.passkey WHERE user_id = $1', [viewer.userId]);
    expect(rows).toHaveLength(1);
  });

  it.each<[string, object]>([
    ['for another page', { origin: 'https://trivet.example.evil:8743' }],
    ['for this host at another port', { origin: 'https://trivet.example:9999' }],
    ['by an authenticator of another host', { host: 'evil.example' }],
    ['with nobody verified', { verified: false }],
    ['to a challenge that nobody gave', { challenge: Buffer.alloc(32).toString('base64url') }],
  ])('that was signed %s opens nothing', async (what, change) => {
    const { viewer } = await house.tenant(`wrong-${what.length}`);
    const { device } = await add(viewer);
    expect(await logIn(device, change)).toMatchObject(unproved);
    expect((await logIn(device)).status).toBe(200);
  });

  it('of a copy is known by its counter; an answer is good once, also twice at once, and not after five minutes', async () => {
    const { viewer } = await house.tenant('copies');
    const { device } = await add(viewer);
    expect((await logIn(device, { counter: 7 })).status).toBe(200);
    for (const counter of [7, 3, 0]) expect(await logIn(device, { counter }), `${counter}`).toMatchObject(unproved);
    const proof = device.prove({ challenge: await begin(), origin: ORIGIN, counter: 8 });
    const raced = await Promise.all([1, 2, 3].map(() => post({}, '/passkey', proof)));
    expect(raced.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
    const challenge = await begin();
    await house.query("UPDATE trivet.passkey_challenge SET expires_at = now() - interval '1 s'");
    expect(await logIn(device, { challenge, counter: 9 })).toMatchObject(unproved);
    expect((await house.audit('session.refused')).length).toBeGreaterThan(0);
  });

  it('of a disabled user says what an unknown one does; of a suspended tenant it is told so', async () => {
    const tenant = await house.tenant('closed');
    const { device } = await add(tenant.viewer);
    await house.query("UPDATE trivet.tenant_user SET state = 'disabled' WHERE id = $1", [tenant.viewer.userId]);
    const [known, unknown] = [await logIn(device), await logIn(new TestAuthenticator())];
    expect({ ...known.body, instance: '' }).toEqual({ ...unknown.body, instance: '' });
    await house.query("UPDATE trivet.tenant_user SET state = 'active' WHERE id = $1", [tenant.viewer.userId]);
    await house.query("UPDATE trivet.tenant SET state = 'suspended' WHERE id = $1", [tenant.id]);
    expect(await logIn(device)).toMatchObject({ status: 403, body: { detail: expect.stringContaining('suspended') } });
  });

  it('that is guessed slows its address down', async () => {
    const device = new TestAuthenticator();
    for (let n = 0; n < 21; n++) await logIn(device, {}, '192.0.2.77');
    expect((await logIn(device, {}, '192.0.2.77')).status).toBe(429);
    expect((await post({}, '/passkey/options', undefined, '192.0.2.77')).status, 'to begin').toBe(429);
  });

  it('that is removed takes the logins by passkeys along, and no other', async () => {
    const { viewer } = await house.tenant('lost-device');
    const { headers, device, id } = await add(viewer);
    const by = await logIn(device);
    const cookie = String(by.headers['set-cookie']).split(';')[0]!;
    const me = async (given: Headers) => (await house.call(undefined, 'GET', '/session', { headers: given })).status;
    expect(await me({ cookie })).toBe(200);
    const body = { password: viewer.password };
    expect((await post(headers, `/passkeys/${id}/remove`, body)).status).toBe(204);
    expect([await me({ cookie }), await me(headers)]).toEqual([401, 200]);
  });

  it('whose addition was begun before a reset, or another password, is not added after it', async () => {
    const { admin, viewer } = await house.tenant('begun-before');
    const begun = async () => {
      const { headers } = await house.login(viewer);
      const { challenge } = (await post(headers, '/passkeys/options', { password: viewer.password })).body.options;
      return new TestAuthenticator().make({ challenge, origin: ORIGIN });
    };
    const [one, other] = [await begun(), await begun()];
    const path = `/tenants/begun-before/users/${viewer.name}/factors`;
    expect((await house.call(admin, 'DELETE', path)).status).toBe(204);
    const { headers } = await house.login(viewer);
    expect(await post(headers, '/passkeys', { name: 'thief', ...one })).toMatchObject(unproved);
    const newPassword = { password: viewer.password, newPassword: `${viewer.password}, and more` };
    const third = await begun();
    expect((await post(headers, '/password', newPassword)).status).toBe(204);
    for (const made of [other, third])
      expect(await post(headers, '/passkeys', { name: 'thief', ...made })).toMatchObject(unproved);
  });

  it('that anybody begins to log in by is begun so often and no more', async () => {
    await house.query(
      `INSERT INTO trivet.passkey_challenge (challenge_hash, expires_at)
       SELECT sha256(n::text::bytea), now() + interval '1 min' FROM generate_series(1, 10000) AS n`,
    );
    const { viewer } = await house.tenant('many-begin');
    const { headers } = await house.login(viewer);
    expect((await post({}, '/passkey/options')).status).toBe(503);
    expect((await post(headers, '/passkeys/options', { password: viewer.password })).status).toBe(200);
    await house.query("UPDATE trivet.passkey_challenge SET expires_at = now() - interval '1 s'");
    expect((await post({}, '/passkey/options')).status).toBe(200);
    await house.query('DELETE FROM trivet.passkey_challenge');
  });

  it('goes by a reset of an administrator', async () => {
    const { admin, viewer } = await house.tenant('reset-keys');
    const { device } = await add(viewer);
    expect((await house.call(admin, 'DELETE', `/tenants/reset-keys/users/${viewer.name}/factors`)).status).toBe(204);
    expect(await logIn(device)).toMatchObject(unproved);
    expect((await house.audit('user.reset-factors'))[0]).toMatchObject({ after: { had: ['passkey'] } });
  });
});

describe('an attestation', () => {
  const challenge = Buffer.alloc(32, 7);
  const made = (format: string, statement: Map<string, unknown>, signed = false) =>
    madePasskey(
      relyingParty(ORIGIN),
      challenge,
      new TestAuthenticator().make({
        challenge: challenge.toString('base64url'),
        origin: ORIGIN,
        attestation: { format, statement, signed },
      }),
    );

  it('with certificates, whose addresses would be asked, is refused before anybody looks at them', async () => {
    const fetched = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('asked'));
    const x5c = () => new Map([['x5c', [new Uint8Array(64)]]]);
    for (const format of ['android-key', 'android-safetynet', 'apple', 'fido-u2f', 'tpm', 'packed', 'other'])
      await expect(made(format, x5c(), true), format).rejects.toMatchObject({
        kind: 'unauthenticated',
        cause: { message: expect.stringContaining('an attestation with certificates') },
      });
    expect(fetched).not.toHaveBeenCalled();
    fetched.mockRestore();
  });

  it('by the passkey itself, and none, are good', async () => {
    expect((await made('packed', new Map(), true)).publicKey.length).toBeGreaterThan(60);
    expect((await made('none', new Map())).counter).toBe(0);
  });
});

describe('where passkeys are', () => {
  it.each([undefined, 'https://192.0.2.1', 'http://127.0.0.1:8740', 'https://[2001:db8::1]'])('not at %s', address => {
    expect(() => relyingParty(address)).toThrow(/TRIVET_PUBLIC_URL/);
  });

  it.each([
    ['https://trivet.example:8743', 'trivet.example'],
    ['http://localhost:8740', 'localhost'],
  ])('at %s', (address, id) => expect(relyingParty(address)).toEqual({ id, origin: address }));
});
