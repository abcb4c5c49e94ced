import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse, type Reply } from '#test/admin/admin-house';

/** What is refused before any route is asked, and how every answer is headed. */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
});
afterAll(() => house?.close());

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};

const expectProblem = (reply: Reply, status: number, code: string) =>
  expect(reply).toMatchObject({
    status,
    headers: { ...HEADERS, 'content-type': 'application/problem+json; charset=utf-8' },
    body: {
      type: `/docs/problems#${code}`,
      title: expect.any(String),
      status,
      code,
      detail: expect.any(String),
      instance: expect.stringMatching(/^urn:uuid:/),
      retryable: false,
      operation: null,
    },
  });

it.each(['/nothing', '', '/tenants/acme/nothing', '/tenants/acme/users/bob/more', '/%ff', '/tenants%2facme'])(
  'an unknown path %j is 404',
  async path => {
    expectProblem(await house.call(house.root.admin, 'GET', path), 404, 'not_found');
  },
);

it.each(['/session/', '//session', '/session?'])('%s is a path like that without', async path => {
  expect((await house.call(house.root.admin, 'GET', path)).status).toBe(200);
});

it.each([
  ['PUT', '/tenants', 'GET, HEAD, POST'],
  ['POST', '/tenants/acme/users/bob', 'DELETE, GET, HEAD, PATCH'],
  ['DELETE', '/session/password', 'POST'],
  ['DELETE', '/session//password/?a=b', 'POST'],
] as const)('%s %s is 405, and Allow says what there is', async (method, path, allow) => {
  const reply = await house.call(undefined, method, path);
  expectProblem(reply, 405, 'method_not_allowed');
  expect(reply.headers.allow).toBe(allow);
});

describe('a body', () => {
  const post = (options: Parameters<AdminHouse['call']>[3]) =>
    house.call(house.root.admin, 'POST', '/tenants', options);

  it('that is too large is 413', async () => {
    const body = { name: 'x', displayName: 'y'.repeat(1024 * 1024) };
    expectProblem(await post({ body }), 413, 'payload_too_large');
  });

  it.each(['application/x-www-form-urlencoded', 'text/plain', 'nonsense'])('of the type %s is 415', async type => {
    const reply = await post({ payload: 'name=x', headers: { 'content-type': type } });
    expectProblem(reply, 415, 'unsupported_media_type');
    expect(reply.body.detail).toContain('content-type: application/json');
  });

  it.each(['{"name":', '', '[', 'null'])('%j is 400', async payload => {
    expectProblem(await post({ payload }), 400, 'invalid_argument');
  });

  it('where none belongs is 400', async () => {
    const reply = await house.call(house.root.admin, 'DELETE', '/session', { body: { a: 1 } });
    expectProblem(reply, 400, 'invalid_argument');
  });
});

it('answers of success have the same headers', async () => {
  expect((await house.call(house.acme.viewer, 'GET', '/session')).headers).toMatchObject(HEADERS);
});
