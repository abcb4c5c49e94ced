import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type HouseUsers, LoginHouse, request } from '#test/tenancy/login-house';

let house: LoginHouse;
let users: HouseUsers;
let backends: Record<string, string>;
let tenantId: string;
const PASSWORD = 'correct horse';

beforeAll(async () => {
  house = await LoginHouse.create();
  ({ users, backends, id: tenantId } = await house.tenant('default'));
  const other = await house.tenant('acme');
  await users.add('csp', 'operator', PASSWORD);
  await users.add('reader', 'viewer', PASSWORD);
  await other.users.add('csp', 'admin', 'another password');
});
beforeEach(() => house.forgive());
afterAll(() => house?.close());

const login = request('csp', PASSWORD);
const tokens = () => house.query<{ id: string }>('SELECT id FROM trivet.session_token');

describe('a login', () => {
  it('opens a session of the user, its tenant and its default backend, which any gateway knows, also after a restart', async () => {
    const opened = await house.sessions({ ttlMs: 600_000 }).login({ ...login, enveloped: true });
    expect(opened).toMatchObject({
      username: 'csp',
      role: 'operator',
      backendId: backends.local,
      arrayIp: '',
      tenantId,
    });
    expect(opened.expiresAt.getTime() - opened.createdAt.getTime()).toBe(600_000);
    expect(opened.token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const { token, createdAt, expiresAt, ...session } = opened;
    expect(await house.sessions().authenticate(token)).toEqual({ ...session, backendKind: 'reflink' });
  });

  it('names the tenant behind an @, and only there are its users', async () => {
    const sessions = house.sessions();
    const other = await sessions.login(request('csp@acme', 'another password'));
    expect(other.tenantId).not.toBe(tenantId);
    expect((await sessions.authenticate(other.token))?.username).toBe('csp@acme');
    expect((await sessions.login(request('csp@default', PASSWORD))).tenantId).toBe(tenantId);
    for (const wrong of [
      request('csp@acme', PASSWORD),
      request('reader@acme', PASSWORD),
      request('csp', 'another password'),
    ])
      await expect(sessions.login(wrong)).rejects.toMatchObject({ kind: 'unauthenticated' });
  });

  it('leaves the user’s other tokens alone', async () => {
    const sessions = house.sessions();
    const all = await Promise.all(Array.from({ length: 10 }, () => sessions.login(login)));
    expect(new Set(all.map(({ token }) => token)).size).toBe(10);
    for (const { token, id } of all) expect((await sessions.authenticate(token))?.id).toBe(id);
  });

  it.each([
    ['fast', 'fast'],
    ['192.0.2.7:443', 'fast'],
    ['[2001:DB8::7]:443', 'fast'],
    ['local', 'local'],
  ])('with array_ip %s goes to %s', async (arrayIp, backend) => {
    const opened = await house.sessions().login({ ...login, arrayIp });
    expect(opened).toMatchObject({ arrayIp, backendId: backends[backend] });
    expect(await house.sessions().authenticate(opened.token)).toMatchObject({ arrayIp, backendId: backends[backend] });
  });

  it.each(['10.10.10.1', 'rgw', 'nowhere', '\0'])(
    'with array_ip %j is refused, once the password was right, and opens nothing',
    async arrayIp => {
      const before = (await tokens()).length;
      await expect(house.sessions().login({ ...login, arrayIp })).rejects.toMatchObject({
        kind: 'invalid_argument',
        field: 'array_ip',
      });
      await expect(house.sessions().login({ ...login, password: 'wrong', arrayIp })).rejects.toMatchObject({
        kind: 'unauthenticated',
      });
      expect(await tokens()).toHaveLength(before);
    },
  );

  it('costs one computation for a known and for an unknown user, for odd names and for a disabled one, and says the same', async () => {
    const sessions = house.sessions();
    await users.add('off', 'viewer', PASSWORD);
    await users.disable('off');
    const messages = new Set<string>();
    for (const name of [
      'csp',
      'nobody',
      'csp@nowhere',
      'off',
      '',
      '@',
      'a@b@c',
      'CSP',
      "'; --",
      'x'.repeat(10_000),
      'nul\0',
    ]) {
      const before = house.computed;
      const password = name === 'off' ? PASSWORD : 'wrong password';
      await sessions.login(request(name, password, { address: `192.0.2.${before % 250}` })).then(
        () => expect.fail(name),
        error => messages.add(`${error.kind} ${error.message}`),
      );
      expect(house.computed - before, name).toBe(1);
    }
    expect([...messages]).toEqual(['unauthenticated the user name or the password is wrong']);
  });

  it('makes the stored password anew when its parameters are not those of today', async () => {
    await users.setPassword('reader', PASSWORD);
    const stored = async () =>
      (await house.query<{ password: string }>("SELECT password FROM trivet.tenant_user WHERE name = 'reader'"))[0]!
        .password;
    expect(await stored()).toContain('m=19456,t=2,p=1');
    const cost = { memoryKiB: 128, passes: 1, lanes: 1 };
    const opened = await house.sessions({ cost }).login(request('reader', PASSWORD));
    expect(await stored()).toContain('m=128,t=1,p=1');
    expect(await house.sessions().authenticate(opened.token)).toBeDefined();
    const once = await stored();
    await house.sessions({ cost }).login(request('reader', PASSWORD));
    expect(await stored()).toBe(once);
  });

  it('that runs while the user is disabled opens nothing', async () => {
    const racing = house.sessions();
    await users.add('leaver', 'operator', PASSWORD);
    const outcomes = await Promise.allSettled([
      ...Array.from({ length: 8 }, () => racing.login(request('leaver', PASSWORD))),
      users.disable('leaver'),
    ]);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ kind: 'unauthenticated' });
    expect(
      await house.query(
        "SELECT FROM trivet.session_token s JOIN trivet.tenant_user u ON u.id = s.user_id WHERE u.name = 'leaver'",
      ),
    ).toEqual([]);
  });
});

