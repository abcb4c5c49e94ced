import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { csrfOf } from '#admin/requests/admin.guard';
import { oidcSettings } from '#platform/config/oidc-settings';
import { IdentityProvider } from '#tenancy/oidc/identity-provider';
import { ProviderLogins } from '#tenancy/oidc/provider-logins';
import { type Begun, openLogin, sealLogin } from '#tenancy/oidc/sealed-login';
import { AdminHouse, type Person, type Reply } from '#test/admin/admin-house';
import { TestProvider } from '#test/support/identity-provider';

let provider: TestProvider;
let house: AdminHouse;
beforeAll(async () => {
  provider = await TestProvider.start('http://127.0.0.1:8740');
  house = await AdminHouse.create({ env: provider.env });
});
beforeEach(() => house.forgive());
afterAll(async () => {
  await house?.close();
  await provider?.close();
});

const ADDRESS = '198.51.100.7';
const cookieOf = (reply: Reply, name: string): string | undefined =>
  [reply.headers['set-cookie']]
    .flat()
    .map(set => new RegExp(`^${name}=([^;]+)`).exec(String(set))?.[1])
    .find(value => value !== undefined);

async function begin(): Promise<{ location: string; cookie: string }> {
  const reply = await house.call(undefined, 'POST', '/session/provider');
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return { location: reply.body.location, cookie: cookieOf(reply, 'trivet_begun')! };
}

const finish = (answer: string, cookie: string | undefined, address = ADDRESS) =>
  house.call(undefined, 'POST', '/session/provider/login', {
    body: { answer },
    headers: cookie === undefined ? {} : { cookie: `trivet_begun=${cookie}` },
    address,
  });

/** All of it, as `subject` at the provider. */
async function logIn(subject: string): Promise<Reply> {
  const { location, cookie } = await begin();
  return finish(await provider.logIn(location, subject), cookie);
}

/** What another gateway of the appliance has in its memory: nothing yet. */
const anotherGateway = ({ parts, appliance }: AdminHouse): ProviderLogins =>
  new ProviderLogins({
    ...parts,
    secrets: appliance.secrets,
    provider: new IdentityProvider(oidcSettings(parts.config)!),
  });

const link = (person: Person, subject: string | null, who = house.root.admin) =>
  house.change(who, 'PATCH', `/tenants/${person.tenant}/users/${person.name}`, { body: { subject } });

const sessionsOf = ({ userId }: Person) =>
  house.query("SELECT FROM trivet.admin_token WHERE user_id = $1 AND kind = 'session'", [userId]);

const refusals = async (): Promise<Record<string, unknown>[]> => house.audit('session.refused');

