import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { SnapshotView } from '#storage/block/block-storage';
import { BlockHouse, volumeRequest } from '#test/block-storage/block-house';
import { ImageContent } from '#test/block-storage/image-content';
import { until } from '#test/support/parts';

const MIB = 1024n ** 2n;
const NOBODY = '01980000-0000-7000-8000-000000000000';

let house: BlockHouse;
let content: ImageContent;
beforeAll(async () => {
  house = await BlockHouse.create();
  content = new ImageContent(house);
});
afterAll(() => house?.close());
afterEach(() => void vi.restoreAllMocks());

const query = <Row = Record<string, unknown>>(text: string, params: unknown[] = []) =>
  house.testDatabase.query<Row>(text, params);
const operations = async (resourceId: string) =>
  (
    await query<{ kind: string; state: string }>(
      'SELECT kind, state FROM trivet.operation WHERE resource_id = $1 ORDER BY seq',
      [resourceId],
    )
  ).map(({ kind, state }) => `${kind} ${state}`);
const list = async (filter: { volumeId?: string; name?: string; holding?: boolean }): Promise<SnapshotView[]> => {
  const all: SnapshotView[] = [];
  for await (const page of house.snapshots.list(house.caller(), filter)) all.push(...page);
  return all;
};
const names = async (filter: Parameters<typeof list>[0]) => (await list(filter)).map(({ name }) => name);
const get = (id: string) => house.snapshots.get(house.caller(), id);
const remove = (id: string) => house.snapshots.delete(house.caller(), id);
const clone = (name: string, snapshotId: string) =>
  house.volume(name, { sizeBytes: undefined, source: { snapshotId } });
/** Holds a backend call until the test lets go; ends with its signal as adapters do. */
function hold(method: 'stage' | 'commit') {
  const { volumes } = house.store;
  const original = (volumes[method] as (...args: unknown[]) => Promise<void>).bind(volumes);
  let release!: () => void;
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  const held = vi.spyOn(volumes, method).mockImplementation(async (...args: unknown[]) => {
    const signal = args.at(-1) as AbortSignal;
    await Promise.race([
      released,
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
    ]);
    return original(...args);
  });
  return { release, begun: () => until(`${method} began`, () => held.mock.calls.length > 0) };
}
const inMaking = async (volumeId: string, name: string) => {
  const [row] = await until('it is accepted', async () => {
    const rows = await query<{ id: string }>(
      "SELECT id FROM trivet.snapshot WHERE volume_id = $1 AND name = $2 AND state = 'creating'",
      [volumeId, name],
    );
    return rows.length > 0 ? rows : undefined;
  });
  return row!.id;
};

describe('a snapshot', () => {
  it('holds what the volume held, whatever is written later, and cannot be written', async () => {
    const { id: volumeId, name: volumeName } = await house.volume('content');
    await content.write(volumeId, 0, 1);
    const made = await house.snapshot(volumeId, 's', { description: 'first', config: { online: false } });
    await content.write(volumeId, 0, 2);
    expect(made).toMatchObject({ name: 's', volumeId, volumeName, sizeBytes: 64n * MIB, ready: true, inUse: false });
    expect(made).toMatchObject({ description: 'first', config: { online: false } });
    expect(await content.read('snapshot', made.id, 2)).toEqual([1, 0]);
    expect(await content.inspect('snapshot', made.id)).toMatchObject({ state: 'present', readOnly: true });
    expect(await get(made.id)).toEqual(made);
    expect(Math.abs(made.createdAt.getTime() - Date.now())).toBeLessThan(60_000);
  });

  it('keeps the size that the volume had', async () => {
    const { id: volumeId } = await house.volume('grown', { sizeBytes: 10n * MIB + 512n });
    const before = await house.snapshot(volumeId, 'before');
    await house.volumes.update(house.caller(), volumeId, { sizeBytes: 20n * MIB });
    const after = await house.snapshot(volumeId, 'after');
    expect([before.sizeBytes, after.sizeBytes]).toEqual([10n * MIB + 512n, 20n * MIB]);
    expect((await get(before.id)).sizeBytes).toBe(10n * MIB + 512n);
  });

  it('is one of twenty parallel creations of a name', async () => {
    const { id: volumeId } = await house.volume('twenty');
    const made = await Promise.all(Array.from({ length: 20 }, () => house.snapshot(volumeId, 'same')));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(await operations(made[0]!.id)).toEqual(['snapshot.create succeeded']);
    expect(await query('SELECT next_cut FROM trivet.volume WHERE id = $1', [volumeId])).toEqual([{ next_cut: '2' }]);
  });

  it('is found again under its name, without another operation', async () => {
    const { id: volumeId } = await house.volume('again');
    const first = await house.snapshot(volumeId, 's');
    expect(await house.snapshot(volumeId, 's', { description: 'other' })).toEqual(first);
    expect(await operations(first.id)).toHaveLength(1);
    const other = await house.volume('again-elsewhere');
    expect((await house.snapshot(other.id, 's')).id).not.toBe(first.id);
  });

  it('is not needed any more once it is deleted, and its name is free', async () => {
    const { id: volumeId } = await house.volume('deleted');
    const { id } = await house.snapshot(volumeId, 's');
    await house.outOfIndex();
    await remove(id);
    expect(await content.inspect('snapshot', id)).toEqual({ state: 'absent' });
    await expect(get(id)).rejects.toMatchObject({ kind: 'not_found' });
    await expect(remove(id)).rejects.toMatchObject({ kind: 'not_found' });
    expect(await names({ volumeId })).toEqual([]);
    expect((await house.snapshot(volumeId, 's')).id).not.toBe(id);
  });

  it.each(['', 'x', 'reallyfakesnapshotid', NOBODY])('is not known by %j', async id => {
    await expect(get(id)).rejects.toMatchObject({ kind: 'not_found' });
    await expect(remove(id)).rejects.toMatchObject({ kind: 'not_found' });
    await expect(house.snapshot(id, 's')).rejects.toMatchObject({ kind: 'not_found' });
    expect(await names({ volumeId: id })).toEqual([]);
    expect(await names({ volumeId: id, name: 's' })).toEqual([]);
  });
});

