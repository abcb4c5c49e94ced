import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '#admin/contract/index';
import type { RouteContract } from '#admin/contract/route';
import { configureLogging } from '#platform/logging/log';
import { AdminHouse, type CallOptions, type HouseTenant, type Person, type Reply } from '#test/admin/admin-house';
import { callRoute, guarded, inPath, named, PLACEHOLDERS, people } from '#test/admin/route-calls';
import { fill, guessed, pathWith, type Things, thingsOf } from '#test/admin/tenant-things';

/** What every route refuses in the same way, before it does anything. */
let house: AdminHouse;
let gamma: HouseTenant;
/** Of acme. */
let mine: Things;
/** Of beta: as old as acme's, so each has the version that acme's has. */
let theirs: Things;
let nobodys: Things;

beforeAll(async () => {
  configureLogging({ level: 'error' });
  house = await AdminHouse.create({ block: 'fake' });
  gamma = await house.tenant('gamma');
  await house.query("UPDATE trivet.tenant SET state = 'suspended' WHERE name = 'gamma'");
  mine = { ...PLACEHOLDERS, ...(await thingsOf(house, house.acme)), receiver: await receiver('one') };
  theirs = { ...PLACEHOLDERS, ...(await thingsOf(house, house.beta)), receiver: await receiver('other') };
  nobodys = { ...PLACEHOLDERS, ...guessed('no-such-tenant') };
}, 60_000);
afterAll(() => house?.close());

/** Of the appliance, and disabled: nobody is told anything. */
async function receiver(name: string): Promise<string> {
  const target = { kind: 'slack', url: `https://hooks.slack.com/services/${name}` };
  const { status, body } = await house.call(house.root.admin, 'POST', '/receivers', {
    body: { name, target, enabled: false },
  });
  expect(status, JSON.stringify(body)).toBe(201);
  return name;
}

const call = (
  route: RouteContract,
  who: Person | string | undefined,
  things: Things,
  options?: CallOptions,
): Promise<Reply> => callRoute(house, route, who, things, options);

/** Of oneself, and by a password or what was begun with one: of a suspended tenant that opens nothing. */
const STEP_UPS = new Set(
  'beginTotp confirmTotp renewRecoveryCodes removeTotp beginPasskey addPasskey removePasskey'.split(' '),
);

