import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DaemonRef, Exporter, TargetSpec } from '#backends/exporter';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { emptiestDaemon } from '#storage/block/pools/pool-daemons';
import { ExportSupervisor } from '#storage/block/publications/export-supervisor';
import { BlockHouse } from '#test/block-storage/block-house';
import { until } from '#test/support/parts';
import { targetName } from '#test/support/target-name';

/** A pool with two daemons, in PostgreSQL alone; with tgtd they are in test/block-e2e. */
const SETS = [['127.0.0.1:3260'], ['127.0.0.2:3260']];
const HOME = 'node-b';
const PLACED = sql(
  'test_placed',
  `UPDATE trivet.volume SET tid = 900, target = '{"name": "of-a-test"}' WHERE tenant_id = $1 AND id = $2`,
);
const PUBLISHED = sql(
  'test_published',
  `INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state)
   SELECT $1, $2, $3, id, 'iscsi', 'wanted' FROM trivet.host WHERE tenant_id = $1 AND uuid = $4`,
);
const TAKEN_AWAY = sql('test_taken_away', 'DELETE FROM trivet.publication WHERE tenant_id = $1 AND volume_id = $2');

let house: BlockHouse;
let host: string;
beforeAll(async () => {
  house = await BlockHouse.create();
  ({ uuid: host } = await house.host('node'));
  await house.testDatabase.query('UPDATE trivet.pool SET portals = $1, portal_sets = $2', [
    SETS.flat(),
    JSON.stringify(SETS),
  ]);
});
afterAll(() => house?.close());

const publish = (volumeId: string) =>
  house.publications.publish(house.caller(), volumeId, { host, accessProtocol: 'iscsi' });
const unpublish = (volumeId: string) => house.publications.unpublish(house.caller(), volumeId, host);
const placeOf = async (volumeId: string): Promise<number | undefined> => {
  const [row] = await house.testDatabase.query<{ daemon: number | null }>(
    `SELECT (v.target ->> 'daemon')::int AS daemon FROM trivet.volume v JOIN trivet.publication p ON p.volume_id = v.id WHERE v.id = $1`,
    [volumeId],
  );
  return row && (row.daemon ?? 0);
};
const supervisor = (name?: string) =>
  new ExportSupervisor(house.parts.database, { open: async () => house.store }, undefined, name);
const served = (volumeId: string) => house.store.exporter.targets.has(targetName(volumeId));
const replay = async (volumeId: string) => {
  const [row] = await house.testDatabase.query<{ state: string; failed: boolean }>(
    "SELECT state, error IS NOT NULL AS failed FROM trivet.operation WHERE kind = 'volume.replay' AND resource_id = $1 ORDER BY created_at DESC LIMIT 1",
    [volumeId],
  );
  return row;
};
/** Until then no target is made. */
function held(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { exporter } = house.store;
  const apply = exporter.applyTarget.bind(exporter);
  exporter.applyTarget = async (spec: TargetSpec) => {
    await promise;
    return apply(spec);
  };
  return () => {
    exporter.applyTarget = apply;
    resolve();
  };
}

