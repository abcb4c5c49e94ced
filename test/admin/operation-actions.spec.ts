import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { EndpointCaller } from '#storage/object/endpoint';
import { AdminHouse, type Person } from '#test/admin/admin-house';
import { GIVEN_UP } from '#test/admin/given-up';
import { driverOf, sidecarOf } from '#test/admin/resource-calls';
import type { FaultOrder } from '#test/fakes/object/fake-control';
import { until } from '#test/support/parts';

/** What people do about operations, beside a worker that runs them. */
let house: AdminHouse;
let sidecar: EndpointCaller;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake', env: { TRIVET_LEASE_MS: '3000', TRIVET_RECYCLE_MS: '0' } });
  sidecar = await sidecarOf(house, house.acme);
  await house.appliance.worker();
  await until(
    'the pools are known',
    async () => (await house.query('SELECT FROM trivet.pool WHERE tenant_id = $1', [house.acme.id])).length > 0,
  );
});
afterAll(() => house?.close());
afterEach(async () => {
  house.appliance.fakeBlock!.clearFaults();
  await pauseIndex(false);
});

const fault = (order: FaultOrder) => house.appliance.fakeBlock!.addFault(order);
/** No repeat helps, so it is undone, or parks what cannot fail. */
const REFUSED = { mode: 'fail-before', error: 'failed_precondition', message: 'a test refuses it' } as const;
const AT_ONCE = { headers: { prefer: 'wait=0' } };
const VOLUMES = '/tenants/acme/volumes';

/** Accepts the creation of a volume, and gives its id and its operation's. */
async function create(name: string): Promise<{ id: string; operation: string }> {
  const body = { name, size: '1048576' };
  const reply = await house.call(house.acme.operator, 'POST', VOLUMES, { body, ...AT_ONCE });
  expect([201, 202], JSON.stringify(reply.body)).toContain(reply.status);
  const [row] = await house.query<{ id: string; resource_id: string }>(
    "SELECT id, resource_id FROM trivet.operation WHERE kind = 'volume.create' AND resource_name = $1 ORDER BY seq DESC",
    [name],
  );
  return { id: row!.resource_id, operation: row!.id };
}

async function created(name: string): Promise<{ id: string; operation: string }> {
  const made = await create(name);
  await ended(made.operation, 'succeeded');
  // Its deletion removes the image, instead of keeping it in the recycle bin.
  await house.query('UPDATE trivet.volume SET destroy_on_delete = true WHERE id = $1', [made.id]);
  return made;
}

async function remove(id: string): Promise<string> {
  const path = `${VOLUMES}/${id}`;
  const reply = await house.change(house.acme.admin, 'DELETE', path, AT_ONCE);
  expect([202, 204, 409], JSON.stringify(reply.body)).toContain(reply.status);
  const [row] = await house.query<{ id: string }>(
    "SELECT id FROM trivet.operation WHERE kind = 'volume.delete' AND resource_id = $1 ORDER BY seq DESC",
    [id],
  );
  return row!.id;
}

const stateOf = async (id: string): Promise<string> =>
  (await house.query<{ state: string }>('SELECT state FROM trivet.operation WHERE id = $1', [id]))[0]!.state;
const ended = (id: string, state: string) => until(`it is ${state}`, async () => (await stateOf(id)) === state);
const volume = async (id: string) =>
  (
    await house.query<{ state: string; active_operation: string | null; condition: { type: string } | null }>(
      'SELECT state, active_operation, condition FROM trivet.volume WHERE id = $1',
      [id],
    )
  )[0]!;
const slots = async (id: string) =>
  (await house.query('SELECT FROM trivet.operation_slot WHERE operation_id = $1', [id])).length;
const eventsOf = async (id: string) =>
  (await house.query<{ type: string }>('SELECT type FROM trivet.operation_event WHERE operation_id = $1', [id])).map(
    ({ type }) => type,
  );

const pauseIndex = (paused: boolean) =>
  house.query("UPDATE trivet.queue SET paused = $1 WHERE class = 'index'", [paused]);

type Action = 'retry' | 'cancel' | 'resolve' | 'release';
const act = (
  action: Action,
  id: string,
  who: Person = house.acme.admin,
  reason: string | undefined = 'a test wants it',
) => house.call(who, 'POST', `/operations/${id}/${action}`, { body: reason === undefined ? {} : { reason } });