describe('a call', () => {
  it.each(named(guarded))('%s without a login, or with a wrong one, is 401', async (_, route) => {
    for (const token of [undefined, '', 'x', `trivet_${'A'.repeat(43)}`, house.acme.admin.tokenId]) {
      const reply = await call(route, token, mine);
      expect(reply, token).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
      expect(reply.headers['www-authenticate']).toContain('Bearer');
    }
  });

  it.each(named(guarded))('%s by a suspended tenant is 403, but for asking who one is', async (_, route) => {
    for (const who of people(gamma)) {
      if (route.id === 'changePassword') continue;
      const reply = await call(route, who, { ...nobodys, tenant: 'gamma' });
      if (STEP_UPS.has(route.id)) {
        expect([403, 409], `${reply.status}`).toContain(reply.status);
        continue;
      }
      // It may look at what is its own, and has nothing of that id.
      if (route.access.scope === 'self' && inPath(route).length > 0) expect(reply.status).toBe(404);
      else if (route.access.scope === 'self') expect(reply.status).toBeLessThan(300);
      else expect(reply, who.role).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
    }
  });

  it.each(named(ROUTES.filter(({ body }) => body)))(
    '%s with an unknown field is 400 and says which',
    async (_, route) => {
      const example = fill(route.examples[0].body, mine) as object;
      for (const unknown of ['unknown', 'a/b~c', '__proto__', 'constructor']) {
        const payload = JSON.stringify(example).replace(
          /^\{/,
          `{${JSON.stringify(unknown)}:1${Object.keys(example).length > 0 ? ',' : ''}`,
        );
        const reply = await call(route, house.root.admin, mine, { payload });
        expect(reply, `${unknown} ${JSON.stringify(reply.body)}`).toMatchObject({
          status: 400,
          body: { code: 'invalid_argument' },
        });
        const pointer = `/body/${unknown.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        expect(reply.body.errors.map((error: { pointer: string }) => error.pointer)).toContain(pointer);
      }
    },
  );

  it.each(named(ROUTES.filter(({ body }) => body)))('%s says what is wrong in our words', async (_, route) => {
    const example = fill(route.examples[0].body, mine) as Record<string, unknown>;
    const wrong = [
      [],
      'text',
      {},
      ...Object.keys(example).flatMap(key => [
        { ...example, [key]: { a: [] } },
        { ...example, [key]: '' },
      ]),
    ];
    for (const body of wrong) {
      const reply = await call(route, house.root.admin, mine, { body });
      const said = JSON.stringify(reply.body.errors ?? reply.body.detail ?? '');
      expect(said, JSON.stringify(body)).not.toMatch(/Invalid|received|Too (small|big)|ZodError/);
    }
  });

  it.each(named(ROUTES))('%s with an unknown parameter is 400 and says which', async (_, route) => {
    const reply = await call(route, house.root.admin, mine, { query: { unknown: '1' } });
    expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
    expect(reply.body.errors).toContainEqual({ pointer: '/query/unknown', message: expect.any(String) });
  });

  it.each(named(ROUTES.filter(({ etag }) => etag === 'needs')))(
    '%s without If-Match is 428, with another one 412, and changes nothing',
    async (_, route) => {
      const body = fill(route.examples[0].body, mine);
      const options = body === undefined ? {} : { body };
      const path = pathWith(route, mine);
      const without = await house.call(house.root.admin, route.method, path, options);
      expect(without, JSON.stringify(without.body)).toMatchObject({
        status: 428,
        body: { code: 'precondition_required', errors: [{ pointer: '/header/if-match' }] },
      });
      for (const ifMatch of ['"v0"', '"stale"', 'v1', '""']) {
        const stale = await house.call(house.root.admin, route.method, path, { ...options, ifMatch });
        expect(stale, JSON.stringify(stale.body)).toMatchObject({ status: 412, body: { code: 'precondition_failed' } });
      }
    },
  );

  it.each(named(ROUTES.filter(({ etag }) => etag === 'needs')))(
    '%s with the ETag of another object of the same version is 412',
    async (_, route) => {
      const read = ROUTES.find(({ method, path }) => method === 'GET' && path === route.path)!;
      const of = async (things: Things) => String((await call(read, house.root.admin, things)).headers.etag);
      const ifMatch = await of(theirs);
      expect([ifMatch, await of(mine)]).toEqual([
        expect.stringMatching(/^"[\w-]+\.[\w-]+\.[\w-]+"$/),
        expect.not.stringMatching(ifMatch),
      ]);
      const body = fill(route.examples[0].body, mine);
      const options = { ...(body === undefined ? {} : { body }), ifMatch };
      const reply = await house.call(house.root.admin, route.method, pathWith(route, mine), options);
      expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 412, body: { code: 'precondition_failed' } });
    },
  );

  it.each(named(ROUTES.filter(({ method, etag }) => method === 'GET' && etag)))(
    '%s with If-None-Match is 304 while it shows the same',
    async (_, route) => {
      const ask = (...tags: string[]) =>
        call(route, house.root.admin, mine, tags.length ? { headers: { 'if-none-match': tags.join(', ') } } : {});
      const whole = await ask();
      const etag = String(whole.headers.etag);
      for (const tags of [[etag], [`W/${etag}`], ['"other"', etag], ['*']])
        expect(await ask(...tags), tags.join()).toMatchObject({ status: 304, headers: { etag }, body: '' });
      for (const other of [
        '"other"',
        etag.replace(/\.[^.]*"$/, '.x"'),
        String((await call(route, house.root.admin, theirs)).headers.etag),
      ])
        expect(await ask(other), other).toMatchObject({ status: 200, body: whole.body });
    },
  );

  it.each(named(ROUTES.filter(({ query }) => query?.shape.limit)))(
    '%s with a number that is not in digits is 400 and says which',
    async (_, route) => {
      for (const limit of ['0x10', '1e1', ' 5 ', '+5', '5.0', '']) {
        const reply = await call(route, house.root.admin, mine, { query: { limit } });
        expect(reply, `${limit} ${JSON.stringify(reply.body)}`).toMatchObject({ status: 400 });
        expect(reply.body.errors.map((error: { pointer: string }) => error.pointer)).toContain('/query/limit');
      }
    },
  );

  it('with text that cannot be stored, or nested without end, is 400 and says where', async () => {
    const pointerOf = async (displayName: string) => {
      const payload = `{"name": "unstorable", "displayName": ${displayName}}`;
      const reply = await house.call(house.root.admin, 'POST', '/tenants', { payload });
      return [reply.status, reply.body.errors?.[0].pointer];
    };
    expect(await pointerOf('"a\\u0000b"')).toEqual([400, '/body/displayName']);
    expect(await pointerOf('"half a pair: \\ud800"')).toEqual([400, '/body/displayName']);
    expect(await pointerOf(`${'['.repeat(10_000)}${']'.repeat(10_000)}`)).toEqual([400, '/body']);
    expect(await pointerOf('"fine"')).toEqual([201, undefined]);
    const path = await house.call(house.root.admin, 'GET', '/tenants/acme/users/a%00b');
    expect([path.status, path.body.errors[0].pointer]).toEqual([400, '/path/user']);
  });
});
