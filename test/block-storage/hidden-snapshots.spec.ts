import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { HiddenSnapshotReaper } from '#storage/block/snapshots/hidden-snapshot-reaper';
import { BlockHouse } from '#test/block-storage/block-house';
import { ImageContent } from '#test/block-storage/image-content';

/** What a caller makes to clone a volume, and forgets (docs/callers.md#snapshots-for-clones). */
const NAME = 'for-a-clone';
const hide = (volumeId: string, name = NAME) => house.snapshot(volumeId, name, { hidden: true });

let house: BlockHouse;
let content: ImageContent;
beforeAll(async () => {
  house = await BlockHouse.create();
  content = new ImageContent(house);
});
afterAll(() => house?.close());

const query = <Row = Record<string, unknown>>(text: string, params: unknown[] = []) =>
  house.testDatabase.query<Row>(text, params);
const reap = async () => {
  await new HiddenSnapshotReaper(house.parts.database).run(AbortSignal.timeout(10_000));
  await house.settled();
};
const older = (id: string, by: string) =>
  query('UPDATE trivet.snapshot SET updated_at = now() - $2::interval WHERE id = $1', [id, by]);
const lives = async (id: string) => {
  const image = await content.inspect('snapshot', id);
  const [row] = await query<{ state: string }>('SELECT state FROM trivet.snapshot WHERE id = $1', [id]);
  expect(image.state).toBe(row!.state === 'ready' ? 'present' : 'absent');
  return row!.state === 'ready';
};
const clone = (name: string, snapshotId: string, changes = {}) =>
  house.volume(name, { sizeBytes: undefined, source: { snapshotId }, ...changes });
const removeVolume = (id: string) => house.volumes.delete(house.caller(), id, { force: false });
const source = async (name: string) => {
  const { id } = await house.volume(name);
  await content.write(id, 0, 7);
  return id;
};
const names = async (filter: { volumeId?: string; name?: string }) => {
  const found: string[] = [];
  for await (const page of house.snapshots.list(house.caller(), filter)) found.push(...page.map(({ name }) => name));
  return found;
};