describe('a token', () => {
  it('stands nowhere but as its SHA-256', async () => {
    const { token, id } = await house.sessions().login(login);
    const [row] = await house.query<{ token_hash: Buffer }>(
      'SELECT token_hash FROM trivet.session_token WHERE id = $1',
      [id],
    );
    expect(row!.token_hash.equals(createHash('sha256').update(token).digest())).toBe(true);
  });

  it.each(['', 'x', 'a'.repeat(43), 'a'.repeat(44), '\0'.repeat(43), 'ä'.repeat(43)])('%j is nobody’s', async token => {
    expect(await house.sessions().authenticate(token)).toBeUndefined();
  });

  it('expires, by the database’s clock', async () => {
    const sessions = house.sessions();
    const { token, id } = await sessions.login(login);
    await house.query("UPDATE trivet.session_token SET expires_at = now() - interval '1 second' WHERE id = $1", [id]);
    expect(await sessions.authenticate(token)).toBeUndefined();
  });

  it('is answered from memory for 5 s and never beyond its end', async () => {
    let now = 0;
    const sessions = house.sessions({ clock: () => now });
    const { token, id } = await sessions.login(login);
    expect(await sessions.authenticate(token)).toBeDefined();
    await house.query('DELETE FROM trivet.session_token WHERE id = $1', [id]);
    now = 4_999;
    expect(await sessions.authenticate(token)).toBeDefined();
    now = 5_000;
    expect(await sessions.authenticate(token)).toBeUndefined();

    const short = house.sessions({ clock: () => now, ttlMs: 1_000 });
    const opened = await short.login(login);
    expect(await short.authenticate(opened.token)).toBeDefined();
    await house.query('DELETE FROM trivet.session_token WHERE id = $1', [opened.id]);
    now += 1_001;
    expect(await short.authenticate(opened.token)).toBeUndefined();
  });

  it('is gone at once where it was revoked, and elsewhere within 5 s', async () => {
    let now = 0;
    const [here, elsewhere] = [house.sessions(), house.sessions({ clock: () => now })];
    const { token, id } = await here.login(login);
    const session = (await here.authenticate(token))!;
    expect(await elsewhere.authenticate(token)).toBeDefined();
    await here.revoke(session, id);
    expect(await here.authenticate(token)).toBeUndefined();
    now = 5_000;
    expect(await elsewhere.authenticate(token)).toBeUndefined();
    await expect(here.revoke(session, id)).rejects.toMatchObject({ kind: 'not_found' });
  });

  it('that is revoked while it is being looked up is not remembered', async () => {
    let found = () => {};
    let goOn = () => {};
    const isFound = new Promise<void>(resolve => {
      found = resolve;
    });
    const mayGoOn = new Promise<void>(resolve => {
      goOn = resolve;
    });
    // The answer of the database is on its way while the token is revoked.
    const slow = house.sessions({
      after: async statement => {
        if (statement.name !== 'session_find') return;
        found();
        await mayGoOn;
      },
    });
    const opened = await slow.login(login);
    const looked = slow.authenticate(opened.token);
    await isFound;
    await slow.revoke(opened, opened.id);
    goOn();
    expect((await looked)?.id).toBe(opened.id);
    expect(await slow.authenticate(opened.token)).toBeUndefined();
  });

  it('of another user, or a neighbour’s, or that is no token at all, cannot be revoked', async () => {
    const sessions = house.sessions();
    const mine = await sessions.login(login);
    for (const [name, password] of [
      ['reader', PASSWORD],
      ['csp@acme', 'another password'],
    ] as const) {
      const theirs = await sessions.login(request(name, password));
      await expect(sessions.revoke(mine, theirs.id)).rejects.toMatchObject({ kind: 'not_found' });
      expect(await sessions.authenticate(theirs.token)).toBeDefined();
    }
    for (const id of ['', 'x', "'", mine.token])
      await expect(sessions.revoke(mine, id)).rejects.toMatchObject({ kind: 'not_found' });
  });

  it.each([
    ['its user is disabled', () => users.disable('csp'), () => users.enable('csp')],
    [
      'its user is disabled by a statement that leaves the tokens',
      () => house.query("UPDATE trivet.tenant_user SET state = 'disabled' WHERE name = 'csp'"),
      () => house.query("UPDATE trivet.tenant_user SET state = 'active' WHERE name = 'csp'"),
    ],
    ['its user gets another password', () => users.setPassword('csp', PASSWORD), async () => {}],
  ])('ends within 5 s when %s', async (_, change, undo) => {
    let now = 0;
    const sessions = house.sessions({ clock: () => now });
    const { token } = await sessions.login(login);
    expect(await sessions.authenticate(token)).toBeDefined();
    try {
      await change();
      now = 5_000;
      expect(await sessions.authenticate(token)).toBeUndefined();
    } finally {
      await undo();
    }
  });

  it('of a suspended tenant opens nothing, and says so only to whom the password was right', async () => {
    const sessions = house.sessions();
    const { token } = await sessions.login(login);
    await house.query("UPDATE trivet.tenant SET state = 'suspended' WHERE name = 'default'");
    try {
      const suspended = { kind: 'permission_denied', message: expect.stringContaining('tenant default is suspended') };
      await expect(sessions.login(login)).rejects.toMatchObject(suspended);
      await expect(sessions.login({ ...login, password: 'not this one' })).rejects.toMatchObject({
        kind: 'unauthenticated',
      });
      await expect(house.sessions().authenticate(token)).rejects.toMatchObject(suspended);
    } finally {
      await house.query("UPDATE trivet.tenant SET state = 'active' WHERE name = 'default'");
    }
    expect(await house.sessions().authenticate(token)).toBeDefined();
  });

  it('that has expired is removed by a later login, in portions', async () => {
    const sessions = house.sessions();
    const { userId } = await sessions.login(login);
    await house.query(
      `INSERT INTO trivet.session_token (tenant_id, id, user_id, token_hash, backend_id, enveloped, array_ip, expires_at)
       SELECT $1, gen_random_uuid(), $2, sha256(n::text::bytea), $3, false, '', now() - interval '1 hour'
         FROM generate_series(1, 150) n`,
      [tenantId, userId, backends.local],
    );
    const expired = async () => (await house.query('SELECT FROM trivet.session_token WHERE expires_at < now()')).length;
    const before = await expired();
    await sessions.login(login);
    expect(await expired()).toBe(before - 100);
    await sessions.login(login);
    expect(await expired()).toBe(Math.max(0, before - 200));
  });
});