describe('retry', () => {
  it('runs at once what waits for its next attempt', async () => {
    fault({ method: 'stage', mode: 'fail-before', error: 'aborted', count: 20 });
    const { id, operation } = await create('retried');
    await until('it has failed some times', async () => {
      const { body } = await house.call(house.acme.viewer, 'GET', `/operations/${operation}`);
      return body.attempt > 3 && body.state === 'pending';
    });
    house.appliance.fakeBlock!.clearFaults();
    await house.query(
      "UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE id = $1 AND state = 'pending'",
      [operation],
    );
    const reply = await act('retry', operation, house.acme.operator);
    expect(reply.status).toBe(200);
    await ended(operation, 'succeeded');
    expect((await volume(id)).state).toBe('ready');
    expect(await eventsOf(operation)).toContain('retry_asked');
    expect((await house.audit('operation.retry'))[0]).toMatchObject({
      actor: 'the-operator@acme',
      operation_id: operation,
      reason: 'a test wants it',
    });
    expect(await act('retry', operation)).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
  });

  it('takes up again what waits for a person', async () => {
    const { id } = await created('parked-once');
    fault({ method: 'removeImage', ...REFUSED, count: 1 });
    const deletion = await remove(id);
    await ended(deletion, 'needs_attention');
    expect((await act('retry', deletion, house.acme.operator, undefined)).status).toBe(200);
    await ended(deletion, 'succeeded');
    expect(await slots(deletion)).toBe(0);
  });
});

describe('cancel', () => {
  it('stops one that runs between two steps, and undoes what it did', async () => {
    fault({ method: 'stage', mode: 'delay', delayMs: 1_500 });
    const { id, operation } = await create('cancelled');
    await until('it stages', () => house.appliance.fakeBlock!.calls({ method: 'stage' }).length > 0);
    const reply = await act('cancel', operation, house.acme.operator);
    expect(reply).toMatchObject({ status: 200, body: { cancelRequested: true } });
    expect(await act('cancel', operation)).toMatchObject({ status: 409 });
    await ended(operation, 'cancelled');
    expect(await volume(id)).toMatchObject({ state: 'gone', active_operation: null });
    expect(await slots(operation)).toBe(0);
    const { body } = await house.call(house.acme.viewer, 'GET', `/operations/${operation}`);
    expect(body.error.message).toBe('cancelled by the-operator@acme (token house)');
    // The name is free, and nothing is left that a new one would meet.
    await created('cancelled');
  });

  it('undoes what waits for its next attempt, and what nobody has begun', async () => {
    fault({ method: 'commit', mode: 'fail-before', error: 'aborted', count: 50 });
    const waiting = await create('waiting');
    await until('it has failed', async () => (await eventsOf(waiting.operation)).includes('retry'));
    expect((await act('cancel', waiting.operation)).status).toBe(200);
    await ended(waiting.operation, 'cancelled');
    expect((await volume(waiting.id)).state).toBe('gone');
  });

  it('parks again when it cannot undo, and goes on when it can', async () => {
    fault({ method: 'commit', mode: 'fail-before', error: 'aborted', count: 50 });
    fault({ method: 'removeImage', ...REFUSED, count: 1 });
    const { id, operation } = await create('stubborn');
    await until('it has failed', async () => (await eventsOf(operation)).includes('retry'));
    expect((await act('cancel', operation)).status).toBe(200);
    await ended(operation, 'needs_attention');
    expect((await act('retry', operation)).status).toBe(200);
    await ended(operation, 'cancelled');
    expect((await volume(id)).state).toBe('gone');
  });

  it('is overtaken by a deletion, which removes what is there', async () => {
    fault({ method: 'commit', mode: 'fail-before', error: 'aborted', count: 50 });
    const { id, operation } = await create('overtaken');
    await until('it has failed', async () => (await eventsOf(operation)).includes('retry'));
    expect((await act('cancel', operation)).status).toBe(200);
    const deletion = await remove(id);
    await ended(deletion, 'succeeded');
    expect(await stateOf(operation)).toBe('cancelled');
    expect((await volume(id)).state).toBe('gone');
  });

  it('comes too late for what is done, and is refused for what cannot be undone', async () => {
    const { id, operation } = await created('done');
    expect(await act('cancel', operation)).toMatchObject({ status: 409 });
    fault({ method: 'removeImage', ...REFUSED, count: 1 });
    const deletion = await remove(id);
    await ended(deletion, 'needs_attention');
    const reply = await act('cancel', deletion);
    expect(reply).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(reply.body.detail).toContain('can be undone');
    await act('retry', deletion);
    await ended(deletion, 'succeeded');
  });
});

