import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { totalVolumes } from '#storage/block/volumes/volume-list';
import { readLoad } from '#storage/bulk/bulk-room';
import { AdminHouse, type CallOptions, type Person } from '#test/admin/admin-house';
import {
  createdBuckets,
  ended,
  idOf,
  makeVolume,
  operationOf,
  poolsSeen,
  registerBucket,
} from '#test/admin/resource-calls';
import { until } from '#test/support/parts';

/** Many at once, as one operation with children: what of them is done, refused, stopped, and by whom. */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake', env: { TRIVET_RECONCILE_MS: '150' } });
  await house.appliance.worker();
  await poolsSeen(house, house.acme);
  await poolsSeen(house, house.beta);
}, 60_000);
afterAll(() => house?.close());
afterEach(() => {
  house.appliance.fake!.clearFaults();
  house.appliance.fakeBlock!.clearFaults();
});

const start = (action: string, body: object, who: Person = house.acme.admin, options: CallOptions = {}) =>
  house.call(who, 'POST', `/tenants/acme/bulk/${action}`, { body, ...options });
const detail = async (bulk: string) => (await house.call(house.acme.viewer, 'GET', `/operations/${bulk}`)).body;
const items = async (bulk: string, query: Record<string, string> = {}) =>
  (await house.call(house.acme.viewer, 'GET', `/operations/${bulk}/items`, { query })).body.items;
const volumes = async (...names: string[]): Promise<string[]> => {
  const made: string[] = [];
  for (const name of names) made.push(idOf(await makeVolume(house, house.acme, name)));
  const ready = "SELECT FROM trivet.volume WHERE id = ANY ($1) AND state = 'ready'";
  await until('they are made', async () => (await house.query(ready, [made])).length === made.length);
  return made;
};
const stateOf = async (table: string, id: string) =>
  (await house.query<{ state: string }>(`SELECT state FROM trivet.${table} WHERE id = $1`, [id]))[0]?.state;
const host = async (name: string): Promise<string> => {
  const body = { name, iqns: [`iqn.2026-01.test:${name}`], chap: { user: name, password: 'twelve-or-more' } };
  return idOf(await house.call(house.acme.admin, 'POST', '/tenants/acme/hosts', { body }));
};

