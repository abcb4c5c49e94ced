import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';

interface Reply {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
  body: any;
}

/** What administrators do with secrets, good and bad; each of these is added to `secrets`. */
export async function adminJob(url: string, token: string, password: string, secrets: Map<string, string>) {
  const newSecret = (name: string): string => {
    const secret = randomBytes(12).toString('hex');
    secrets.set(name, secret);
    return secret;
  };
  const ask = async (
    method: string,
    path: string,
    body?: object,
    more: Record<string, string> = {},
  ): Promise<Reply> => {
    const headers = {
      ...(body ? { 'content-type': 'application/json' } : {}),
      authorization: `Bearer ${token}`,
      ...more,
    };
    const reply = await fetch(`${url}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, body: text ? JSON.parse(text) : undefined };
  };
  secrets.set('API token of the launcher', token);
  secrets.set('password of admin', password);

  const login = (wanted: string) => ask('POST', '/session', { username: 'admin@appliance', password: wanted });
  expect((await login(newSecret('wrong password of admin'))).status).toBe(401);
  const loggedIn = await login(password);
  expect(loggedIn.status).toBe(200);
  const cookie = loggedIn.headers.get('set-cookie')!.split(';')[0]!;
  secrets.set('cookie of a login', cookie.split('=')[1]!);
  secrets.set('CSRF value of a login', loggedIn.body.csrf);

  expect((await ask('POST', '/tenants', { name: 'canary' })).status).toBe(201);
  const once = { 'idempotency-key': 'canary' };
  const user = { name: 'ann', role: 'admin', password: newSecret('password of ann') };
  expect((await ask('POST', '/tenants/canary/users', user, once)).status).toBe(201);
  expect((await ask('POST', '/tenants/canary/users', user, once)).headers.get('idempotency-replayed')).toBe('true');
  expect(
    (await ask('POST', '/tenants/canary/users', { ...user, password: newSecret('refused password') })).status,
  ).toBe(409);
  const wanted = { name: 'canary', user: 'ann', role: 'viewer' };
  const made = await ask('POST', '/tenants/canary/tokens', wanted, { 'idempotency-key': 'canary-token' });
  expect(made.status).toBe(201);
  secrets.set('API token of ann', made.body.token);
  expect((await ask('GET', '/session', undefined, { authorization: `Bearer ${made.body.token}` })).status).toBe(200);
  const path = '/tenants/canary/users/ann';
  const changed = await ask('PATCH', path, { password: newSecret('changed password of ann') }, { 'if-match': '*' });
  expect(changed.status).toBe(200);
  // A secret where it does not belong is refused, and not repeated.
  const misplaced = newSecret('secret in the wrong field');
  const refused = await ask('POST', '/tenants/canary/users', { ...user, name: 'bob', secretKey: misplaced });
  expect(refused.status).toBe(400);
  expect(JSON.stringify(refused.body)).not.toContain(misplaced);
  const credentials = { accessKeyId: 'CANARY', secretAccessKey: newSecret('secret key of a registered backend') };
  const backend = { name: 'canary', kind: 'fake', config: { file: '/nonexistent/canary.db' }, credentials };
  const registered = await ask('POST', '/tenants/canary/backends', backend);
  expect(registered.status).toBeLessThan(500);
  expect(JSON.stringify(registered.body)).not.toContain(credentials.secretAccessKey);
}