describe('resolve', () => {
  it('gives a creation up: it is as if the call had never come', async () => {
    fault({ method: 'commit', ...REFUSED, count: 1 });
    fault({ method: 'removeImage', ...REFUSED, count: 1 });
    const { id, operation } = await create('given-up');
    await ended(operation, 'needs_attention');
    expect((await act('resolve', operation, house.acme.operator)).status).toBe(403);
    const reply = await act('resolve', operation);
    expect(reply).toMatchObject({ status: 200, body: { state: 'failed', actions: [] } });
    expect(reply.body.advice).toContain('as if the call had never come');
    expect(await volume(id)).toMatchObject({ state: 'gone', active_operation: null });
    expect(await slots(operation)).toBe(0);
    expect((await house.audit('operation.resolve'))[0]).toMatchObject({
      operation_id: operation,
      reason: 'a test wants it',
    });
    expect(await act('resolve', operation)).toMatchObject({ status: 409 });
    await created('given-up');
  });

  it('gives a deletion up: the volume is back, withheld, and can be deleted again', async () => {
    const { id } = await created('kept-after-all');
    fault({ method: 'removeImage', ...REFUSED, count: 1 });
    const deletion = await remove(id);
    await ended(deletion, 'needs_attention');
    const reply = await act('resolve', deletion);
    expect(reply.body.advice).toContain('Delete it again at any time');
    expect(await volume(id)).toMatchObject({ state: 'ready', active_operation: null, condition: { type: 'lost' } });
    await ended(await remove(id), 'succeeded');
    expect((await volume(id)).state).toBe('gone');
  });

  it.each(Object.keys(GIVEN_UP))(
    'gives a %s up: its resource is what it says, and it can be asked for again',
    async kind => {
      const { acme, appliance } = house;
      const given = await GIVEN_UP[kind]!({
        house,
        sidecar,
        driver: await driverOf(house, acme),
        stateOf: async (table, id) =>
          (await house.query<{ state: string }>(`SELECT state FROM trivet.${table} WHERE id = $1`, [id]))[0]?.state,
        idOf: async (table, name) =>
          (
            await house.query<{ id: string }>(`SELECT id FROM trivet.${table} WHERE tenant_id = $1 AND name = $2`, [
              acme.id,
              name,
            ])
          )[0]!.id,
      });
      const control = given.store === 'objects' ? appliance.fake! : appliance.fakeBlock!;
      const last = async () =>
        (
          await house.query<{ id: string; state: string }>(
            'SELECT id, state FROM trivet.operation WHERE kind = $1 AND resource_id = $2 ORDER BY seq DESC LIMIT 1',
            [kind, given.resource],
          )
        )[0];
      if (given.fault) {
        const error = given.fails ? 'internal' : 'unimplemented';
        control.addFault({ ...given.fault, mode: 'fail-before', error, message: 'a test', count: 100 });
      } else await pauseIndex(true);
      const begun = given.begin().catch(() => {});
      const parked = await until('it waits for a person', async () => {
        if (given.fails || !given.fault)
          await house.query(
            `UPDATE trivet.operation
                SET state = 'needs_attention', place = NULL,
                    error = coalesce(error, '{"kind": "internal", "message": "a test", "retry": "person"}')
              WHERE kind = $1 AND resource_id = $2 AND state = 'pending' AND (error IS NOT NULL OR $3)`,
            [kind, given.resource, !given.fault],
          );
        const found = await last();
        return found?.state === 'needs_attention' ? found : undefined;
      });
      control.clearFaults();
      const before = await house.call(acme.viewer, 'GET', `/operations/${parked.id}`);
      const reply = await act('resolve', parked.id);
      expect(reply).toMatchObject({ status: 200, body: { state: 'failed', kind, actions: [] } });
      // What was said before is what becomes of it.
      const [, leaves] = /Resolve: it ends as failed; (.*)\.$/.exec(before.body.advice)!;
      expect(reply.body.advice).toContain(leaves);
      await begun;
      expect(await slots(parked.id)).toBe(0);
      expect(await given.state()).toBe(given.states[0]);
      if (given.once) return;
      await pauseIndex(false);
      await given.begin();
      await until('another one has succeeded', async () => {
        const again = await last();
        return again!.id !== parked.id && again!.state === 'succeeded';
      });
      expect(await given.state()).toBe(given.states[1]);
    },
  );

  it('makes room for who waits behind it', async () => {
    const { id } = await created('in-line');
    fault({ method: 'growImage', mode: 'fail-before', error: 'internal', message: 'x', count: 1 });
    await house.query("UPDATE trivet.queue SET paused = true WHERE class = 'fast'");
    const path = `${VOLUMES}/${id}`;
    const body = { size: '2097152' };
    await house.change(house.acme.operator, 'PATCH', path, { body, ...AT_ONCE });
    const [expansion] = await house.query<{ id: string }>(
      "SELECT id FROM trivet.operation WHERE kind = 'volume.expand' AND resource_id = $1",
      [id],
    );
    if (!expansion) throw new Error('no expansion was accepted');
    await house.query(
      `UPDATE trivet.operation SET state = 'needs_attention', place = NULL,
              error = '{"kind": "internal", "message": "parked by a test", "retry": "person"}' WHERE id = $1`,
      [expansion.id],
    );
    await house.query("UPDATE trivet.queue SET paused = false WHERE class = 'fast'");
    house.appliance.fakeBlock!.clearFaults();
    const taken = await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', {
      body: { volume: id, name: 'behind' },
      ...AT_ONCE,
    });
    expect([201, 202], JSON.stringify(taken.body)).toContain(taken.status);
    expect((await act('resolve', expansion.id)).status).toBe(200);
    await until('the snapshot is taken', async () => {
      const rows = await house.query("SELECT FROM trivet.snapshot WHERE volume_id = $1 AND state = 'ready'", [id]);
      return rows.length === 1;
    });
  });
});

