import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '#admin/contract/index';
import type { RouteContract } from '#admin/contract/route';
import { configureLogging } from '#platform/logging/log';
import { AdminHouse, type CallOptions, type HouseTenant, type Person, type Reply } from '#test/admin/admin-house';
import { callRoute, guarded, inPath, isEvents, named, PLACEHOLDERS, people, suffices } from '#test/admin/route-calls';
import { canariesOf, guessed, type Things, thingsOf } from '#test/admin/tenant-things';

/**
 * Promise P7 over every route of the contract: as each role of tenant acme, against what tenant beta has. The measure is
 * that an answer about beta's object equals, word for word, the answer about an object that nobody has. Nothing here may
 * succeed in changing anything: at the end beta has what it had.
 *
 * The same for the other doors:
 *   COSI   every RPC: test/tenancy/two-doors.spec.ts
 *   CSP    every route: test/tenancy/two-doors.spec.ts; two backends of a tenant: test/csp/csp-server.spec.ts
 *   CBT    by socket and by login: test/tenancy/two-doors.spec.ts; by a session's token: test/cbt/cbt-services.spec.ts;
 *          the sessions: test/cbt-sessions/{sessions,rest}.spec.ts; the engine's answers: test/changes/questions.spec.ts
 *   events and their filters: test/admin/events.spec.ts
 *   SQL    as the application role: test/tenancy/row-security.spec.ts
 */
let house: AdminHouse;
let acme: HouseTenant;
let beta: HouseTenant;
/** Of acme, of beta, and of nobody. */
let mine: Things;
let theirs: Things;
let nobodys: Things;
let canaries: string[];
let before: Record<string, string>;

beforeAll(async () => {
  configureLogging({ level: 'error' });
  house = await AdminHouse.create({ block: 'fake' });
  ({ acme, beta } = house);
  mine = { ...PLACEHOLDERS, ...(await thingsOf(house, acme)) };
  theirs = { ...PLACEHOLDERS, ...(await thingsOf(house, beta)) };
  nobodys = { ...PLACEHOLDERS, ...guessed('no-such-tenant') };
  canaries = await canariesOf(house, beta);
  before = await contentsOf(beta);
}, 60_000);
afterAll(() => house?.close());

const changes = ({ method }: RouteContract): boolean => method !== 'GET';
const call = (route: RouteContract, who: Person, things: Things, options?: CallOptions): Promise<Reply> =>
  callRoute(house, route, who, things, options);

/** Without what differs from call to call, and with what was sent made the same. */
function shown({ status, body }: Reply, sent: Things): string {
  let text = JSON.stringify({ status, ...(typeof body === 'object' ? { ...body, instance: '' } : { body }) });
  const values = Object.entries(sent).sort(([, a], [, b]) => b.length - a.length);
  for (const [name, value] of values) text = text.replaceAll(value, `{${name}}`);
  return text;
}

/** Looks for beta's names and ids in what acme was answered, but for those that it had sent itself. */
function expectNothingOfBeta(reply: Reply, sent: unknown = ''): void {
  const said = JSON.stringify(sent);
  const text = JSON.stringify(reply.body);
  expect(canaries.filter(canary => text.includes(canary) && !said.includes(canary))).toEqual([]);
}

/** Everything of a tenant, by table. Uses of tokens are noted at some time or other. */
async function contentsOf({ id }: HouseTenant): Promise<Record<string, string>> {
  const tables = await house.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id'
      WHERE c.relnamespace = 'trivet'::regnamespace AND c.relkind = 'r' AND c.relname <> 'admin_token' ORDER BY 1`,
  );
  const contents: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await house.query<{ all: string }>(
      `SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') AS all FROM trivet.${name} t WHERE tenant_id = $1`,
      [id],
    );
    contents[name] = row!.all;
  }
  return contents;
}

