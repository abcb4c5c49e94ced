import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import { forgetAnswers, StoredIdempotencyKeys } from '#tenancy/idempotency-keys';
import { rewrapSecrets } from '#tenancy/setup/rewrap';
import { AdminHouse, type CallOptions } from '#test/admin/admin-house';

let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
});
afterAll(() => house?.close());

const TOKENS = '/tenants/acme/tokens';
let made = 0;
const newKey = (): string => `key-${++made}`;
const request = (name: string) => ({ name, role: 'viewer' });
const post = (key: string, body: unknown, path = TOKENS, options: CallOptions = {}) =>
  house.call(house.acme.operator, 'POST', path, { body, headers: { 'idempotency-key': key }, ...options });
const tokensNamed = async (name: string) =>
  (await house.query('SELECT FROM trivet.admin_token WHERE name = $1', [name])).length;
const rows = (key: string) => house.query('SELECT * FROM trivet.idempotency_key WHERE key = $1', [key]);

describe('a POST with an Idempotency-Key', () => {
  it('happens once; who repeats it gets the same answer, its secret too', async () => {
    const key = newKey();
    const first = await post(key, request('once'));
    expect(first.status).toBe(201);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    const again = await post(key, { role: 'viewer', name: 'once' });
    expect(again).toMatchObject({
      status: 201,
      body: first.body,
      headers: { 'idempotency-replayed': 'true', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
    });
    expect(await tokensNamed('once')).toBe(1);
    expect((await house.call(first.body.token, 'GET', '/session')).status).toBe(200);
  });

  it('is answered with the headers that it had', async () => {
    const [key, body] = [newKey(), { name: 'headed' }];
    const send = () => house.call(house.root.admin, 'POST', '/tenants', { body, headers: { 'idempotency-key': key } });
    const { headers } = await send();
    const again = await send();
    for (const name of ['etag', 'location', 'content-type']) expect(again.headers[name]).toBe(headers[name]);
    expect(again.headers).toMatchObject({ location: '/api/v1/tenants/headed', 'idempotency-replayed': 'true' });
  });

  it('is kept without its secret in the clear, nor a hash of a password that somebody could guess', async () => {
    const key = newKey();
    const { body } = await post(key, request('secret'));
    const [row] = await rows(key);
    const text = JSON.stringify(row) + (row!.sealed as Buffer).toString('latin1');
    for (const secret of [body.token, body.token.slice(7)]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString('base64'));
    }
    const user = { name: 'guess', role: 'viewer', password: 'easy to guess' };
    const reply = await house.call(house.acme.admin, 'POST', '/tenants/acme/users', {
      body: user,
      headers: { 'idempotency-key': key },
    });
    expect(reply.status).toBe(201);
    const all = await house.query<{ sealed: Buffer }>('SELECT sealed FROM trivet.idempotency_key');
    const other = await house.call(house.acme.admin, 'POST', '/tenants/acme/users', {
      body: { ...user, password: 'another guess' },
      headers: { 'idempotency-key': key },
    });
    expect(other).toMatchObject({ status: 409, body: { code: 'idempotency_key_reused' } });
    expect(Buffer.concat(all.map(({ sealed }) => sealed)).toString('latin1')).not.toContain('easy to guess');
  });

  it('of two at the same moment happens once, and the other is told to come again', async () => {
    const key = newKey();
    const replies = await Promise.all(Array.from({ length: 5 }, () => post(key, request('together'))));
    expect(replies.filter(({ status, headers }) => status === 201 && !headers['idempotency-replayed'])).toHaveLength(1);
    for (const { status, headers, body } of replies)
      if (status !== 201) {
        expect(body).toMatchObject({ code: 'aborted', status: 409, retryable: true });
        expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      }
    expect(await tokensNamed('together')).toBe(1);
    expect((await post(key, request('together'))).headers['idempotency-replayed']).toBe('true');
  });

  it('is another one with another body or path: 409', async () => {
    const key = newKey();
    await post(key, request('mine'));
    const problem = {
      status: 409,
      body: { code: 'idempotency_key_reused', errors: [{ pointer: '/header/idempotency-key' }] },
    };
    expect(await post(key, request('other'))).toMatchObject(problem);
    expect(await post(key, { password: 'x', newPassword: 'long enough' }, '/session/password')).toMatchObject(problem);
    expect(await tokensNamed('other')).toBe(0);
  });

  it('is forgotten with its secret after a day, also where nobody calls any more', async () => {
    const [old, young] = [newKey(), newKey()];
    for (const key of [old, young]) expect((await post(key, request(key))).status).toBe(201);
    await house.query("UPDATE trivet.idempotency_key SET created_at = now() - interval '25 h' WHERE key = $1", [old]);
    await forgetAnswers(house.database).run(AbortSignal.timeout(10_000));
    expect([(await rows(old)).length, (await rows(young)).length]).toEqual([0, 1]);
  });

  it('belongs to its user: the same key of somebody else is another one', async () => {
    const key = newKey();
    const headers = { 'idempotency-key': key };
    const first = await house.call(house.acme.operator, 'POST', TOKENS, { body: request('shared'), headers });
    const second = await house.call(house.acme.admin, 'POST', TOKENS, { body: request('shared'), headers });
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body.token).not.toBe(first.body.token);
  });

  it('that was refused did not happen: the next one is tried anew', async () => {
    const key = newKey();
    await post(newKey(), request('taken'));
    expect((await post(key, request('taken'))).status).toBe(409);
    expect(await rows(key)).toEqual([]);
    await house.query("DELETE FROM trivet.admin_token WHERE name = 'taken'");
    expect((await post(key, request('taken'))).status).toBe(201);
  });

  it.each(['', ' ', 'a b', 'ä', 'x'.repeat(256)])('with the key %j is 400', async key => {
    expect(await post(key, request('bad'))).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/header/idempotency-key' }] },
    });
  });

  it('may not be a login', async () => {
    const { username, password } = house.acme.viewer;
    const reply = await house.call(undefined, 'POST', '/session', {
      body: { username, password },
      headers: { 'idempotency-key': newKey() },
    });
    expect(reply).toMatchObject({ status: 400, body: { errors: [{ pointer: '/header/idempotency-key' }] } });
  });
});

