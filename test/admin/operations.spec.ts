import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse, type HouseTenant, type Person } from '#test/admin/admin-house';

/** What people see of operations, by filters and in pages, each tenant of its own. */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
});
afterAll(() => house?.close());

interface Made {
  kind?: string;
  state?: string;
  resource?: string;
  name?: string;
  backend?: string;
  error?: object | null;
  attempt?: number;
  at?: Date;
  actor?: string;
  cancelled?: boolean;
}

/** Writes it as if it had been accepted then, and had come to this state. */
async function make(tenant: HouseTenant, made: Made = {}): Promise<string> {
  const at = made.at ?? new Date();
  const id = uuidv7(at.getTime());
  const state = made.state ?? 'succeeded';
  const ended = ['succeeded', 'failed', 'cancelled'].includes(state);
  await house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, error, attempt, actor, created_at, finished_at, cancel_requested_at)
     VALUES ($1, $2, $3, 'fast', $4, 'bucket', $5, $6, '{}', $7, $8, $9, $10, $11, $12, $13)`,
    [
      tenant.id,
      id,
      made.kind ?? 'bucket.create',
      tenant.backends[made.backend ?? 'fake'],
      made.resource ?? uuidv7(),
      made.name ?? 'photos',
      state,
      made.error ? JSON.stringify(made.error) : null,
      made.attempt ?? 1,
      made.actor ?? null,
      at,
      ended ? at : null,
      made.cancelled ? at : null,
    ],
  );
  return id;
}

const error = (kind: string) => ({ kind, message: `it was ${kind}`, retry: 'later' });
const idsOf = (body: { items: { id: string }[] }) => body.items.map(({ id }) => id);

async function list(who: Person, query: Record<string, string> = {}) {
  const reply = await house.call(who, 'GET', '/operations', { query });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return reply.body;
}

/** All pages of a list. */
async function all(who: Person, query: Record<string, string>): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page: { items: { id: string }[]; next: string | null } = await list(who, {
      ...query,
      ...(cursor === null ? {} : { cursor }),
    });
    ids.push(...idsOf(page));
    cursor = page.next;
  } while (cursor !== null);
  return ids;
}

describe('the list', () => {
  it('shows a tenant its own and the appliance all, with names', async () => {
    const tenant = await house.tenant('shown');
    const id = await make(tenant, { actor: 'ann@shown' });
    const own = await list(tenant.viewer);
    expect(own.items).toEqual([
      expect.objectContaining({
        id,
        tenant: 'shown',
        backend: 'fake',
        kind: 'bucket.create',
        actor: 'ann@shown',
        resource: expect.objectContaining({ kind: 'bucket', name: 'photos' }),
      }),
    ]);
    expect(idsOf(await list(house.beta.viewer))).not.toContain(id);
    expect(idsOf(await list(house.root.viewer))).toContain(id);
    expect(idsOf(await list(house.root.viewer, { tenant: 'shown' }))).toEqual([id]);
    const foreign = await house.call(house.beta.admin, 'GET', '/operations', { query: { tenant: 'shown' } });
    const unknown = await house.call(house.beta.admin, 'GET', '/operations', { query: { tenant: 'nobody' } });
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
    expect(foreign.body.code).toBe(unknown.body.code);
  });

  it('has each operation once, newest or oldest first, whatever is accepted meanwhile', async () => {
    const tenant = await house.tenant('paged');
    const made: string[] = [];
    for (let n = 0; n < 45; n++) made.push(await make(tenant, { at: new Date(Date.now() - 1_000_000 + n * 1_000) }));
    const first = await list(tenant.viewer, { limit: '10' });
    expect(idsOf(first)).toEqual(made.slice(-10).reverse());
    await make(tenant);
    const second = await list(tenant.viewer, { limit: '10', cursor: first.next });
    expect(idsOf(second)).toEqual(made.slice(-20, -10).reverse());
    expect((await all(tenant.viewer, { limit: '7' })).slice(1)).toEqual([...made].reverse());
    expect((await all(tenant.viewer, { limit: '7', sort: 'createdAt' })).slice(0, -1)).toEqual(made);
    expect(await all(house.root.viewer, { limit: '7', tenant: 'paged', kind: 'bucket' })).toHaveLength(46);
  });

  it('refuses a cursor of another list', async () => {
    const { next } = await list(house.root.viewer, { limit: '1' });
    const reply = await house.call(house.root.viewer, 'GET', '/operations', {
      query: { limit: '1', cursor: next, kind: 'volume' },
    });
    expect(reply.status).toBe(400);
    expect(reply.body.errors[0].pointer).toBe('/query/cursor');
  });

  describe('by filters', () => {
    let tenant: HouseTenant;
    const made: Record<string, string> = {};
    const resource = uuidv7();
    const day = 86_400_000;
    beforeAll(async () => {
      tenant = await house.tenant('filtered');
      made.done = await make(tenant, { at: new Date(Date.now() - 3 * day), resource, name: 'first' });
      made.failed = await make(tenant, { state: 'failed', error: error('not_found') });
      made.pending = await make(tenant, { state: 'pending', kind: 'bucket.delete', resource });
      made.running = await make(tenant, { state: 'running', kind: 'access.grant' });
      made.retried = await make(tenant, { state: 'pending', error: error('timeout'), attempt: 4 });
      made.young = await make(tenant, { state: 'pending', error: error('timeout'), attempt: 2 });
      made.parked = await make(tenant, { state: 'needs_attention', error: error('internal') });
      made.cancelled = await make(tenant, { state: 'cancelled', cancelled: true });
      made.bucketed = await make(tenant, { kind: 'bucketish.create' });
    });

    it.each<[Record<string, string>, string[]]>([
      [{ state: 'failed' }, ['failed']],
      [{ state: 'pending,running' }, ['pending', 'running', 'retried', 'young']],
      [{ state: 'needs_attention' }, ['parked']],
      [{ state: 'cancelled' }, ['cancelled']],
      [{ state: 'succeeded' }, ['done', 'bucketed']],
      [{ state: 'failed,cancelled' }, ['failed', 'cancelled']],
      [{ state: 'failed,needs_attention' }, ['failed', 'parked']],
      [{ kind: 'bucket.delete' }, ['pending']],
      [{ kind: 'bucket', state: 'pending' }, ['pending', 'retried', 'young']],
      [{ kind: 'access' }, ['running']],
      [{ kind: 'nothing' }, []],
      [{ stuck: 'true' }, ['retried', 'parked']],
      [{ stuck: 'false', state: 'pending,needs_attention' }, ['pending', 'young']],
      [{ error: 'timeout' }, ['retried', 'young']],
      [{ error: 'timeout', kind: 'bucket.delete' }, []],
      [{ resource: 'first' }, ['done']],
      [{ resource }, ['done', 'pending']],
      [{ resource, kind: 'bucket.create' }, ['done']],
      [{ until: new Date(Date.now() - day).toISOString() }, ['done']],
      [{ until: '1960-01-01T00:00:00Z' }, []],
      [{ until: '0000-01-01T00:00:00Z', kind: 'bucket' }, []],
      [{ since: '1960-01-01T00:00:00Z', state: 'cancelled' }, ['cancelled']],
      [{ backend: 'nowhere' }, []],
      [{ backend: 'fake', state: 'failed' }, ['failed']],
    ])('%o', async (query, expected) => {
      const wanted = expected.map(name => made[name]!).sort();
      expect((await all(tenant.viewer, query)).sort()).toEqual(wanted);
      // However small the pages, and whoever looks.
      expect((await all(house.root.viewer, { ...query, tenant: 'filtered', limit: '1' })).sort()).toEqual(wanted);
      const everywhere = await all(house.root.viewer, { ...query, limit: '50' });
      expect(everywhere.filter(id => Object.values(made).includes(id)).sort()).toEqual(wanted);
    });

    it('since a time', async () => {
      const query = { since: new Date(Date.now() - day).toISOString() };
      expect(await all(tenant.viewer, query)).not.toContain(made.done);
      expect(await all(tenant.viewer, query)).toHaveLength(8);
    });
  });
});

describe('one operation', () => {
  it('shows its steps, events, lease and what is before it in line, and nobody else’s', async () => {
    const { acme } = house;
    const resource = uuidv7();
    const first = await make(acme, { state: 'running', resource });
    const second = await make(acme, { state: 'pending', kind: 'bucket.delete', resource });
    await house.query(
      `UPDATE trivet.operation SET lease_owner = $2, lease_until = now() + interval '1 hour', fence = 7, step = 'create'
        WHERE id = $1`,
      [first, uuidv7()],
    );
    for (const [id, held, seq] of [
      [first, true, 1],
      [second, false, 2],
    ])
      await house.query(
        `INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, seq, priority, held)
         VALUES ($1, $2, $3, 'lifecycle', true, $4, 0, $5)`,
        [acme.id, id, resource, seq, held],
      );
    await house.query(
      `INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
       VALUES ($1, $2, 'accepted', '{}'), ($1, $2, 'step', '{"step": "create"}')`,
      [acme.id, first],
    );
    const { status, body } = await house.call(acme.viewer, 'GET', `/operations/${first}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id: first,
      steps: [
        { name: 'inspect', state: 'done' },
        { name: 'create', state: 'current' },
        { name: 'configure', state: 'waiting' },
      ],
      lease: { fence: '7' },
      waitsFor: [],
      actions: ['cancel', 'release'],
    });
    expect(body.events.map(({ type }: { type: string }) => type)).toEqual(['accepted', 'step']);
    expect(body.events[0].id).toMatch(/^\d+-\d+-o-\d+$/);
    // In their order also where their numbers become longer.
    await house.query(
      `INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
       SELECT $1, $2, 'retry', jsonb_build_object('n', n) FROM generate_series(1, 120) AS n`,
      [acme.id, first],
    );
    const longer = await house.call(acme.viewer, 'GET', `/operations/${first}`);
    expect(longer.body.events.slice(2).map(({ detail }: { detail: { n: number } }) => detail.n)).toEqual(
      Array.from({ length: 120 }, (_, n) => n + 1),
    );
    const waiting = await house.call(house.root.viewer, 'GET', `/operations/${second}`);
    expect(waiting.body.waitsFor).toEqual([{ operation: first, kind: 'bucket.create', slot: 'lifecycle' }]);
    expect(waiting.body.lease).toBeNull();
    const foreign = await house.call(house.beta.admin, 'GET', `/operations/${first}`);
    const unknown = await house.call(house.beta.admin, 'GET', `/operations/${uuidv7()}`);
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
  });

  it('says what a person can do about one that waits for him', async () => {
    const id = await make(house.acme, { state: 'needs_attention', kind: 'volume.delete', error: error('internal') });
    const { body } = await house.call(house.acme.viewer, 'GET', `/operations/${id}`);
    expect(body.actions).toEqual(['retry', 'resolve']);
    expect(body.advice).toMatch(/retry.*Resolve: it ends as failed; the volume is there again/s);
  });
});