describe('a login by the provider', () => {
  it('is offered to whoever asks', async () => {
    expect((await house.call(undefined, 'GET', '/session/provider')).body).toEqual({ name: 'Test ID' });
  });

  it('goes there with PKCE, state and nonce, and leaves a cookie that no script reads and nobody can read', async () => {
    const reply = await house.call(undefined, 'POST', '/session/provider');
    const { searchParams, origin } = new URL(reply.body.location);
    expect(origin).toBe(provider.issuer);
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: 'trivet',
      response_type: 'code',
      redirect_uri: 'http://127.0.0.1:8740/login/provider',
      scope: 'openid profile',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    const set = String(reply.headers['set-cookie']);
    expect(set).toMatch(
      /^trivet_begun=[\w-]+; Path=\/api\/v1\/session\/provider; HttpOnly; SameSite=Strict; Max-Age=600$/,
    );
    const sealed = Buffer.from(cookieOf(reply, 'trivet_begun')!, 'base64url').toString('latin1');
    expect(sealed).not.toContain(searchParams.get('state'));
  });

  it('opens what a password opens: the same cookie, the same check of changes, and an entry in the audit log', async () => {
    const { acme } = house;
    expect((await link(acme.operator, 'operator-1')).status).toBe(200);
    const reply = await logIn('operator-1');
    expect(reply).toMatchObject({
      status: 200,
      body: { username: acme.operator.username, tenant: 'acme', appliance: false, role: 'operator', token: null },
    });
    const token = cookieOf(reply, 'trivet_session')!;
    expect(reply.body.csrf).toBe(csrfOf(token));
    const [forget, session] = reply.headers['set-cookie'] as unknown as string[];
    expect(forget).toMatch(/^trivet_begun=; .*Max-Age=0$/);
    expect(session).toMatch(/; Path=\/; HttpOnly; SameSite=Strict; Expires=/);
    const cookie = `trivet_session=${token}`;
    expect((await house.call(undefined, 'GET', '/session', { headers: { cookie } })).body).toEqual(reply.body);
    const body = { name: 'by-provider', role: 'operator' };
    const change = (headers: Record<string, string>) =>
      house.call(undefined, 'POST', '/tenants/acme/tokens', { body, headers: { cookie, ...headers } });
    expect((await change({})).status).toBe(403);
    expect((await change({ 'x-csrf-token': reply.body.csrf })).status).toBe(201);
    expect((await house.audit('session.login'))[0]).toMatchObject({
      tenant_name: 'acme',
      actor: acme.operator.username,
      address: ADDRESS,
      subject_id: acme.operator.userId,
      after: { provider: 'Test ID' },
    });
  });

  it('gives the rights of the user, and no more: a viewer changes nothing', async () => {
    await link(house.acme.viewer, 'viewer-1');
    const { body, headers } = await logIn('viewer-1');
    expect(body.role).toBe('viewer');
    const cookie = `trivet_session=${cookieOf({ body, headers, status: 200 }, 'trivet_session')}`;
    const reply = await house.call(undefined, 'POST', '/tenants/acme/volumes', {
      body: { name: 'not-mine', size: '1048576' },
      headers: { cookie, 'x-csrf-token': body.csrf },
    });
    expect(reply.status).toBe(403);
    const other = await house.call(undefined, 'GET', '/tenants/beta/volumes', { headers: { cookie } });
    expect(other.status).toBe(404);
  });

  it('ends at another gateway than the one at which it began', async () => {
    await link(house.acme.admin, 'admin-1');
    const { location, cookie } = await begin();
    const answer = await provider.logIn(location, 'admin-1');
    const opened = await anotherGateway(house).finish({ sealed: cookie, answer, address: ADDRESS });
    expect(opened.principal).toMatchObject({ username: house.acme.admin.username, kind: 'session' });
  });
});

describe('an answer', () => {
  const unproved = { status: 401, body: { code: 'unauthenticated', retryable: false } };
  const expectUnproved = async (reply: Reply): Promise<void> => {
    expect(reply).toMatchObject(unproved);
    expect(cookieOf(reply, 'trivet_session')).toBeUndefined();
  };
  beforeAll(() => link(house.beta.viewer, 'beta-viewer'));

  it('with another state is refused', async () => {
    const { location, cookie } = await begin();
    const answer = new URLSearchParams(await provider.logIn(location, 'beta-viewer'));
    const { state } = Object.fromEntries(answer);
    for (const other of [`${state}x`, '', (await begin()).location])
      await expectUnproved(
        await finish(`${new URLSearchParams({ ...Object.fromEntries(answer), state: other })}`, cookie),
      );
    answer.delete('state');
    await expectUnproved(await finish(`${answer}`, cookie));
  });

  it('of a login that began in another browser is refused', async () => {
    const [mine, theirs] = [await begin(), await begin()];
    const answer = await provider.logIn(theirs.location, 'beta-viewer');
    await expectUnproved(await finish(answer, mine.cookie));
    await expectUnproved(await finish(answer, undefined));
    await expectUnproved(await finish(answer, 'x'));
    await expectUnproved(await finish(answer, `${theirs.cookie.slice(0, -2)}AA`));
  });

  /** The cookie of a login with something else in it, as only who has the key file can make it. */
  const resealed = (cookie: string, change: Partial<Begun>): string => {
    const { secrets } = house.appliance;
    return sealLogin(secrets, { ...openLogin(secrets, cookie)!, ...change });
  };

  it.each<[string, Partial<Begun>]>([
    ['whose ID token has another nonce', { nonce: 'another' }],
    ['whose code was made for another secret of PKCE', { verifier: 'v'.repeat(43) }],
    ['that comes too late', { until: 0 }],
  ])('%s is refused', async (_, change) => {
    const { location, cookie } = await begin();
    const answer = await provider.logIn(location, 'beta-viewer');
    await expectUnproved(await finish(answer, resealed(cookie, change)));
  });

  it('that comes in time is taken with the cookie as it was', async () => {
    const { location, cookie } = await begin();
    expect((await finish(await provider.logIn(location, 'beta-viewer'), resealed(cookie, {}))).status).toBe(200);
  });

  it('is good once', async () => {
    const { location, cookie } = await begin();
    const answer = await provider.logIn(location, 'beta-viewer');
    expect((await finish(answer, cookie)).status).toBe(200);
    await expectUnproved(await finish(answer, cookie));
  });

  it('that says no is refused, and what it says is repeated to nobody', async () => {
    const { location, cookie } = await begin();
    const said = { error: 'access_denied', error_description: 'call 555-0100', iss: provider.issuer };
    const state = new URL(location).searchParams.get('state')!;
    const reply = await finish(`${new URLSearchParams({ ...said, state })}`, cookie);
    await expectUnproved(reply);
    expect(JSON.stringify(reply.body)).not.toContain('555-0100');
  });

  it('that is tried again and again slows its address down, and no other', async () => {
    for (let n = 0; n < 21; n++) await finish('code=guess&state=guess', undefined, '192.0.2.66');
    const reply = await finish('code=guess&state=guess', undefined, '192.0.2.66');
    expect(reply).toMatchObject({ status: 429, body: { code: 'too_many_logins' } });
    await expectUnproved(await finish('code=guess&state=guess', undefined, '192.0.2.67'));
  });
});

