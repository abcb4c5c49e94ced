import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { problem } from '#admin/contract/common';
import { ROUTES } from '#admin/contract/index';
import type { Example, RouteContract } from '#admin/contract/route';
import { configureLogging } from '#platform/logging/log';
import type { AdminHouse, Reply } from '#test/admin/admin-house';
import { EventReader } from '#test/admin/event-reader';
import { ExampleThings } from '#test/admin/example-things';
import { fill, pathWith } from '#test/admin/tenant-things';
import { TestAuthenticator } from '#test/support/authenticator';
import { TestProvider } from '#test/support/identity-provider';

/**
 * What the document shows as an example is what happens: each is called in the order of the contract, by an administrator
 * of the appliance, against a gateway and a worker with fake backends. The answer has the documented status, and a body
 * with every field that its form has and no other.
 */
let house: AdminHouse;
let things: ExampleThings;
let provider: TestProvider;

beforeAll(async () => {
  configureLogging({ level: 'error' });
  provider = await TestProvider.start('http://localhost:8740');
  things = await ExampleThings.create(provider.env);
  house = things.house;
}, 60_000);
afterAll(async () => {
  await house?.close();
  await provider?.close();
});

const examples = ROUTES.flatMap(route =>
  route.examples.map(example => [route.id, example.name, route, example] as const),
);

describe('an example', () => {
  it.each(examples)('%s: %s', async (_id, _name, route, example) => {
    const reply = await run(route, example);
    const expected: number[] = [route.status, ...(route.long ? [202] : [])];
    expect(expected, `${reply.status} ${JSON.stringify(reply.body)}`).toContain(reply.status);
    if (reply.status === 204 || !route.reply) return expect(reply.body).toBe('');
    const bodies = Array.isArray(reply.body) ? reply.body : [reply.body];
    expect(bodies.length).toBeGreaterThan(0);
    for (const body of bodies) expect(strictly(route.reply, body)).toEqual([]);
    if (route.etag) expect(reply.headers.etag, 'etag').toMatch(/^"[^"]+"$/);
    if (route.status === 201 && route.method === 'POST') {
      const created = await house.call(house.root.admin, 'GET', String(reply.headers.location).replace('/api/v1', ''));
      expect([200, 404, 405], `location ${reply.headers.location}`).toContain(created.status);
    }
  });

  it('is there for each route', () => {
    expect(ROUTES.filter(({ examples: shown }) => shown.length === 0)).toEqual([]);
  });
});

async function run(route: RouteContract, example: Example): Promise<Reply> {
  if (route.id === 'finishProviderLogin') return loginByProvider(route);
  if (route.id === 'addPasskey' || route.id === 'loginByPasskey') return byAuthenticator(route, example);
  const names = new Set([...JSON.stringify(example).matchAll(/\{(\w+)\}/g)].map(([, name]) => name!));
  const made: Record<string, string> = {};
  for (const name of names) made[name] = await things.make(name, route);
  const { params = {}, query = {}, body } = fill(example, made);
  const path = pathWith(route, params);
  const headers: Record<string, string> = {};
  if (route.etag === 'needs') headers['if-match'] = await etagOf(route, path);
  if (route.streams === 'text/event-stream') return firstEvents(path);
  const who = route.access.scope === 'public' ? undefined : house.root.admin;
  const reply = await house.call(who, route.method, path, { query, headers, ...(body === undefined ? {} : { body }) });
  if (!route.streams || reply.status !== route.status) return reply;
  const lines = String(reply.body).split('\n').filter(Boolean);
  return { ...reply, body: lines.map(line => JSON.parse(line)) };
}

const device = new TestAuthenticator();

/** What the example has, as an authenticator makes it. Its login is an example before its addition. */
async function byAuthenticator({ method, path, id }: RouteContract, { body }: Example): Promise<Reply> {
  const { admin } = house.root;
  const origin = provider.publicUrl;
  const asked = async (at: string, given?: object) =>
    (await house.call(admin, 'POST', at, given ? { body: given } : {})).body.options.challenge as string;
  const add = async () => {
    const challenge = await asked('/session/passkeys/options', { password: admin.password });
    const made = { name: (body as { name?: string }).name ?? 'first', ...device.make({ challenge, origin }) };
    return house.call(admin, 'POST', '/session/passkeys', { body: made });
  };
  if (id === 'addPasskey') {
    await house.query('DELETE FROM trivet.passkey');
    return add();
  }
  expect((await add()).status).toBe(200);
  const proof = device.prove({ challenge: await asked('/session/passkey/options'), origin });
  return house.call(undefined, method, path, { body: proof });
}

/** What an event stream tells of one bucket that is made meanwhile. */
async function firstEvents(path: string): Promise<Reply> {
  await house.app.listen(0, '127.0.0.1');
  const { port } = house.app.getHttpServer().address() as AddressInfo;
  const authorization = `Bearer ${house.root.admin.token}`;
  const reader = await new EventReader(`http://127.0.0.1:${port}/api/v1${path}`, { authorization }).connect();
  await things.make('bucket', { id: 'events', method: 'GET' });
  await reader.seen(2);
  await reader.disconnect();
  return { status: reader.status, headers: {}, body: reader.messages.map(({ data }) => data) };
}

/** Its answer is none without the cookie of its beginning. */
async function loginByProvider({ method, path }: RouteContract): Promise<Reply> {
  const begun = await house.call(undefined, 'POST', '/session/provider');
  provider.people['example-1'] = { preferred_username: house.root.viewer.username };
  const answer = await provider.logIn(begun.body.location, 'example-1');
  const cookie = String(begun.headers['set-cookie']).split(';', 1)[0]!;
  return house.call(undefined, method, path, { body: { answer }, headers: { cookie } });
}

/** As a client gets it: by reading the object first. */
async function etagOf(route: RouteContract, path: string): Promise<string> {
  const read = ROUTES.find(other => other.method === 'GET' && other.path === route.path);
  expect(read, `${route.id} needs an ETag that no route gives`).toBeDefined();
  const reply = await house.call(house.root.admin, 'GET', path);
  expect(reply.headers.etag, `${read!.id} ${JSON.stringify(reply.body)}`).toBeDefined();
  return String(reply.headers.etag);
}

/** What the form has against a body, fields that nobody declared included: the form itself would only leave them out. */
function strictly(form: z.ZodType, body: unknown): string[] {
  const parsed = form.safeParse(body);
  if (!parsed.success) return [z.prettifyError(parsed.error)];
  return surplus(body, parsed.data, '');
}

function surplus(sent: unknown, declared: unknown, at: string): string[] {
  if (typeof sent !== 'object' || sent === null)
    return Object.is(sent, declared) ? [] : [`${at} is changed by its form`];
  return Object.entries(sent).flatMap(([key, value]) =>
    Object.hasOwn(declared as object, key)
      ? surplus(value, (declared as Record<string, unknown>)[key], `${at}/${key}`)
      : [`${at}/${key} is not declared`],
  );
}

it('a refusal has the documented form', async () => {
  const reply = await house.call(house.root.admin, 'GET', '/tenants/no-such');
  expect(reply.status).toBe(404);
  expect(strictly(problem, reply.body)).toEqual([]);
});