it('gives the second of two publications at once the daemon that the first one has not taken', async () => {
  const [{ id: first }, { id: second }] = [await house.volume('first'), await house.volume('second')];
  const { database } = house.parts;
  const { tenantId, backendId } = house;
  const [chosen, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const one = database.withTenant(tenantId, async tx => {
    const place = { tenantId, backendId };
    const nth = await emptiestDaemon(tx, place, { name: 'default', portalSets: SETS }, first);
    await tx.query(PLACED, [tenantId, first]);
    await tx.query(PUBLISHED, [tenantId, uuidv7(), first, host]);
    chosen.resolve();
    await end.promise;
    return nth;
  });
  await chosen.promise;
  const other = publish(second);
  const waits = () =>
    house.testDatabase.query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").then(rows => rows[0]);
  await Promise.race([other, until('it waits for the first one', waits)]);
  end.resolve();
  expect(await one).toBe(0);
  await other;
  expect(await placeOf(second)).toBe(1);
  await unpublish(second);
  await database.withTenant(tenantId, tx => tx.query(TAKEN_AWAY, [tenantId, first]));
});

it('counts a volume that is published again before it is served', async () => {
  const [{ id: one }, { id: other }] = [await house.volume('again'), await house.volume('beside')];
  for (const id of [one, other]) {
    await publish(id);
    await unpublish(id);
  }
  const release = held();
  try {
    const first = publish(one);
    await until('it has a daemon', async () => (await placeOf(one)) !== undefined);
    const second = publish(other);
    await until('the other one has a daemon', async () => (await placeOf(other)) !== undefined);
    expect([await placeOf(one), await placeOf(other)]).toEqual([0, 1]);
    release();
    await Promise.all([first, second]);
  } finally {
    release();
  }
  for (const id of [one, other]) await unpublish(id);
});

it('removes what a worker has made late at a daemon that the volume is not at any more', async () => {
  const { id } = await house.volume('elsewhere');
  await publish(id);
  expect(await placeOf(id)).toBe(0);
  await house.settled();
  const removed: { nth: number | undefined; fence: string }[] = [];
  const late: Partial<Exporter> = {
    suspectTargets: async ({ nth }: DaemonRef) =>
      nth === 1 && removed.length === 0 ? [{ tid: 7, iqn: targetName(id), fence: '77' }] : [],
    removeTarget: async ({ daemon: { nth } }, _, fence) => {
      removed.push({ nth, fence });
      return 'removed';
    },
  };
  const store = { ...house.store, exporter: Object.assign(Object.create(house.store.exporter), late) };
  await new ExportSupervisor(house.parts.database, { open: async () => store }).run(AbortSignal.timeout(10_000));
  expect(removed).toEqual([{ nth: 1, fence: '77' }]);
  expect(await replay(id)).toBeUndefined();
  expect(served(id)).toBe(true);
  await unpublish(id);
});

it('applies a target again by itself when a daemon that was full has room', async () => {
  const { id } = await house.volume('full');
  await publish(id);
  await house.settled();
  const { exporter } = house.store;
  exporter.restart();
  exporter.failure = new StorageError('resource_exhausted', 'tgtd serves 100 volumes, and 100 at most');
  await supervisor().run(AbortSignal.timeout(10_000));
  await until('it was refused', async () => (await replay(id))?.failed);
  expect((await replay(id))?.state).not.toBe('needs_attention');
  exporter.failure = undefined;
  await until('it is served', () => served(id));
  await house.settled();
  await unpublish(id);
});

it('serves at once what a host has just taken over, whatever the one before has said and waited for', async () => {
  const { id } = await house.volume('taken-over');
  await publish(id);
  await house.settled();
  const { exporter } = house.store;
  exporter.restart();
  exporter.failure = new StorageError('unavailable', 'the cluster is out of reach');
  await supervisor().run(AbortSignal.timeout(10_000));
  await until('it has failed', async () => (await replay(id))?.failed);
  await until('it waits', async () => {
    const waiting = `UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE kind = 'volume.replay' AND state = 'pending'
      RETURNING id`;
    return (await house.testDatabase.query(waiting)).length > 0;
  });
  exporter.failure = undefined;
  const { tenantId, backendId } = house;
  await house.testDatabase.query("UPDATE trivet.pool SET state = 'down', reason = 'the cluster is out of reach'");
  await house.testDatabase.query(
    "INSERT INTO trivet.pool_home (tenant_id, backend_id, pool, host) VALUES ($1, $2, 'default', $3)",
    [tenantId, backendId, HOME],
  );
  const state = async () => (await house.testDatabase.query<{ state: string }>('SELECT state FROM trivet.pool'))[0];
  await supervisor('node-c').serve(tenantId, backendId, 'default', { sees: true });
  expect(await state()).toEqual({ state: 'down' });
  // A worker that starts while the cluster is away has nothing to say of it.
  await supervisor(HOME).serve(tenantId, backendId, 'default', { sees: false });
  expect(await state()).toEqual({ state: 'down' });
  await supervisor(HOME).serve(tenantId, backendId, 'default', { sees: true });
  expect(await state()).toEqual({ state: 'up' });
  await until('it is served', () => served(id));
  await house.settled();
  await house.testDatabase.query('DELETE FROM trivet.pool_home');
  await unpublish(id);
});