describe('a person', () => {
  it('whom nobody here knows is refused, and the audit log has what it takes to link them', async () => {
    provider.people['stranger-1'] = { preferred_username: 'stranger\u0000@acme' };
    const reply = await logIn('stranger-1');
    expect(reply).toMatchObject({ status: 403, body: { code: 'permission_denied', retryable: false } });
    expect(cookieOf(reply, 'trivet_session')).toBeUndefined();
    expect((await refusals())[0]).toMatchObject({
      tenant_name: 'appliance',
      actor_kind: 'system',
      address: ADDRESS,
      subject_kind: 'person',
      subject_id: 'stranger-1',
      subject_name: 'stranger@acme',
    });
  });

  it('is linked with the user of the claimed login name at the first login; later the name is no matter', async () => {
    const tenant = await house.tenant('claims');
    provider.people['claimed-1'] = { preferred_username: tenant.operator.username };
    expect((await logIn('claimed-1')).body.username).toBe(tenant.operator.username);
    expect((await house.audit('user.link'))[0]).toMatchObject({
      actor: tenant.operator.username,
      subject_id: tenant.operator.userId,
      after: { subject: 'claimed-1' },
    });
    provider.people['claimed-1'] = { preferred_username: house.root.admin.username };
    expect((await logIn('claimed-1')).body.username).toBe(tenant.operator.username);
    // The name was given to somebody else there.
    provider.people['claimed-2'] = { preferred_username: tenant.operator.username };
    expect((await logIn('claimed-2')).status).toBe(403);
    expect((await refusals())[0]).toMatchObject({
      tenant_name: 'claims',
      subject_id: tenant.operator.userId,
      after: { provider: 'Test ID', subject: 'claimed-2' },
    });
    const [row] = await house.query('SELECT subject FROM trivet.tenant_user WHERE id = $1', [tenant.operator.userId]);
    expect(row).toEqual({ subject: 'claimed-1' });
  });

  it('of a disabled user is refused like one whom nobody knows', async () => {
    const tenant = await house.tenant('disabled');
    await link(tenant.viewer, 'disabled-1');
    const path = '/tenants/disabled/users/the-viewer';
    await house.change(house.root.admin, 'PATCH', path, { body: { state: 'disabled' } });
    const [known, unknown] = [await logIn('disabled-1'), await logIn('nobody-1')];
    expect({ ...known.body, instance: '' }).toEqual({ ...unknown.body, instance: '' });
    provider.people['disabled-2'] = { preferred_username: 'the-viewer@disabled' };
    expect((await logIn('disabled-2')).status).toBe(403);
    const [row] = await house.query('SELECT subject FROM trivet.tenant_user WHERE id = $1', [tenant.viewer.userId]);
    expect(row).toEqual({ subject: 'disabled-1' });
    expect(await sessionsOf(tenant.viewer)).toEqual([]);
  });

  it('of a suspended tenant is told so', async () => {
    const tenant = await house.tenant('paused');
    await link(tenant.admin, 'paused-1');
    await house.query("UPDATE trivet.tenant SET state = 'suspended' WHERE id = $1", [tenant.id]);
    const reply = await logIn('paused-1');
    expect(reply).toMatchObject({ status: 403, body: { detail: expect.stringContaining('paused is suspended') } });
    expect((await refusals())[0]).toMatchObject({ tenant_name: 'paused', subject_id: tenant.admin.userId });
    expect(await sessionsOf(tenant.admin)).toEqual([]);
  });
});

