import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { event } from '#admin/contract/overview';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse, type HouseTenant, type Person } from '#test/admin/admin-house';
import { EventReader, type Message } from '#test/admin/event-reader';
import { until } from '#test/support/parts';

/** The stream of events: nothing is missed and nothing comes twice, whoever commits late and whoever was away. */
let house: AdminHouse;
let url: string;
const readers: EventReader[] = [];
const clients: pg.Client[] = [];
beforeAll(async () => {
  house = await AdminHouse.create();
  await house.app.listen(0, '127.0.0.1');
  url = await house.app.getUrl();
});
afterEach(async () => {
  for (const reader of readers.splice(0)) await reader.disconnect();
  for (const client of clients.splice(0)) await client.end();
});
afterAll(() => house?.close());

function reader(who: Person | string, query = ''): EventReader {
  const token = typeof who === 'string' ? who : who.token;
  const made = new EventReader(`${url}/api/v1/events${query}`, { authorization: `Bearer ${token}` });
  readers.push(made);
  return made;
}

async function session(): Promise<pg.Client> {
  const client = new pg.Client(house.appliance.database.superuserUrl);
  await client.connect();
  clients.push(client);
  return client;
}

/** An operation and its first event, in whatever transaction the client has open. */
async function accept(client: Pick<pg.Client, 'query'>, tenant: HouseTenant): Promise<string> {
  const id = uuidv7();
  await client.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, finished_at)
     VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, 'photos', '{}', 'succeeded', now())`,
    [tenant.id, id, tenant.backends.fake, uuidv7()],
  );
  await client.query("INSERT INTO trivet.operation_event (tenant_id, operation_id, type) VALUES ($1, $2, 'accepted')", [
    tenant.id,
    id,
  ]);
  return id;
}

const operationsOf = (messages: readonly Message[]): string[] =>
  messages.flatMap(({ data }) => data.operation?.id ?? []);

describe('nothing is missed, and nothing comes twice', () => {
  it('when one has drawn its numbers before another and commits after it', async () => {
    const listener = await reader(house.root.viewer).connect();
    const [early, late] = [await session(), await session()];
    await early.query('BEGIN');
    const first = await accept(early, house.acme);
    const second = await accept(late, house.acme);
    // Its own transaction has committed; a reader who went by the numbers would be past the first one by now.
    await accept(late, house.acme);
    await early.query('COMMIT');
    await listener.seen(3);
    expect(operationsOf(listener.messages).slice(0, 2)).toEqual([first, second]);
    expect(new Set(operationsOf(listener.messages)).size).toBe(3);
    for (const { data } of listener.messages) expect(() => event.parse(data)).not.toThrow();
  });

  it('for who was away while 500 operations committed in 8 transactions at a time, some of them late', async () => {
    const listener = await reader(house.root.viewer).connect();
    await accept(await session(), house.acme);
    await listener.seen(1);
    await listener.disconnect();
    const made: string[] = [];
    let left = 500;
    const work = async (n: number) => {
      const client = await session();
      while (left-- > 0) {
        await client.query('BEGIN');
        made.push(await accept(client, left % 2 ? house.acme : house.beta));
        if (left % (8 + n) === 0) await delay(Math.random() * 20);
        await client.query('COMMIT');
      }
    };
    const all = Promise.all(Array.from({ length: 8 }, (_, n) => work(n)));
    // Comes and goes while they commit.
    for (const count of [50, 150, 300]) {
      await listener.connect();
      await listener.seen(1 + count);
      await listener.disconnect();
    }
    await all;
    await listener.connect();
    await listener.seen(501);
    const told = operationsOf(listener.messages).slice(1);
    expect(told).toHaveLength(500);
    expect(new Set(told)).toEqual(new Set(made));
    // Whoever reads all of it again from the beginning sees the same in the same order.
    const again = reader(house.root.viewer);
    again.lastEventId = listener.messages[0]!.id;
    await again.connect();
    await again.seen(500);
    expect(again.messages.map(({ id }) => id)).toEqual(listener.messages.slice(1).map(({ id }) => id));
  });

  it('for who joins in the middle of a crowd', async () => {
    const listener = await reader(house.root.viewer).connect();
    const client = await session();
    let busy = true;
    const made: string[] = [];
    const writing = (async () => {
      while (busy) made.push(await accept(client, house.acme));
    })();
    await listener.seen(20);
    const joined = reader(house.root.viewer);
    joined.lastEventId = listener.messages[0]!.id;
    await joined.connect();
    await joined.seen(100);
    busy = false;
    await writing;
    await listener.seen(made.length);
    await joined.seen(made.length - 1);
    expect(operationsOf(listener.messages)).toEqual(made);
    expect(operationsOf(joined.messages)).toEqual(made.slice(1));
  });

  it('of operations and of the audit log, in one order', async () => {
    const listener = await reader(house.root.viewer).connect();
    const { status } = await house.call(house.root.admin, 'PATCH', '/queues/copy', { body: { paused: false } });
    expect(status).toBe(200);
    const id = await accept(await session(), house.acme);
    await listener.seen(2);
    expect(listener.messages.map(message => message.event)).toEqual(['audit', 'operation']);
    expect(listener.messages[0]!.data).toMatchObject({ type: 'audit', audit: { action: 'queue.resume' } });
    const { body } = await house.call(house.root.viewer, 'GET', `/operations/${id}`);
    expect(body.events[0].id).toBe(listener.messages[1]!.id);
    // A place between the two.
    const resumed = reader(house.root.viewer);
    resumed.lastEventId = listener.messages[0]!.id;
    await resumed.connect();
    await resumed.seen(1);
    expect(operationsOf(resumed.messages)).toEqual([id]);
  });
});

describe('who is told what', () => {
  it('a tenant its own, the appliance everything, and less by a filter', async () => {
    const client = await session();
    const first = await accept(client, house.acme);
    const [acme, beta, root, filtered, one] = await Promise.all([
      reader(house.acme.viewer).connect(),
      reader(house.beta.viewer).connect(),
      reader(house.root.viewer).connect(),
      reader(house.root.viewer, '?tenant=beta').connect(),
      reader(house.root.viewer, `?operation=${first}`).connect(),
    ]);
    const own = await accept(client, house.acme);
    const other = await accept(client, house.beta);
    await client.query(
      "INSERT INTO trivet.operation_event (tenant_id, operation_id, type) VALUES ($1, $2, 'succeeded')",
      [house.acme.id, first],
    );
    await Promise.all([acme.seen(2), beta.seen(1), root.seen(3), filtered.seen(1), one.seen(1)]);
    expect(operationsOf(acme.messages)).toEqual([own, first]);
    expect(operationsOf(beta.messages)).toEqual([other]);
    expect(operationsOf(filtered.messages)).toEqual([other]);
    expect(one.messages[0]!.data).toMatchObject({ tenant: 'acme', operation: { id: first, event: 'succeeded' } });
    expect((await reader(house.acme.viewer, '?tenant=beta').connect()).status).toBe(404);
    expect((await reader('trivet_none').connect()).status).toBe(401);
  });

  it.each([
    'nonsense',
    '1-1-x-1',
    `1-1-o-${Math.trunc(Date.now() / 1_000) - 40 * 86_400}`,
    `999999999999-1-o-${Math.trunc(Date.now() / 1_000)}`,
  ])('whoever resumes at %s is told to read the lists again, and then what happens now', async id => {
    const listener = reader(house.acme.viewer);
    listener.lastEventId = id;
    await listener.connect();
    await listener.seen(1);
    expect(listener.messages[0]!.event).toBe('reset');
    await until('it has a place again', () => listener.lastEventId !== id);
    const told = await accept(await session(), house.acme);
    await listener.seen(2);
    expect(operationsOf(listener.messages)).toEqual([told]);
  });

  it('two hundred listeners the same', async () => {
    const listeners = await Promise.all(Array.from({ length: 200 }, () => reader(house.acme.viewer).connect()));
    const id = await accept(await session(), house.acme);
    await Promise.all(listeners.map(listener => listener.seen(1)));
    for (const listener of listeners) expect(operationsOf(listener.messages)).toEqual([id]);
    const more = await Promise.all(Array.from({ length: 51 }, () => reader(house.acme.viewer).connect()));
    expect(more.filter(({ status }) => status === 429)).toHaveLength(1);
    expect((await reader(house.acme.operator).connect()).status).toBe(200);
  });
});

describe('when a stream ends', () => {
  it('with a login that ends', async () => {
    const { headers } = await house.login(house.acme.operator);
    const listener = new EventReader(`${url}/api/v1/events`, headers);
    readers.push(listener);
    await listener.connect();
    await house.call(undefined, 'DELETE', '/session', { headers });
    const since = performance.now();
    await listener.end();
    expect(performance.now() - since).toBeLessThan(5_000);
  });

  it('with a tenant that is suspended', async () => {
    const tenant = await house.tenant('suspended-soon');
    const listener = await reader(tenant.viewer).connect();
    await house.query("UPDATE trivet.tenant SET state = 'suspended' WHERE id = $1", [tenant.id]);
    const since = performance.now();
    await listener.end();
    expect(performance.now() - since).toBeLessThan(5_000);
  });

  it('for who does not read, and holds up nobody', async () => {
    const { port, hostname } = new URL(url);
    const deaf = connect({ host: hostname, port: Number(port) });
    deaf.pause();
    deaf.write(
      `GET /api/v1/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${house.root.operator.token}\r\nconnection: keep-alive\r\n\r\n`,
    );
    await until('it listens', () => house.options.events.size > 0);
    const listener = await reader(house.root.viewer).connect();
    const client = await session();
    // More than the kernel's buffers and ours together.
    const one = `INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, action, subject_kind, after)
                 SELECT $1, 'acme', 'system', 'test', 'test.fill', 'test', to_json(repeat('x', 100000)) FROM generate_series(1, 20)`;
    let told = 0;
    await until(
      'it was ended',
      async () => {
        if (house.options.events.size === 1) return true;
        await client.query(one, [house.acme.id]);
        told += 20;
        return false;
      },
      60_000,
    );
    await listener.seen(told);
    deaf.destroy();
  });

  it('when the gateway stops, at once', async () => {
    const gateway = await house.appliance.gateway();
    const listener = new EventReader(`${house.appliance.cspUrl}/api/v1/events`, {
      authorization: `Bearer ${house.acme.viewer.token}`,
    });
    readers.push(listener);
    await listener.connect();
    const since = performance.now();
    const { code } = await gateway.stop('SIGTERM');
    expect(code).toBe(0);
    await listener.end();
    expect(performance.now() - since).toBeLessThan(5_000);
  });
});