describe('a route of a tenant', () => {
  const routes = guarded.filter(({ access }) => access.scope === 'tenant');

  it.each(named(routes))('%s of another tenant is the one of no tenant', async (_, route) => {
    for (const who of people(acme)) {
      const other = await call(route, who, theirs);
      expect(other, who.role).toMatchObject({ status: 404, body: { code: 'not_found' } });
      expect(shown(other, theirs)).toBe(shown(await call(route, who, nobodys), nobodys));
      expectNothingOfBeta(other, theirs);
    }
  });

  it.each(named(routes.filter(route => inPath(route).length > 1)))(
    '%s of another tenant’s object below one’s own path is the one of no object',
    async (_, route) => {
      for (const who of people(acme)) {
        const other = await call(route, who, { ...theirs, tenant: 'acme' });
        const none = { ...nobodys, tenant: 'acme' };
        expect(other.status, `${who.role} ${JSON.stringify(other.body)}`).toBe(suffices(who.role, route) ? 404 : 403);
        expect(shown(other, { ...theirs, tenant: 'acme' })).toBe(shown(await call(route, who, none), none));
      }
      const root = await call(route, house.root.admin, { ...theirs, tenant: 'acme' });
      expect(root.status, JSON.stringify(root.body)).toBe(404);
    },
  );

  it.each(named(routes))('%s is refused to a role that does not suffice, whatever is there', async (_, route) => {
    for (const who of [...people(acme), ...people(house.root)].filter(({ role }) => !suffices(role, route))) {
      const own = await call(route, who, mine);
      expect(own, who.username).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
      const none = { ...nobodys, tenant: 'acme' };
      expect(shown(own, mine)).toBe(shown(await call(route, who, none), none));
    }
  });
});

describe('a route of the appliance', () => {
  it.each(named(guarded.filter(({ access }) => access.scope === 'appliance')))(
    '%s is refused to users of a tenant, and tells nothing of another one',
    async (_, route) => {
      for (const who of people(acme)) {
        expect(await call(route, who, mine), who.role).toMatchObject({
          status: 403,
          body: { code: 'permission_denied' },
        });
        if (!inPath(route).includes('tenant')) continue;
        const other = await call(route, who, theirs);
        expect(other, who.role).toMatchObject({ status: 404, body: { code: 'not_found' } });
        expect(shown(other, theirs)).toBe(shown(await call(route, who, nobodys), nobodys));
      }
      for (const who of people(house.root).filter(({ role }) => !suffices(role, route)))
        expect((await call(route, who, mine)).status, who.role).toBe(403);
    },
  );
});

describe('a route of all', () => {
  const routes = guarded.filter(({ access }) => access.scope === 'any');

  it.each(named(routes.filter(route => inPath(route).length > 0)))(
    '%s of another tenant’s object is the one of no object',
    async (_, route) => {
      for (const who of people(acme)) {
        const other = await call(route, who, theirs);
        expect(other.status, `${who.role} ${JSON.stringify(other.body)}`).toBe(suffices(who.role, route) ? 404 : 403);
        expect(shown(other, theirs)).toBe(shown(await call(route, who, nobodys), nobodys));
      }
    },
  );

  it.each(named(routes))('%s is refused to a role that does not suffice', async (_, route) => {
    for (const who of [...people(acme), ...people(house.root)].filter(({ role }) => !suffices(role, route)))
      expect((await call(route, who, mine)).status, who.username).toBe(403);
  });
});

describe('what is read', () => {
  const reads = guarded.filter(route => !changes(route) && !isEvents(route) && route.access.scope !== 'appliance');

  it.each(named(reads))('%s shows its own tenant, and nothing of another one', async (id, route) => {
    // Rows that nobody has made by an operation have no blocks to be asked about.
    const answers = id === 'getChangeMap' ? [200, 409, 503] : [200];
    for (const who of people(acme).filter(({ role }) => suffices(role, route))) {
      const reply = await call(route, who, mine);
      expect(answers, JSON.stringify(reply.body)).toContain(reply.status);
      expectNothingOfBeta(reply);
    }
  });

  const lists = reads.filter(({ id }) => id.startsWith('list') && id !== 'listTenants');
  it.each(named(lists))('%s has something of its own tenant, so that this means something', async (_, route) => {
    const { body } = await call(route, acme.viewer, mine, { query: route.query?.shape.limit ? { limit: '200' } : {} });
    expect(body.items.length).toBeGreaterThan(0);
    expect(JSON.stringify(body)).toMatch(/only-acme-|acme/);
  });

  /** What a filter is given to name something of that tenant. */
  const filters = (things: Things, tenant: string): Record<string, string[]> => ({
    tenant: [things.tenant!],
    backend: [things.backend!],
    related: [things.volume!, things.host!],
    resource: [things.bucket!, things.volume!, `only-${tenant}-resource`],
    volume: [things.volume!],
    bucket: [things.bucket!],
    host: [things.host!],
    user: [things.user!],
    operation: [things.operation!],
    base: [things.snapshot!],
    actor: [`only-${tenant}-actor`],
    subject: [`only-${tenant}-subject`],
    search: [`only-${tenant}`],
    q: [`only-${tenant}`, things.volume!, things.snapshot!, things.bucket!, things.host!, things.operation!],
    kind: [`only-${tenant}`],
    action: [`only-${tenant}`],
    error: [`only-${tenant}-error`],
  });
  const OTHERS = new Set([
    'limit',
    'cursor',
    'sort',
    'state',
    'since',
    'until',
    'stuck',
    'condition',
    'cells',
    'force',
    'drain',
    'confirm',
    'rule',
    'severity',
    'authentication',
    'month',
    'days',
    'by',
    'step',
    'hours',
    'list',
    'exact',
  ]);

  it.each(named(reads.filter(({ query }) => query)))(
    '%s finds nothing of another tenant by a filter',
    async (_, route) => {
      for (const name of Object.keys(route.query!.shape).filter(key => !OTHERS.has(key))) {
        const of = filters(theirs, 'beta')[name];
        expect(of, `give the filter ${name} something to name`).toBeDefined();
        for (const [n, value] of of!.entries()) {
          const reply = await call(route, acme.admin, mine, { query: { [name]: value } });
          expectNothingOfBeta(reply, value);
          if (reply.body?.items) expect(reply.body.items, `${name}=${value}`).toEqual([]);
          const none = filters(nobodys, 'nobody')[name]![n]!;
          const unknown = await call(route, acme.admin, mine, { query: { [name]: none } });
          expect(shown(reply, { value })).toBe(shown(unknown, { value: none }));
        }
      }
    },
  );

  it.each(named(reads.filter(({ query }) => query?.shape.cursor)))(
    '%s is not gone on with by another tenant’s cursor',
    async (_, route) => {
      const query = { limit: '1' };
      const { body } = await call(route, beta.admin, { ...theirs }, { query });
      if (!body.next) return;
      const reply = await call(route, acme.admin, mine, { query: { ...query, cursor: body.next } });
      expect([200, 400]).toContain(reply.status);
      expectNothingOfBeta(reply);
    },
  );
});