describe('a bulk', () => {
  it('does what it can, and says of each other why not', async () => {
    const [first, second, published] = (await volumes('first', 'second', 'published')) as [string, string, string];
    const made = await house.call(house.acme.admin, 'POST', '/tenants/acme/publications', {
      body: { volume: published, host: await host('its-host') },
    });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    const foreign = idOf(await makeVolume(house, house.beta, 'of-beta'));
    const nobodys = randomUUID();
    const reply = await start('delete-volumes', {
      ids: [first, published, foreign, second, nobodys, first],
      reason: 'the project has ended',
    });
    expect(reply).toMatchObject({ status: 202, body: { count: 5 } });
    const bulk = operationOf(reply);
    expect(reply.body.operation).toBe(bulk);
    expect(await ended(house, bulk)).toBe('succeeded');

    const shown = await detail(bulk);
    expect(shown).toMatchObject({
      kind: 'bulk.run',
      backend: '',
      resource: { kind: 'bulk', id: bulk, name: 'deletion of 5 volumes' },
      actor: 'the-admin@acme (token house)',
      result: { done: 2, failed: 3, skipped: 0 },
      items: { total: 5, waiting: 0, running: 0, done: 2, failed: 3, skipped: 0 },
    });
    expect(shown.items.failures).toEqual([
      { id: published, name: 'published', operation: null, message: 'Cannot delete a published volume' },
      { id: foreign, name: '', operation: null, message: `there is no volume ${foreign}` },
      { id: nobodys, name: '', operation: null, message: `there is no volume ${nobodys}` },
    ]);
    expect(await stateOf('volume', first)).toBe('binned');
    expect(await stateOf('volume', second)).toBe('binned');
    expect(await stateOf('volume', published)).toBe('ready');
    expect(await stateOf('volume', foreign)).toBe('ready');
    const done = await items(bulk, { state: 'done' });
    expect(done.map(({ name }: { name: string }) => name)).toEqual(['first', 'second']);
    expect(await detail(done[0].operation)).toMatchObject({
      kind: 'volume.delete',
      state: 'succeeded',
      actor: 'the-admin@acme (token house)',
      items: null,
    });
    expect((await items(bulk, { limit: '2' })).length).toBe(2);
  });

  it('is in the audit log, and each child by who asked for all', async () => {
    const [id] = await volumes('noted');
    const bulk = operationOf(await start('delete-volumes', { ids: [id], reason: 'a test' }));
    await ended(house, bulk);
    expect((await house.audit('bulk.start'))[0]).toMatchObject({
      actor: house.acme.admin.username,
      operation_id: bulk,
      reason: 'a test',
      after: { action: 'delete-volumes', ids: [id], count: 1 },
    });
    const { address } = (await house.audit('bulk.start'))[0]!;
    expect((await detail(bulk)).request).toEqual({ action: 'delete-volumes', count: 1, reason: 'a test' });
    const [child] = await items(bulk);
    expect((await house.audit('volume.delete'))[0]).toMatchObject({
      actor: house.acme.admin.username,
      token_name: 'house',
      door: 'admin',
      subject_id: id,
      operation_id: child.operation,
      reason: `bulk ${bulk}: a test`,
      address,
      before: { id, name: 'noted', state: 'ready' },
    });
    expect(address).not.toBe('');
  });

  it('by a filter is of as many as were expected, or not begun', async () => {
    await volumes('by-filter-1', 'by-filter-2', 'not-by-it');
    const filter = { search: 'by-filter' };
    const refused = await start('delete-volumes', { filter, count: 3 });
    expect(refused).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(refused.body.detail).toContain('2 match, and you expected 3');
    const bulk = operationOf(await start('delete-volumes', { filter, count: 2 }));
    expect(await ended(house, bulk)).toBe('succeeded');
    expect((await detail(bulk)).items).toMatchObject({ total: 2, done: 2 });
    const [left] = await house.query("SELECT state FROM trivet.volume WHERE name = 'not-by-it'");
    expect(left).toMatchObject({ state: 'ready' });
  });

  it('deletes nothing for good that was not in the bin, and purges nothing else', async () => {
    const [binned, ready] = (await volumes('binned', 'ready')) as [string, string];
    await ended(house, operationOf(await start('delete-volumes', { ids: [binned] })));
    const again = operationOf(await start('delete-volumes', { ids: [binned] }));
    await ended(house, again);
    expect((await detail(again)).items.failures[0].message).toBe('volume binned is in the recycle bin already');
    const purge = operationOf(await start('purge-volumes', { ids: [binned, ready] }));
    await ended(house, purge);
    expect((await detail(purge)).items.failures).toMatchObject([
      { id: ready, message: 'volume ready is not in the recycle bin' },
    ]);
    expect(await stateOf('volume', binned)).toBe('gone');
    expect(await stateOf('volume', ready)).toBe('ready');
    expect((await house.audit('volume.purge'))[0]).toMatchObject({ subject_id: binned });
  });

  it('unpublishes, deletes snapshots and buckets', async () => {
    const [volume] = (await volumes('with-all')) as [string];
    const post = (path: string, body: object) =>
      house.call(house.acme.admin, 'POST', `/tenants/acme/${path}`, { body });
    const publication = idOf(await post('publications', { volume, host: await host('another-host') }));
    const snapshot = idOf(await post('snapshots', { volume, name: 'cut' }));
    const [bucket] = (await createdBuckets(house, house.acme, 'of-bulk')) as [string];
    const bulks = await Promise.all([
      start('unpublish', { filter: { volume }, count: 1 }),
      start('delete-snapshots', { filter: { volume }, count: 1 }),
      start('delete-buckets', { ids: [bucket] }),
    ]);
    for (const bulk of bulks) {
      await ended(house, operationOf(bulk));
      expect((await detail(operationOf(bulk))).items).toMatchObject({ total: 1, done: 1, failures: [] });
    }
    expect(await stateOf('publication', publication)).toBeUndefined();
    expect(await stateOf('snapshot', snapshot)).toBe('gone');
    expect(await stateOf('bucket', bucket)).toBe('gone');
  });

  it('retries and cancels operations, by operators', async () => {
    house.appliance.fakeBlock!.addFault({ method: 'stage', mode: 'fail-before', error: 'aborted', count: 1_000 });
    const create = async (name: string) => {
      const options = { body: { name, size: '1048576' }, headers: { prefer: 'wait=0' } };
      return operationOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', options));
    };
    const [one, two] = [await create('waits-1'), await create('waits-2')];
    const failing = "SELECT FROM trivet.operation WHERE id = ANY ($1) AND error IS NOT NULL AND state = 'pending'";
    await until('both have failed', async () => (await house.query(failing, [[one, two]])).length === 2);
    const putOff = () =>
      until('both wait for long', async () => {
        await house.query(
          "UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE id = ANY ($1) AND state = 'pending'",
          [[one, two]],
        );
        const rows =
          "SELECT FROM trivet.operation WHERE id = ANY ($1) AND state = 'pending' AND next_run_at > now() + interval '50 minutes'";
        return (await house.query(rows, [[one, two]])).length === 2;
      });
    await putOff();
    expect((await start('retry-operations', { ids: [one] }, house.acme.viewer)).status).toBe(403);
    expect((await start('delete-volumes', { ids: [one] }, house.acme.operator)).status).toBe(403);
    const retry = operationOf(await start('retry-operations', { ids: [one, two, randomUUID()] }, house.acme.operator));
    await ended(house, retry);
    expect((await detail(retry)).items).toMatchObject({
      done: 2,
      failed: 1,
      failures: [{ message: expect.stringContaining('there is no operation') }],
    });
    const asked = "SELECT FROM trivet.operation_event WHERE operation_id = ANY ($1) AND type = 'retry_asked'";
    expect(await house.query(asked, [[one, two]])).toHaveLength(2);

    // As it was when it was chosen: none of them runs when its turn comes.
    await putOff();
    const body = { filter: { kind: 'volume.create', state: 'pending,running' }, count: 2 };
    expect((await start('cancel-operations', body, house.acme.operator)).status).toBe(400);
    const withReason = { ...body, reason: 'withdrawn' };
    const cancel = operationOf(await start('cancel-operations', withReason, house.acme.operator));
    await ended(house, cancel);
    expect((await detail(cancel)).items).toMatchObject({ total: 2, done: 2 });
    expect(await ended(house, one)).toBe('cancelled');
    expect(await ended(house, two)).toBe('cancelled');
    expect((await house.audit('operation.cancel'))[0]).toMatchObject({
      actor: house.acme.operator.username,
      reason: `bulk ${cancel}: withdrawn`,
    });
  });

  it('that is stopped ends what has not begun, and leaves the rest to its end', async () => {
    house.appliance.fake!.addFault({ method: 'inspectBucket', mode: 'fail-before', error: 'aborted', count: 10_000 });
    const names = Array.from({ length: 40 }, (_, n) => `stopped-${n}`);
    const ids = await createdBuckets(house, house.acme, ...names);
    const bulk = operationOf(await start('delete-buckets', { ids }));
    await until('as many are under way as may be', async () => (await detail(bulk)).items.running === 32);
    const stop = await house.call(house.acme.operator, 'POST', `/operations/${bulk}/cancel`, {
      body: { reason: 'too many' },
    });
    expect(stop.status, JSON.stringify(stop.body)).toBe(200);
    expect(await ended(house, bulk)).toBe('cancelled');
    expect((await detail(bulk)).items).toMatchObject({ total: 40, running: 32, skipped: 8, waiting: 0 });
    house.appliance.fake!.clearFaults();
    await house.query(
      "UPDATE trivet.operation SET next_run_at = now() WHERE state = 'pending' AND kind = 'bucket.delete'",
    );
    await until('those have ended', async () => (await detail(bulk)).items.done === 32);
    const kept = "SELECT FROM trivet.bucket WHERE id = ANY ($1) AND state = 'ready' AND active_operation IS NULL";
    expect(await house.query(kept, [ids])).toHaveLength(8);
  });

  it('tries what is busy again, and gives the reason while it waits', async () => {
    const [volume] = (await volumes('busy')) as [string];
    // A clone of it waits for its class, and reads it until it is made.
    const pause = (paused: boolean) =>
      house.query("UPDATE trivet.queue SET paused = $1 WHERE class IN ('fast', 'copy')", [paused]);
    await pause(true);
    const body = { name: 'its-clone', source: { volume } };
    const options = { body, headers: { prefer: 'wait=0' } };
    expect((await house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', options)).status).toBe(202);
    const bulk = operationOf(await start('delete-volumes', { ids: [volume] }));
    const tried = 'SELECT FROM trivet.bulk_item WHERE bulk_id = $1 AND tries > 0';
    await until('it was tried', async () => (await house.query(tried, [bulk])).length === 1);
    const [item] = await items(bulk);
    expect(item).toMatchObject({ state: 'waiting', operation: null, error: { kind: 'aborted' } });
    await pause(false);
    expect(await ended(house, bulk)).toBe('succeeded');
    expect((await detail(bulk)).items).toMatchObject({ done: 1, failures: [] });
    expect(await stateOf('volume', volume)).toBe('binned');
  });

  /** What is accepted meanwhile is begun after it. */
  const whilePaused = async <T>(work: () => Promise<T>): Promise<T> => {
    const pause = (paused: boolean) =>
      house.query("UPDATE trivet.queue SET paused = $1 WHERE class = 'destroy'", [paused]);
    await pause(true);
    try {
      return await work();
    } finally {
      await pause(false);
    }
  };
  const CHANGED = 'it was changed since it was chosen';

  it('leaves alone what was changed after it was accepted', async () => {
    const [same, edited] = (await volumes('same', 'edited')) as [string, string];
    const [kept, purged] = (await createdBuckets(house, house.acme, 'kept', 'purged')) as [string, string];
    house.appliance.fakeBlock!.addFault({ method: 'stage', mode: 'fail-before', error: 'aborted', count: 1_000 });
    const options = { body: { name: 'chosen', size: '1048576' }, headers: { prefer: 'wait=0' } };
    const created = operationOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', options));
    const waits = "SELECT FROM trivet.operation WHERE id = $1 AND state = 'pending' AND error IS NOT NULL";
    await until('it waits', async () => (await house.query(waits, [created])).length === 1);
    await house.query("UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE id = $1", [created]);
    const bulks = await whilePaused(async () => {
      const begun = [
        await start('delete-volumes', { ids: [same, edited] }),
        await start('delete-buckets', { ids: [kept, purged] }),
        await start('cancel-operations', { ids: [created], reason: 'withdrawn' }),
      ].map(operationOf);
      const change = { body: { description: 'needed after all' } };
      const reply = await house.change(house.acme.admin, 'PATCH', `/tenants/acme/volumes/${edited}`, change);
      expect(reply.status, JSON.stringify(reply.body)).toBe(200);
      const purge = `UPDATE trivet.bucket SET desired = jsonb_set(desired, '{spec,deletePolicy}', '"purge"') WHERE id = $1`;
      await house.query(purge, [purged]);
      await house.query("UPDATE trivet.operation SET state = 'needs_attention' WHERE id = $1", [created]);
      return begun;
    });
    for (const bulk of bulks) await ended(house, bulk);
    const [ofVolumes, ofBuckets, ofOperations] = await Promise.all(bulks.map(async bulk => (await detail(bulk)).items));
    expect(ofVolumes).toMatchObject({ done: 1, failures: [{ id: edited, message: expect.stringContaining(CHANGED) }] });
    expect(ofBuckets).toMatchObject({ done: 1, failures: [{ id: purged, message: expect.stringContaining(CHANGED) }] });
    expect(ofOperations).toMatchObject({
      done: 0,
      failures: [{ id: created, message: `${CHANGED}: it was pending and is needs_attention` }],
    });
    expect(await stateOf('volume', edited)).toBe('ready');
    expect(await stateOf('bucket', purged)).toBe('ready');
    house.appliance.fakeBlock!.clearFaults();
    await house.call(house.acme.operator, 'POST', `/operations/${created}/retry`, { body: { reason: 'a test' } });
    await ended(house, created);
  });

  it('begins nothing for who may not do it any more', async () => {
    const { operator, admin } = house.acme;
    const [id] = (await volumes('of-the-former')) as [string];
    const bulks = await whilePaused(async () => {
      const begun = [
        await start('retry-operations', { ids: [randomUUID(), randomUUID()] }, operator),
        await start('delete-volumes', { ids: [id] }, admin),
      ].map(operationOf);
      await house.query("UPDATE trivet.tenant_user SET role = 'viewer' WHERE id = $1", [operator.userId]);
      await house.query("UPDATE trivet.admin_token SET expires_at = now() - interval '1 s' WHERE id = $1", [
        admin.tokenId,
      ]);
      return begun as [string, string];
    });
    for (const bulk of bulks) expect(await ended(house, bulk)).toBe('succeeded');
    await house.query("UPDATE trivet.tenant_user SET role = 'operator' WHERE id = $1", [operator.userId]);
    await house.query('UPDATE trivet.admin_token SET expires_at = NULL WHERE id = $1', [admin.tokenId]);
    expect((await detail(bulks[0])).items).toMatchObject({ total: 2, skipped: 2 });
    const [skipped] = await items(bulks[0], { state: 'skipped' });
    expect(skipped.error).toMatchObject({ kind: 'permission_denied' });
    expect(skipped.error.message).toContain('is viewer by now; this takes the role operator');
    const [other] = await items(bulks[1]);
    expect(other).toMatchObject({ state: 'skipped', operation: null });
    expect(other.error.message).toContain('may not come in any more');
    expect(await stateOf('volume', id)).toBe('ready');
  });

  it('is one of few that a tenant has at a time', async () => {
    const replies = await whilePaused(() =>
      Promise.all(Array.from({ length: 9 }, () => start('retry-operations', { ids: [randomUUID()] }))),
    );
    const refused = replies.filter(({ status }) => status !== 202);
    expect(refused).toMatchObject([{ status: 507, body: { code: 'resource_exhausted' } }]);
    for (const reply of replies) if (reply.status === 202) await ended(house, operationOf(reply));
    await ended(house, operationOf(await start('retry-operations', { ids: [randomUUID()] })));
  });

  it('that retries is accepted beside as many as there may be of others', async () => {
    const replies = await whilePaused(async () => {
      const others = await Promise.all(
        Array.from({ length: 9 }, () => start('delete-volumes', { ids: [randomUUID()] })),
      );
      expect(others.map(({ status }) => status).sort()).toEqual([...Array<number>(8).fill(202), 507]);
      const retry = await start('retry-operations', { ids: [randomUUID()] }, house.acme.operator);
      expect(retry.status, JSON.stringify(retry.body)).toBe(202);
      return [...others, retry].filter(({ status }) => status === 202);
    });
    for (const reply of replies) await ended(house, operationOf(reply));
  });

  it('counts as done what somebody else has done meanwhile', async () => {
    const [volume] = (await volumes('unpublished-meanwhile')) as [string];
    const body = { volume, host: await host('left-meanwhile') };
    const publication = idOf(await house.call(house.acme.admin, 'POST', '/tenants/acme/publications', { body }));
    house.appliance.fakeBlock!.addFault({ method: 'stage', mode: 'fail-before', error: 'aborted', count: 1_000 });
    const waiting = async (name: string) => {
      const options = { body: { name, size: '1048576' }, headers: { prefer: 'wait=0' } };
      const id = operationOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', options));
      const failed = "SELECT FROM trivet.operation WHERE id = $1 AND state = 'pending' AND error IS NOT NULL";
      await until('it waits', async () => (await house.query(failed, [id])).length === 1);
      await house.query("UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE id = $1", [id]);
      return id;
    };
    const [parked, mended] = [await waiting('parked-meanwhile'), await waiting('mended-meanwhile')];
    house.appliance.fakeBlock!.clearFaults();
    const bulks = await whilePaused(async () => {
      const begun = [
        await start('unpublish', { ids: [publication, randomUUID()] }),
        await start('retry-operations', { ids: [parked, mended] }, house.acme.operator),
      ].map(operationOf);
      await house.query('DELETE FROM trivet.publication WHERE id = $1', [publication]);
      await house.query("UPDATE trivet.operation SET state = 'needs_attention' WHERE id = $1", [parked]);
      await house.call(house.acme.operator, 'POST', `/operations/${mended}/retry`, { body: { reason: 'a test' } });
      expect(await ended(house, mended)).toBe('succeeded');
      return begun as [string, string];
    });
    for (const bulk of bulks) await ended(house, bulk);
    expect((await items(bulks[0])).map(({ state }: { state: string }) => state)).toEqual(['done', 'failed']);
    expect((await detail(bulks[1])).items).toMatchObject({ done: 2, failures: [] });
    expect(await ended(house, parked)).toBe('succeeded');
  });

  it('cancels what runs when its turn comes as soon as it waits again', async () => {
    house.appliance.fakeBlock!.addFault({ method: 'stage', mode: 'fail-before', error: 'aborted', count: 1_000 });
    const options = { body: { name: 'runs-meanwhile', size: '1048576' }, headers: { prefer: 'wait=0' } };
    const id = operationOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', options));
    const parkFor =
      "UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE id = $1 AND state = 'pending' AND error IS NOT NULL RETURNING id";
    await until('it waits', async () => (await house.query(parkFor, [id])).length === 1);
    const bulk = await whilePaused(async () => {
      const begun = operationOf(await start('cancel-operations', { ids: [id], reason: 'withdrawn' }));
      await house.query(
        "UPDATE trivet.operation SET state = 'running', lease_owner = gen_random_uuid(), lease_until = now() + interval '1 hour' WHERE id = $1",
        [id],
      );
      return begun;
    });
    const tried = 'SELECT FROM trivet.bulk_item WHERE bulk_id = $1 AND tries > 0';
    await until('it was tried', async () => (await house.query(tried, [bulk])).length === 1);
    expect((await items(bulk))[0]).toMatchObject({ state: 'waiting', error: { kind: 'aborted' } });
    await house.query(
      "UPDATE trivet.operation SET state = 'pending', lease_owner = NULL, lease_until = NULL WHERE id = $1",
      [id],
    );
    expect(await ended(house, bulk)).toBe('succeeded');
    expect((await detail(bulk)).items).toMatchObject({ done: 1, failures: [] });
    expect(await ended(house, id)).toBe('cancelled');
  });

  /** Without a probe that would find it well. */
  const silent = async (is: boolean): Promise<void> => {
    await house.query(
      `INSERT INTO trivet.backend_circuit (tenant_id, backend_id, failures, open_until, probed_at)
       VALUES ($1, $2, 3, now() + interval '1 hour', now() + interval '1 hour')
       ON CONFLICT (tenant_id, backend_id) DO UPDATE SET open_until = CASE WHEN $3 THEN excluded.open_until END,
                                                         probed_at = excluded.probed_at`,
      [house.acme.id, house.acme.backends.fake, is],
    );
  };
  const soon = () =>
    house.query("UPDATE trivet.operation SET next_run_at = now() WHERE state = 'pending' AND next_run_at > now()");
  const endedSoon = (bulk: string) =>
    until('all have ended', async () => {
      await soon();
      return (await stateOf('operation', bulk)) === 'succeeded';
    });

  it('begins nothing at a backend that does not answer, and leaves its places to others', async () => {
    house.appliance.fake!.addFault({ method: 'inspectBucket', mode: 'fail-before', error: 'aborted', count: 10_000 });
    const ids = await createdBuckets(house, house.acme, ...Array.from({ length: 8 }, (_, n) => `silent-${n}`));
    const before = operationOf(await start('delete-buckets', { ids: ids.slice(0, 5) }));
    await until('they are under way', async () => (await detail(before)).items.running === 5);
    await silent(true);
    const begun = async () => (await readLoad(house.database, house.acme.id, 64)).begun;
    await until('they are held up', async () => (await begun()) === 0);
    const bulk = operationOf(await start('delete-buckets', { ids: ids.slice(5) }));
    await until('it looked', async () => (await idle(bulk)) > 0);
    expect((await detail(bulk)).items).toMatchObject({ running: 0, waiting: 3 });
    for (const item of await items(bulk))
      expect(item).toMatchObject({ state: 'waiting', operation: null, error: { kind: 'unavailable' } });
    const tries = 'SELECT FROM trivet.bulk_item WHERE bulk_id = $1 AND tries > 0';
    expect(await house.query(tries, [bulk])).toEqual([]);
    house.appliance.fake!.clearFaults();
    await silent(false);
    for (const each of [before, bulk]) await endedSoon(each);
    expect((await detail(bulk)).items).toMatchObject({ done: 3, failures: [] });
    expect((await detail(before)).items).toMatchObject({ done: 5, failures: [] });
  });

  it('begins no more while many of it wait for a person, and goes on when they are mended', async () => {
    house.appliance.fake!.addFault({ method: 'inspectBucket', mode: 'fail-before', error: 'aborted', count: 10_000 });
    const ids = await createdBuckets(house, house.acme, ...Array.from({ length: 70 }, (_, n) => `parking-${n}`));
    const bulk = operationOf(await start('delete-buckets', { ids }));
    const park = `UPDATE trivet.operation SET state = 'needs_attention', place = NULL
                   WHERE state = 'pending' AND error IS NOT NULL
                     AND id IN (SELECT operation_id FROM trivet.bulk_item WHERE bulk_id = $1 AND state = 'begun')`;
    await until('it begins no more', async () => {
      await house.query(park, [bulk]);
      await soon();
      const { running } = (await detail(bulk)).items;
      return running === 0 && (await idle(bulk)) > 2;
    });
    const { failed, waiting } = (await detail(bulk)).items;
    expect(failed).toBeGreaterThanOrEqual(32);
    // While the first were parked others were under way.
    expect(waiting).toBeGreaterThanOrEqual(70 - 64);
    const [first] = await items(bulk, { state: 'waiting', limit: '1' });
    expect(first.error.message).toContain('of this bulk wait for a person');
    house.appliance.fake!.clearFaults();
    const filter = { kind: 'bucket.delete', state: 'needs_attention' };
    const { count } = (await house.call(house.acme.viewer, 'GET', '/tenants/acme/totals/operations', { query: filter }))
      .body;
    await ended(house, operationOf(await start('retry-operations', { filter, count }, house.acme.operator)));
    await endedSoon(bulk);
    expect((await detail(bulk)).items).toMatchObject({ done: 70, failures: [] });
  });

  it('purges what is on its way into the bin when it has come there', async () => {
    const [id] = (await volumes('on-its-way')) as [string];
    await house.query("UPDATE trivet.volume SET state = 'deleting', updated_at = now() WHERE id = $1", [id]);
    const bulk = operationOf(await start('purge-volumes', { ids: [id] }));
    const tried = 'SELECT FROM trivet.bulk_item WHERE bulk_id = $1 AND tries > 0';
    await until('it was tried', async () => (await house.query(tried, [bulk])).length === 1);
    expect((await items(bulk))[0]).toMatchObject({ state: 'waiting', error: { kind: 'aborted' } });
    await house.query(
      "UPDATE trivet.volume SET state = 'binned', updated_at = now(), binned_until = now() + interval '1 day' WHERE id = $1",
      [id],
    );
    expect(await ended(house, bulk)).toBe('succeeded');
    expect((await detail(bulk)).items).toMatchObject({ done: 1, failures: [] });
    expect(await stateOf('volume', id)).toBe('gone');
  });

  /** Of operations; undefined: none. */
  const quota = async (value?: number): Promise<void> => {
    await house.query("DELETE FROM trivet.tenant_quota WHERE tenant_id = $1 AND key = 'operations'", [house.acme.id]);
    if (value === undefined) return;
    const insert = "INSERT INTO trivet.tenant_quota (tenant_id, key, value) VALUES ($1, 'operations', $2)";
    await house.query(insert, [house.acme.id, value]);
  };
  const idle = async (bulk: string): Promise<number> => {
    const idleOf = "SELECT coalesce((progress ->> 'idle')::int, 0) AS idle FROM trivet.operation WHERE id = $1";
    return (await house.query<{ idle: number }>(idleOf, [bulk]))[0]!.idle;
  };

  it('leaves its tenant half of the quota of operations', async () => {
    house.appliance.fake!.addFault({ method: 'inspectBucket', mode: 'fail-before', error: 'aborted', count: 10_000 });
    const ids = await createdBuckets(house, house.acme, ...Array.from({ length: 12 }, (_, n) => `of-quota-${n}`));
    await quota(10);
    const bulk = operationOf(await start('delete-buckets', { ids }));
    await until('it begins no more', async () => (await idle(bulk)) > 0);
    // With itself that is half.
    expect((await detail(bulk)).items).toMatchObject({ running: 4, waiting: 8 });
    const made = idOf(await makeVolume(house, house.acme, 'beside-a-bulk'));
    await quota();
    house.appliance.fake!.clearFaults();
    await until('all have ended', async () => {
      const now = "UPDATE trivet.operation SET next_run_at = now() WHERE state = 'pending' AND next_run_at > now()";
      await house.query(now);
      return (await stateOf('operation', bulk)) === 'succeeded';
    });
    expect((await detail(bulk)).items).toMatchObject({ done: 12, failures: [] });
    expect(await stateOf('volume', made)).toBe('ready');
    const attempts = "SELECT FROM trivet.operation_event WHERE operation_id = $1 AND type = 'attempt'";
    // However often it looked.
    expect((await house.query(attempts, [bulk])).length).toBeLessThanOrEqual(10);
  });

  it('waits for room in that quota without a try, and does what was refused when there is some', async () => {
    const id = await registerBucket(house, house.acme, 'let-go-by-quota');
    await quota(0);
    const bulk = operationOf(await start('delete-buckets', { ids: [id] }));
    await until('it was refused', async () => (await idle(bulk)) > 0);
    const [item] = await items(bulk);
    expect(item).toMatchObject({ state: 'waiting', operation: null, error: { kind: 'resource_exhausted' } });
    const tries = 'SELECT tries FROM trivet.bulk_item WHERE bulk_id = $1';
    expect(await house.query(tries, [bulk])).toEqual([{ tries: 0 }]);
    await quota();
    await house.query('UPDATE trivet.bulk_item SET try_at = now() WHERE bulk_id = $1', [bulk]);
    await house.query("UPDATE trivet.operation SET next_run_at = now() WHERE id = $1 AND state = 'pending'", [bulk]);
    expect(await ended(house, bulk)).toBe('succeeded');
    expect((await detail(bulk)).items).toMatchObject({ done: 1, failures: [] });
  });

  it('of operations is accepted whatever that quota says', async () => {
    await quota(0);
    const reply = await start('retry-operations', { ids: [randomUUID()] }, house.acme.operator);
    await quota();
    expect(reply.status, JSON.stringify(reply.body)).toBe(202);
    await ended(house, operationOf(reply));
  });

  it('is begun once by a repeat with its key', async () => {
    const [id] = await volumes('by-key');
    const headers = { 'idempotency-key': randomUUID() };
    const [first, again] = [
      await start('delete-volumes', { ids: [id] }, house.acme.admin, { headers }),
      await start('delete-volumes', { ids: [id] }, house.acme.admin, { headers }),
    ];
    expect(again.body).toEqual(first.body);
    await ended(house, operationOf(first));
  });

  it('does once what is named twice, also in capitals', async () => {
    const [id] = (await volumes('in-capitals')) as [string];
    const reply = await start('delete-volumes', { ids: [id, id.toUpperCase()] });
    expect(reply).toMatchObject({ status: 202, body: { count: 1 } });
    await ended(house, operationOf(reply));
    expect((await detail(operationOf(reply))).items).toMatchObject({ total: 1, done: 1 });
  });

  it('is refused without ids, with too many, and with what no list knows', async () => {
    for (const body of [
      {},
      { ids: [] },
      { ids: Array.from({ length: 1_001 }, () => randomUUID()) },
      { ids: ['x'] },
      { filter: {} },
      { filter: { colour: 'red' }, count: 1 },
      { ids: [randomUUID()], force: true },
    ])
      expect(await start('delete-volumes', body), JSON.stringify(body).slice(0, 80)).toMatchObject({
        status: 400,
        body: { code: 'invalid_argument' },
      });
  });

  it('takes its items along when it is forgotten', async () => {
    const bulk = operationOf(await start('delete-volumes', { ids: [randomUUID()] }));
    await ended(house, bulk);
    await house.query('DELETE FROM trivet.operation WHERE id = $1', [bulk]);
    expect(await house.query('SELECT FROM trivet.bulk_item WHERE bulk_id = $1', [bulk])).toEqual([]);
  });
});

describe('totals', () => {
  const total = async (list: string, query: Record<string, string> = {}) =>
    (await house.call(house.acme.viewer, 'GET', `/tenants/acme/totals/${list}`, { query })).body;

  it('count what the filters of a list match, and all volumes by what is tallied', async () => {
    const before = await total('volumes');
    const [id] = (await volumes('counted-1', 'counted-2')) as [string, string];
    const twice = String(2 * 8 * 1_048_576);
    const both = { count: 2, more: false, bytes: twice, digest: expect.stringMatching(/^[0-9a-f]{64}$/) };
    expect(await total('volumes', { search: 'counted-' })).toEqual(both);
    const after = await total('volumes');
    expect(after.count).toBe(before.count + 2);
    expect(BigInt(after.bytes) - BigInt(before.bytes)).toBe(BigInt(twice));
    const bin = await total('volumes', { state: 'binned' });
    await ended(house, operationOf(await start('delete-volumes', { ids: [id] })));
    const size = BigInt(8 * 1_048_576);
    const left = await total('volumes');
    expect(left).toMatchObject({ count: after.count - 1, bytes: String(BigInt(after.bytes) - size) });
    expect(await total('volumes', { state: 'binned' })).toMatchObject({
      count: bin.count + 1,
      bytes: String(BigInt(bin.bytes) + size),
    });
    const listed = async () =>
      (await house.call(house.acme.viewer, 'GET', '/tenants/acme/volumes', { query: { limit: '200' } })).body.items;
    expect(await listed()).toHaveLength(left.count);
    // The list shows what leaves the bin, and the totals are those of the list.
    const leave = "UPDATE trivet.volume SET state = 'deleting' WHERE id = $1 AND binned_until IS NOT NULL RETURNING id";
    expect(await house.query(leave, [id])).toHaveLength(1);
    expect((await total('volumes')).count).toBe(left.count + 1);
    expect(await listed()).toHaveLength(left.count + 1);
    await house.query("UPDATE trivet.volume SET state = 'binned' WHERE id = $1", [id]);
  });

  it('say which they are, and a bulk of others is refused', async () => {
    const [first] = (await volumes('which-1', 'which-2')) as [string, string];
    const filter = { search: 'which-' };
    const { count, digest } = await total('volumes', filter);
    await ended(house, operationOf(await start('delete-volumes', { ids: [first] })));
    await volumes('which-3');
    const refused = await start('delete-volumes', { filter, count, digest });
    expect(refused).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(refused.body.detail).toContain('2 match, but others');
    const now = await total('volumes', filter);
    expect(now.count).toBe(count);
    expect((await start('delete-volumes', { filter, count, digest: now.digest })).status).toBe(202);
  });

  it('of operations are a glance, unless all are asked for', async () => {
    const asked = { kind: 'volume.create', state: 'succeeded' };
    const { count, digest } = await total('operations', { ...asked, exact: 'true' });
    expect(await total('operations', asked)).toEqual({ count, digest, more: false, bytes: null });
    // None of them can be retried: each is an item that says so.
    const reply = await start('retry-operations', { filter: asked, count, digest });
    expect(reply).toMatchObject({ status: 202, body: { count } });
    await ended(house, operationOf(reply));
  });

  it('of a long list are not counted to their end', async () => {
    // Without triggers, which take longer than all else here.
    await house.query(
      `BEGIN;
       SET LOCAL session_replication_role = replica;
       INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
       SELECT '${house.acme.id}', gen_random_uuid(), '${house.acme.backends.fake}', 'long-' || n, 'registered', 'ready', '{}', 'x'
         FROM generate_series(1, 10001) AS n;
       COMMIT`,
    );
    expect(await total('buckets', { search: 'long-' })).toEqual({
      count: 10_000,
      more: true,
      bytes: null,
      digest: null,
    });
    const body = { filter: { search: 'long-' }, count: 10_000 };
    const refused = await start('delete-buckets', body);
    expect(refused.body.detail).toContain('more than 10000 match');
    await house.query(
      "BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM trivet.bucket WHERE name LIKE 'long-%'; COMMIT",
    );
  });

  it('of more volumes than are counted are what is tallied', async () => {
    const [first, second] = (await volumes('many-1', 'many-2', 'many-3')) as [string, string];
    const most = 2;
    const tallied = (filter: object) => totalVolumes(house.database, house.acme.id, filter, most);
    const { count } = await total('volumes');
    const bin = await total('volumes', { state: 'binned' });
    // The bin is not empty, and no tally knows its bytes.
    expect(await tallied({})).toEqual({ count, more: false, bytes: null, digest: null });
    expect(await tallied({ search: 'many-' })).toEqual({ count: most, more: true, bytes: null, digest: null });
    await ended(house, operationOf(await start('delete-volumes', { ids: [first, second] })));
    expect(await tallied({})).toMatchObject({ count: count - 2, more: false });
    const binned = { count: bin.count + 2, more: false, bytes: null, digest: null };
    expect(await tallied({ state: 'binned' })).toEqual(binned);
  });
});
