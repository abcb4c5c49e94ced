import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SnapshotSessionsModule } from '#cbt/sessions.module';
import { CspModule } from '#csp/csp.module';
import { Health } from '#platform/health/health';
import { SessionHouse, type SessionTenant } from '#test/cbt-sessions/session-house';
import { MemoryBlockStorage } from '#test/csp/memory-block-storage';
import { MemorySessions } from '#test/csp/memory-sessions';
import { createHttp } from '../../apps/gateway/src/http.js';

const CA = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const UUID = /^[0-9a-f-]{36}$/;

let house: SessionHouse;
let acme: SessionTenant;
let other: SessionTenant;
let app: NestFastifyApplication;
let url: string;
const logins = new MemorySessions();
const tokens: Record<string, string> = {};

/** Beside CSP, as in the gateway: the two must not take each other's answers. */
beforeAll(async () => {
  house = await SessionHouse.create();
  acme = await house.tenant('acme');
  other = await house.tenant('other');
  await house.snapshot(await house.volume(acme), 'monday');
  const who = { csp: [acme, 'operator'], viewer: [acme.colleague, 'viewer'], theirs: [other, 'operator'] } as const;
  for (const [username, [{ tenantId, userId }, role]] of Object.entries(who)) {
    logins.users.set(username, { password: 'x', tenantId, role });
    logins.backends.set(tenantId, new Map([['', { backendId: 'b', backendKind: 'memory' }]]));
    const opened = await logins.login({ username, password: 'x', arrayIp: '', enveloped: false, address: '' });
    logins.live.set(opened.token, { ...opened, userId });
    tokens[username] = opened.token;
  }
  const service = () => ({ address: 'trivet.example.com:8745', caCert: CA, drivers: ['csi.hpe.com'] });
  app = await createHttp({
    health: new Health(),
    imports: [
      CspModule.register({ useFactory: () => ({ storage: new MemoryBlockStorage().storage, sessions: logins }) }),
      SnapshotSessionsModule.register({ useFactory: () => ({ sessions: house.service(), logins, service }) }),
    ],
  });
  await app.listen(0, '127.0.0.1');
  url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}/cbt/v1`;
});
afterAll(async () => {
  await app?.close();
  await house?.close();
});

async function call(method: string, path: string, body?: unknown, headers: object = { 'x-auth-token': tokens.csp }) {
  const answer = await fetch(`${url}/${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers } as Record<
      string,
      string
    >,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) };
}
const as = (user: string) => ({ 'x-auth-token': tokens[user] });