describe('a key', () => {
  it('of a process that died is taken over after a minute, not before, and only by the same request', async () => {
    const key = newKey();
    await post(key, request('left'));
    await house.query("DELETE FROM trivet.admin_token WHERE name = 'left'");
    await house.query(
      "UPDATE trivet.idempotency_key SET status = NULL, claimed_at = now() - interval '50 s' WHERE key = $1",
      [key],
    );
    expect(await post(key, request('left'))).toMatchObject({ status: 409, body: { code: 'aborted' } });
    await house.query("UPDATE trivet.idempotency_key SET claimed_at = now() - interval '61 s' WHERE key = $1", [key]);
    expect((await post(key, request('else'))).body.code).toBe('idempotency_key_reused');
    expect((await post(key, request('left'))).status).toBe(201);
    expect((await post(key, request('left'))).headers['idempotency-replayed']).toBe('true');
    expect(await tokensNamed('left')).toBe(1);
  });

  it('of a process that died is taken over by one of those that come at once', async () => {
    const key = newKey();
    await post(key, request('heirs'));
    await house.query("DELETE FROM trivet.admin_token WHERE name = 'heirs'");
    await house.query(
      "UPDATE trivet.idempotency_key SET status = NULL, claimed_at = now() - interval '61 s' WHERE key = $1",
      [key],
    );
    const replies = await Promise.all(Array.from({ length: 5 }, () => post(key, request('heirs'))));
    const carriedOut = replies.filter(({ headers }) => headers['idempotency-replayed'] === undefined);
    expect(carriedOut.filter(({ status }) => status === 201)).toHaveLength(1);
    for (const { status, body } of replies) if (status !== 201) expect(body.code).toBe('aborted');
  });

  it('is forgotten after a day, and then removed', async () => {
    const [old, key] = [newKey(), newKey()];
    await post(old, request('old'));
    await post(key, request('yesterday'));
    await house.query(
      "UPDATE trivet.idempotency_key SET created_at = now() - interval '25 hours' WHERE key = ANY ($1)",
      [[old, key]],
    );
    expect(await post(key, request('today'))).toMatchObject({ status: 201, headers: {} });
    await post(newKey(), request('prunes'));
    expect(await rows(old)).toEqual([]);
  });

  it('is sealed anew when the key-encryption key changes, and opens without the old one', async () => {
    const key = newKey();
    const first = await post(key, request('rotated'));
    const old = readFileSync(house.appliance.env.TRIVET_KEK_FILE!, 'utf8').trim();
    const fresh = randomBytes(32).toString('base64');
    const both = new SecretBox(parseKeyring(`${fresh}\n${old}`, 'both'));
    expect((await rewrapSecrets(house.database, both)).rewrapped).toBeGreaterThan(0);
    const alone = new StoredIdempotencyKeys(house.database, new SecretBox(parseKeyring(fresh, 'fresh')));
    const { tenantId, userId } = house.acme.operator;
    // Of another request, which is seen only by whoever can open it.
    expect(await alone.take({ tenantId, userId, key }, randomBytes(32))).toBe('other_request');
    // What does not open is no answer: it is as if the key was new.
    await house.query("DELETE FROM trivet.admin_token WHERE name = 'rotated'");
    const again = await post(key, request('rotated'));
    expect(again.status).toBe(201);
    expect(again.body.token).not.toBe(first.body.token);
  });
});