describe('release by force', () => {
  it('takes it from a worker that is stuck, whose writes count no more', async () => {
    fault({ method: 'stage', mode: 'delay', delayMs: 6_000, count: 1 });
    const { id, operation } = await create('released');
    await until('it stages', async () => (await stateOf(operation)) === 'running');
    const before = await house.call(house.acme.viewer, 'GET', `/operations/${operation}`);
    expect((await act('release', operation, house.acme.operator)).status).toBe(403);
    const reply = await act('release', operation);
    expect(reply).toMatchObject({ status: 200, body: { state: 'pending', lease: null } });
    // When its lease would have ended, which may have been renewed since it was read; its slots are kept as long.
    expect(Date.parse(reply.body.nextRunAt)).toBeLessThan(Date.parse(before.body.lease.until) + 3_000);
    const kept = `SELECT bool_and(s.busy_until = o.next_run_at) AS same FROM trivet.operation o
                    JOIN trivet.operation_slot s ON s.operation_id = o.id WHERE o.id = $1`;
    expect(await house.query(kept, [operation])).toEqual([{ same: true }]);
    expect(await act('release', operation)).toMatchObject({ status: 409 });
    await ended(operation, 'succeeded');
    const after = await house.call(house.acme.viewer, 'GET', `/operations/${operation}`);
    expect(after.body.attempt).toBeGreaterThan(before.body.attempt);
    expect(await eventsOf(operation)).toContain('released');
    expect((await volume(id)).state).toBe('ready');
    expect(await slots(operation)).toBe(0);
  });
});

describe('beside a running worker', () => {
  it('every operation ends in one way, and its resource says the same, whatever people do meanwhile', async () => {
    for (const method of ['stage', 'commit', 'inspectImage'])
      fault({ method, mode: 'fail-before', error: 'aborted', count: 6 });
    const made = await Promise.all(Array.from({ length: 12 }, (_, n) => create(`raced-${n}`)));
    const actions: Action[] = ['cancel', 'retry', 'release', 'resolve', 'retry', 'cancel'];
    const replies = await Promise.all(
      made.flatMap(({ operation }, n) => actions.slice(n % 3, (n % 3) + 4).map(action => act(action, operation))),
    );
    for (const { status, body } of replies) expect([200, 409], JSON.stringify(body)).toContain(status);
    await until('all have ended', async () => {
      for (const { operation } of made)
        if (['pending', 'running', 'needs_attention'].includes(await stateOf(operation))) return false;
      return true;
    });
    for (const { id, operation } of made) {
      const state = await stateOf(operation);
      expect(await volume(id)).toMatchObject({
        state: state === 'succeeded' ? 'ready' : 'gone',
        active_operation: null,
      });
      expect(await slots(operation)).toBe(0);
      const ends = (await eventsOf(operation)).filter(type =>
        ['succeeded', 'failed', 'cancelled', 'resolved'].includes(type),
      );
      expect(ends).toHaveLength(1);
    }
  });
});