/** Changes of acme's own that name something of beta's in their body. */
describe('a body that names something of another tenant', () => {
  const NAMED: readonly [id: string, body: (things: Things) => object][] = [
    ['createToken', ({ user }) => ({ name: 'x', user, role: 'viewer' })],
    ['createBucket', ({ backend }) => ({ name: 'x', backend })],
    ['issueAccess', ({ bucket }) => ({ name: 'x', buckets: [{ bucket, mode: 'read_only' }] })],
    ['createPublication', ({ volume, host }) => ({ volume, host })],
    ['createSnapshot', ({ volume }) => ({ volume, name: 'x' })],
    ['createVolume', ({ backend }) => ({ name: 'x', size: '1048576', backend })],
    ['createVolume', ({ volume }) => ({ name: 'x', source: { volume } })],
    ['createVolume', ({ snapshot }) => ({ name: 'x', source: { snapshot } })],
    ['createVolume', ({ template }) => ({ name: 'x', size: '1048576', protectionTemplate: template })],
    ['changeVolume', ({ template }) => ({ protectionTemplate: template })],
    ['createEndpoint', ({ backend }) => ({ name: 'x', protocol: 'cosi', backend })],
    ['createBackend', ({ backend }) => ({ name: 'x', share: backend })],
  ];
  it.each(NAMED)('%s is refused as if it did not exist', async (id, body) => {
    const route = ROUTES.find(candidate => candidate.id === id)!;
    const who = route.access.scope === 'appliance' ? house.root.admin : acme.admin;
    const reply = await call(route, who, mine, { body: body(theirs) });
    expect([400, 404, 409], JSON.stringify(reply.body)).toContain(reply.status);
    // Both have one of that name.
    const { objectBackend: _, ...others } = theirs;
    expect(shown(reply, others)).toBe(shown(await call(route, who, mine, { body: body(nobodys) }), nobodys));
    if (who !== house.root.admin) expectNothingOfBeta(reply, body(theirs));
  });
});

it('has changed nothing of the other tenant', async () => {
  expect(await contentsOf(beta)).toEqual(before);
  const [row] = await house.query<{ state: string }>("SELECT state FROM trivet.tenant WHERE name = 'beta'");
  expect(row!.state).toBe('active');
});

it('keeps the Idempotency-Keys of tenants apart', async () => {
  const headers = { 'idempotency-key': 'the-same-for-both' };
  const route = ROUTES.find(({ id }) => id === 'createToken')!;
  const body = { name: 'by-key', role: 'viewer' };
  const made = await Promise.all([
    call(route, acme.admin, mine, { body, headers }),
    call(route, beta.admin, theirs, { body, headers }),
  ]);
  expect(made.map(({ status }) => status)).toEqual([201, 201]);
  expect(made.map(({ headers: answered }) => answered['idempotency-replayed'])).toEqual([undefined, undefined]);
  expect(made[0]!.body.token).not.toBe(made[1]!.body.token);
});