describe('lists', () => {
  it('follow the order of the cuts, and say whether one holds the volume', async () => {
    const { id: volumeId } = await house.volume('ordered');
    for (const name of ['c', 'a', 'd', 'b']) await house.snapshot(volumeId, name);
    expect(await names({ volumeId })).toEqual(['c', 'a', 'd', 'b']);
    expect(await names({ volumeId, holding: true })).toHaveLength(1);
    const all = (await list({})).filter(snapshot => snapshot.volumeId === volumeId);
    expect(all.map(({ name }) => name)).toEqual(['c', 'a', 'd', 'b']);
  });

  it('find a name at its volume, else at another one', async () => {
    const [one, two] = [await house.volume('named-1'), await house.volume('named-2')];
    const snapshot = await house.snapshot(one.id, 'only-here');
    expect(await list({ volumeId: one.id, name: 'only-here' })).toEqual([snapshot]);
    expect(await list({ volumeId: two.id, name: 'only-here' })).toEqual([snapshot]);
    expect(await list({ volumeId: NOBODY, name: 'only-here' })).toEqual([]);
    const own = await house.snapshot(two.id, 'only-here');
    expect(await list({ volumeId: two.id, name: 'only-here' })).toEqual([own]);
    expect(await list({ name: 'only-here' })).toHaveLength(2);
    expect(await list({ volumeId: one.id, name: 'nowhere' })).toEqual([]);
  });
});

describe('a creation is refused', () => {
  const refused = async (volumeId: string, error: Record<string, unknown>, asked: { force?: boolean } = {}) => {
    await expect(house.snapshot(volumeId, 'refused', asked)).rejects.toMatchObject(error);
    await house.settled();
    expect(await query("SELECT FROM trivet.snapshot WHERE volume_id = $1 AND state <> 'gone'", [volumeId])).toEqual([]);
    const left = (await house.images()).filter(({ kind }) => kind === 'temporary');
    expect(left).toEqual([]);
  };

  it('while its volume is not complete', async () => {
    const held = hold('stage');
    const { id } = await house.volumes.create(house.caller(0), volumeRequest('incomplete'));
    await expect(house.snapshot(id, 's')).rejects.toMatchObject({ kind: 'aborted' });
    held.release();
    await house.settled();
  });

  it('when its volume is lost, with the reason', async () => {
    const { id } = await house.volume('lost');
    const condition = { type: 'lost', message: 'its image is missing' };
    await query('UPDATE trivet.volume SET condition = $2 WHERE id = $1', [id, JSON.stringify(condition)]);
    await refused(id, { kind: 'failed_precondition', message: expect.stringContaining('its image is missing') });
  });

  it('in a pool above 85 %, with the words that drivers look for; what is there is still answered', async () => {
    const { id } = await house.volume('full');
    const before = await house.snapshot(id, 'before');
    await query('UPDATE trivet.pool SET used_bytes = total_bytes * 0.86');
    await expect(house.snapshot(id, 'after')).rejects.toMatchObject({
      kind: 'resource_exhausted',
      message: expect.stringContaining('insufficient storage space'),
    });
    expect(await house.snapshot(id, 'before')).toEqual(before);
    await query("UPDATE trivet.pool SET used_bytes = 0, state = 'down', reason = 'unplugged'");
    await expect(house.snapshot(id, 'after')).rejects.toMatchObject({ kind: 'unavailable' });
    await query("UPDATE trivet.pool SET state = 'up'");
    await house.snapshot(id, 'after');
  });

  it('when a published volume would be copied for longer than writers may stand still', async () => {
    const { id } = await house.volume('slow-copy');
    const { uuid } = await house.host('slow-copy');
    await house.publications.publish(house.caller(), id, { host: uuid, accessProtocol: 'iscsi' });
    vi.spyOn(house.store.volumes, 'predictCut').mockResolvedValue({ extents: 12_345, more: false, stallMs: 2_500 });
    await refused(id, { kind: 'failed_precondition', message: expect.stringMatching(/2500 ms.*12345 extents/) });
    // Whoever asks for it all the same would get a torn copy.
    await refused(id, { kind: 'failed_precondition' }, { force: true });
    await house.publications.unpublish(house.caller(), id, uuid);
    expect(await house.snapshot(id, 'quiet')).toMatchObject({ ready: true });
  });
});