describe('sessions over REST', () => {
  it('are made, read, listed and deleted', async () => {
    const made = await call('POST', 'sessions', { name: 'nightly', snapshots: ['monday'], ttlSeconds: 60 });
    expect(made).toMatchObject({
      status: 201,
      body: {
        name: 'nightly',
        id: expect.stringMatching(UUID),
        snapshots: ['monday'],
        sessionState: 'Ready',
        driver: 'csi.hpe.com',
        sessionToken: expect.stringMatching(/^[a-z0-9]{52}$/),
        sessionURL: 'trivet.example.com:8745',
        caCert: Buffer.from(CA).toString('base64'),
      },
    });
    const { creationTime, expiryTime } = made.body;
    expect(Date.parse(expiryTime) - Date.parse(creationTime)).toBe(60_000);
    expect(made.headers.get('location')).toBe('/cbt/v1/sessions/nightly');
    expect(made.headers.get('cache-control')).toBe('no-store');
    for (const key of ['nightly', made.body.id])
      expect(await call('GET', `sessions/${key}`)).toMatchObject({ status: 200, body: made.body });
    expect((await call('GET', 'sessions')).body).toContainEqual(made.body);
    expect(await call('DELETE', 'sessions/nightly')).toMatchObject({ status: 204, body: undefined });
    expect((await call('GET', 'sessions/nightly')).status).toBe(404);
  });

  it('say why they failed', async () => {
    const { status, body } = await call('POST', 'sessions', { snapshots: ['sunday'] });
    expect(status).toBe(201);
    expect(body).toMatchObject({ sessionState: 'Failed', error: 'snapshot sunday does not exist' });
    for (const field of ['sessionToken', 'sessionURL', 'caCert']) expect(body).not.toHaveProperty(field);
  });

  it('are open to bearers of a login token, and closed to everybody else', async () => {
    expect((await call('GET', 'sessions', undefined, { authorization: `Bearer ${tokens.csp}` })).status).toBe(200);
    for (const headers of [{}, { 'x-auth-token': 'x' }, { authorization: 'Basic eDp5' }, { 'x-auth-token': '' }]) {
      const refused = await call('GET', 'sessions', undefined, headers);
      expect(refused).toMatchObject({ status: 401, body: { status: 401, title: 'Unauthorized' } });
      expect(refused.headers.get('www-authenticate')).toBe('Bearer');
      expect(refused.headers.get('content-type')).toContain('application/problem+json');
    }
  });

  it('can be opened and ended by a viewer, but for those of others', async () => {
    await call('POST', 'sessions', { name: 'seen', snapshots: ['monday'] });
    const seen = await call('GET', 'sessions/seen', undefined, as('viewer'));
    expect(seen).toMatchObject({ status: 200, body: { sessionState: 'Ready' } });
    expect(seen.body.sessionToken).toBeUndefined();
    const refused = await call('DELETE', 'sessions/seen', undefined, as('viewer'));
    expect(refused).toMatchObject({ status: 403, body: { detail: expect.stringContaining("another user's") } });
    const own = await call('POST', 'sessions', { name: 'own', snapshots: ['monday'] }, as('viewer'));
    expect(own).toMatchObject({ status: 201, body: { sessionToken: expect.any(String) } });
    expect((await call('DELETE', 'sessions/own', undefined, as('viewer'))).status).toBe(204);
    expect((await call('GET', 'sessions/seen')).status).toBe(200);
  });

  it('are in the audit log with who opened and ended them, and no repeat', async () => {
    for (let time = 0; time < 2; time++)
      expect((await call('POST', 'sessions', { name: 'told', snapshots: ['monday'] }, as('viewer'))).status).toBe(201);
    expect((await call('DELETE', 'sessions/told', undefined, as('viewer'))).status).toBe(204);
    const entries = await house.query(
      `SELECT action, actor, after FROM trivet.audit_entry WHERE door = 'cbt' AND subject_name = 'told' ORDER BY seq`,
    );
    expect(entries).toEqual([
      { action: 'snapshot-session.create', actor: 'viewer', after: { snapshots: ['monday'] } },
      { action: 'snapshot-session.end', actor: 'viewer', after: null },
    ]);
  });

  it('of another tenant are not found, and its snapshots do not exist', async () => {
    await call('POST', 'sessions', { name: 'hers', snapshots: ['monday'] });
    for (const method of ['GET', 'DELETE'])
      expect((await call(method, 'sessions/hers', undefined, as('theirs'))).status).toBe(404);
    expect((await call('GET', 'sessions', undefined, as('theirs'))).body).toEqual([]);
    expect((await call('POST', 'sessions', { snapshots: ['monday'] }, as('theirs'))).body.error).toBe(
      'snapshot monday does not exist',
    );
  });

  it.each([
    [422, 'snapshots', {}],
    [422, 'snapshots', { snapshots: [] }],
    [422, 'snapshots', { snapshots: 'monday' }],
    [422, 'snapshots.0', { snapshots: [1] }],
    [422, 'ttlSeconds', { snapshots: ['monday'], ttlSeconds: 0 }],
    [422, 'ttlSeconds', { snapshots: ['monday'], ttlSeconds: '60' }],
    [422, 'name', { snapshots: ['monday'], name: 'Not A Name' }],
    [422, 'volumes', { snapshots: ['monday'], volumes: [] }],
    [422, 'request body', ['monday']],
    [422, 'request body', undefined],
  ])('are refused with %i and the field %s', async (status, field, body) => {
    expect(await call('POST', 'sessions', body)).toMatchObject({ status, body: { status, field } });
  });

  it('of a taken name are a conflict, broken JSON is a bad request', async () => {
    await call('POST', 'sessions', { name: 'taken', snapshots: ['monday'] });
    expect(await call('POST', 'sessions', { name: 'taken', snapshots: ['tuesday'] })).toMatchObject({
      status: 409,
      body: { title: 'Conflict' },
    });
    expect((await call('POST', 'sessions', '{')).status).toBe(400);
  });

  it('are unavailable while nobody can say who calls', async () => {
    logins.down = true;
    try {
      const answer = await call('GET', 'sessions');
      expect(answer.status).toBe(503);
      expect(answer.headers.get('retry-after')).toBe('2');
    } finally {
      logins.down = false;
    }
  });
});

it('the service configuration is at one place', async () => {
  expect(await call('GET', 'configuration')).toMatchObject({
    status: 200,
    body: {
      address: 'trivet.example.com:8745',
      caCert: Buffer.from(CA).toString('base64'),
      drivers: ['csi.hpe.com'],
    },
  });
  expect((await call('GET', 'configuration', undefined, {})).status).toBe(401);
});