describe('the backend of a call', () => {
  it('is the session’s for the address of the login, else another one of the tenant', async () => {
    const sessions = house.sessions();
    const session = await sessions.login({ ...login, arrayIp: 'fast' });
    const fast = { backendId: backends.fast, backendKind: 'reflink' };
    expect(await sessions.selectBackend(session, '')).toEqual(fast);
    expect(await sessions.selectBackend(session, 'fast')).toEqual(fast);
    expect(await sessions.selectBackend(session, '[2001:db8::7]')).toEqual(fast);
    expect(await sessions.selectBackend(session, 'local')).toEqual({ ...fast, backendId: backends.local });
    for (const unknown of ['10.0.0.1', 'rgw'])
      await expect(sessions.selectBackend(session, unknown)).rejects.toMatchObject({
        kind: 'invalid_argument',
        field: 'x-array-ip',
      });
  });

  it('follows the registry within 5 s', async () => {
    let now = 0;
    const sessions = house.sessions({ clock: () => now });
    const session = await sessions.login(request('csp@acme', 'another password'));
    await expect(sessions.selectBackend(session, '192.0.2.9')).rejects.toMatchObject({ kind: 'invalid_argument' });
    await house.query(
      `UPDATE trivet.backend SET config = '{"addresses": ["192.0.2.9"]}' WHERE tenant_id = $1 AND name = 'fast'`,
      [session.tenantId],
    );
    now = 5_000;
    expect((await sessions.selectBackend(session, '192.0.2.9')).backendId).not.toBe(session.backendId);
  });
});