describe('a snapshot for a clone', () => {
  it('is in no list, but is found by its id, and again in the same second', async () => {
    const volumeId = await source('listed');
    const hidden = await hide(volumeId);
    expect(await hide(volumeId)).toEqual(hidden);
    expect(await house.snapshots.get(house.caller(), hidden.id)).toEqual(hidden);
    const seen = await house.snapshot(volumeId, 'seen');
    expect(await names({ volumeId })).toEqual(['seen']);
    expect(await names({ volumeId, name: NAME })).toEqual([]);
    expect(await names({ name: NAME })).toEqual([]);
    expect(await names({})).not.toContain(NAME);
    // It is in no chain of changes either.
    const cuts = await query('SELECT id, cut FROM trivet.snapshot WHERE volume_id = $1 ORDER BY id', [volumeId]);
    expect(cuts).toEqual([
      { id: hidden.id, cut: null },
      { id: seen.id, cut: '1' },
    ]);
  });

  it('stays while a clone of it lives, whatever its age, and goes with the last one', async () => {
    const volumeId = await source('lives');
    const { id } = await hide(volumeId);
    const [one, two] = [await clone('lives-1', id), await clone('lives-2', id)];
    expect(await content.read('volume', one.id, 1)).toEqual([7]);
    await older(id, '2 days');
    await reap();
    expect(await lives(id)).toBe(true);
    await removeVolume(one.id);
    await reap();
    expect(await lives(id)).toBe(true);
    await removeVolume(two.id);
    await reap();
    expect(await lives(id)).toBe(false);
    expect(await content.inspect('volume', volumeId)).toMatchObject({ state: 'present' });
  });

  it('waits an hour for its first clone, and a minute for the next one', async () => {
    const volumeId = await source('waits');
    const { id } = await hide(volumeId);
    await older(id, '59 minutes');
    await reap();
    expect(await lives(id)).toBe(true);
    await older(id, '30 seconds');
    await removeVolume((await clone('waits-clone', id)).id);
    await reap();
    expect(await lives(id)).toBe(true);
    await older(id, '90 seconds');
    await reap();
    expect(await lives(id)).toBe(false);

    const unused = await hide(volumeId);
    expect(unused.id).not.toBe(id);
    await older(unused.id, '61 minutes');
    await reap();
    expect(await lives(unused.id)).toBe(false);
  });

  it('does not wait for a clone in the recycle bin', async () => {
    const volumeId = await source('bin');
    const { id } = await hide(volumeId);
    await removeVolume((await clone('bin-clone', id, { destroyOnDelete: false })).id);
    await older(id, '2 minutes');
    await reap();
    expect(await lives(id)).toBe(false);
  });

  it('stands neither in the way of its volume, nor of the clone that outlives both', async () => {
    const volumeId = await source('outlived');
    const { id } = await hide(volumeId);
    const { id: cloneId } = await clone('outlives', id);
    await removeVolume(volumeId);
    expect(await lives(id)).toBe(false);
    expect(await content.read('volume', cloneId, 1)).toEqual([7]);
  });

  it('may be deleted by the driver although it has a clone', async () => {
    const volumeId = await source('tidy');
    const { id } = await hide(volumeId);
    await clone('tidy-clone', id);
    await house.snapshots.delete(house.caller(), id);
    expect(await lives(id)).toBe(false);
  });

  it('is looked for of every tenant, of some of them in a round', async () => {
    await hide(await source('turn'));
    // Ids follow the time: its turn comes after that of the house's tenant, which uses up the round.
    const [tenant, backend, volume, snapshot] = [uuidv7(), uuidv7(), uuidv7(), uuidv7()];
    await query("INSERT INTO trivet.tenant (id, name) VALUES ($1, 'later')", [tenant]);
    await query(
      `INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
       SELECT $1, $2, name, kind, config FROM trivet.backend WHERE tenant_id = $3`,
      [tenant, backend, house.tenantId],
    );
    await query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
              thick, destroy_on_delete, description, config)
       VALUES ($1, $2, $3, 'of-later', 'gone', '{}', '', 'default', '', 1024, false, true, '', '{}')`,
      [tenant, volume, backend],
    );
    await query(
      `INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool, folder)
       VALUES ($1, $2, $3, $4, 'for-a-clone', 'ready', true, '', '{}', 'default', '')`,
      [tenant, snapshot, backend, volume],
    );
    const reaper = new HiddenSnapshotReaper(house.parts.database, 1);
    const asked = () => query('SELECT kind FROM trivet.operation WHERE resource_id = $1', [snapshot]);
    expect(await reaper.run(AbortSignal.timeout(10_000))).toBeUndefined();
    expect(await asked()).toEqual([]);
    await reaper.run(AbortSignal.timeout(10_000));
    expect(await asked()).toEqual([{ kind: 'snapshot.delete' }]);
    await house.settled();
  });

  it('is reaped once by two workers', async () => {
    const volumeId = await source('twice');
    const made = [];
    for (let second = 10; second < 15; second++) made.push(await hide(volumeId, `${NAME}-${second}`));
    for (const { id } of made) await older(id, '2 hours');
    await Promise.all([reap(), reap(), reap()]);
    for (const { id } of made) {
      expect(await lives(id)).toBe(false);
      const done = await query("SELECT FROM trivet.operation WHERE resource_id = $1 AND kind = 'snapshot.delete'", [
        id,
      ]);
      expect(done).toHaveLength(1);
    }
  });

  it('is never one that a caller may want', async () => {
    const volumeId = await source('wanted');
    const { id } = await house.snapshot(volumeId, 'snap-for-clone-2026-11-20T10:32:45+05:30');
    await older(id, '1 year');
    await reap();
    expect(await lives(id)).toBe(true);
  });
});