describe('a link', () => {
  it('is set by administrators of the appliance alone', async () => {
    const tenant = await house.tenant('links');
    const reply = await link(tenant.viewer, 'links-1', tenant.admin);
    expect(reply).toMatchObject({ status: 403, body: { errors: [{ pointer: '/body/subject' }] } });
    expect((await link(tenant.viewer, 'links-1', house.root.operator)).status).toBe(403);
    const linked = await link(tenant.viewer, 'links-1');
    expect(linked.body.identity).toEqual({ issuer: `${provider.issuer}/`, subject: 'links-1' });
    expect((await house.audit('user.change'))[0]).toMatchObject({ after: { identity: { subject: 'links-1' } } });
  });

  it('is one user’s: nobody else gets it, in this tenant or another', async () => {
    const [one, other] = [await house.tenant('one'), await house.tenant('other')];
    expect((await link(one.viewer, 'shared-1')).status).toBe(200);
    for (const person of [one.admin, other.viewer])
      expect(await link(person, 'shared-1')).toMatchObject({
        status: 409,
        body: { code: 'already_exists', errors: [{ pointer: '/body/subject' }] },
      });
    const raced = await Promise.all([one.operator, one.admin, other.operator].map(person => link(person, 'raced-1')));
    expect(raced.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  it('that is taken away ends the login', async () => {
    const tenant = await house.tenant('unlinked');
    await link(tenant.viewer, 'unlinked-1');
    const reply = await logIn('unlinked-1');
    const headers = { cookie: `trivet_session=${cookieOf(reply, 'trivet_session')}` };
    expect((await house.call(undefined, 'GET', '/session', { headers })).status).toBe(200);
    expect((await link(tenant.viewer, null)).body.identity).toBeNull();
    expect((await house.call(undefined, 'GET', '/session', { headers })).status).toBe(401);
    expect((await logIn('unlinked-1')).status).toBe(403);
  });
});

describe('without the provider', () => {
  it('a login by it is refused for now, and one by password is not', async () => {
    const gone = await TestProvider.start('http://127.0.0.1:8740');
    const alone = await AdminHouse.create({ env: gone.env });
    try {
      const begun = await alone.call(undefined, 'POST', '/session/provider');
      const cookie = cookieOf(begun, 'trivet_begun')!;
      const answer = await gone.logIn(begun.body.location, 'anybody');
      await gone.stop();
      const finished = await alone.call(undefined, 'POST', '/session/provider/login', {
        body: { answer },
        headers: { cookie: `trivet_begun=${cookie}` },
      });
      const away = { status: 503, body: { code: 'unavailable', retryable: true } };
      expect(finished).toMatchObject(away);
      expect(finished.body.detail).toContain('Test ID does not answer');
      await expect(anotherGateway(alone).begin()).rejects.toMatchObject({ kind: 'unavailable' });
      expect((await alone.login(alone.acme.viewer)).reply.status).toBe(200);
    } finally {
      await alone.close();
      await gone.close();
    }
  });

  it('a gateway that has none says so', async () => {
    const plain = await AdminHouse.create();
    try {
      expect((await plain.call(undefined, 'GET', '/session/provider')).body).toEqual({ name: null });
      const none = { status: 409, body: { code: 'failed_precondition' } };
      expect(await plain.call(undefined, 'POST', '/session/provider')).toMatchObject(none);
      const body = { answer: 'code=x' };
      expect(await plain.call(undefined, 'POST', '/session/provider/login', { body })).toMatchObject(none);
      const path = '/tenants/acme/users/the-viewer';
      expect(await plain.change(plain.root.admin, 'PATCH', path, { body: { subject: 'x' } })).toMatchObject(none);
    } finally {
      await plain.close();
    }
  });
});