describe('a snapshot with a clone', () => {
  it('stays while callers see the clone', async () => {
    const { id: volumeId } = await house.volume('cloned');
    const { id } = await house.snapshot(volumeId, 's');
    const { id: cloneId } = await clone('cloned-clone', id);
    expect(await get(id)).toMatchObject({ inUse: true });
    await expect(remove(id)).rejects.toMatchObject({
      kind: 'failed_precondition',
      field: 'clones',
      message: expect.stringContaining('Snapshot s for volume cloned has a clone.'),
    });
    await house.volumes.delete(house.caller(), cloneId, { force: false });
    expect(await get(id)).toMatchObject({ inUse: false });
    await remove(id);
  });

  it('may go when the clone is in the recycle bin, which needs no snapshot to come back', async () => {
    const { id: volumeId } = await house.volume('cloned-binned');
    const { id } = await house.snapshot(volumeId, 's');
    const { id: cloneId } = await house.volume('binned-clone', {
      sizeBytes: undefined,
      source: { snapshotId: id },
      destroyOnDelete: false,
    });
    await house.volumes.delete(house.caller(), cloneId, { force: false });
    await remove(id);
    expect(await content.inspect('volume', cloneId)).toMatchObject({ state: 'present' });
  });

  it('is busy while the clone is being made from it', async () => {
    const { id: volumeId } = await house.volume('cloning');
    const { id } = await house.snapshot(volumeId, 's');
    const held = hold('stage');
    const cloning = clone('cloning-clone', id);
    await held.begun();
    await expect(remove(id)).rejects.toMatchObject({ kind: 'aborted', field: 'clones' });
    held.release();
    await cloning;
    await expect(remove(id)).rejects.toMatchObject({ kind: 'failed_precondition' });
  });
});

describe('negation', () => {
  it.each(['stage', 'commit'] as const)(
    'a deletion ends the creation that is in %s, and leaves nothing',
    async method => {
      const { id: volumeId } = await house.volume(`negated-${method}`);
      const held = hold(method);
      const creating = house.snapshot(volumeId, 's');
      const aborted = expect(creating).rejects.toMatchObject({ kind: 'aborted' });
      await held.begun();
      const id = await inMaking(volumeId, 's');
      expect(await get(id)).toMatchObject({ ready: false });
      expect(await names({ volumeId })).toEqual([]);
      const deleting = remove(id);
      // It does not join what is being undone.
      await until('the deletion is accepted', async () => (await operations(id)).length === 2);
      await expect(house.snapshot(volumeId, 's')).rejects.toMatchObject({ kind: 'aborted' });
      if (method === 'commit') held.release();
      await aborted;
      await deleting;
      held.release();
      expect(await operations(id)).toEqual(['snapshot.create cancelled', 'snapshot.delete succeeded']);
      expect((await house.images()).map(image => image.id)).not.toContain(id);
      vi.restoreAllMocks();
      const again = await house.snapshot(volumeId, 's');
      expect(again.id).not.toBe(id);
      expect(await query('SELECT cut FROM trivet.snapshot WHERE id = $1', [again.id])).toEqual([{ cut: '1' }]);
    },
  );
});

it('has left no slot, no temporary and nothing parked', async () => {
  await house.settled();
  expect(await query('SELECT FROM trivet.operation_slot')).toEqual([]);
  expect(await query("SELECT FROM trivet.operation WHERE state = 'needs_attention'")).toEqual([]);
  expect((await house.images()).filter(({ kind }) => kind === 'temporary')).toEqual([]);
});
