import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { xfsFolder } from '#test/block-backend/file-harness';
import { BlockHouse } from '#test/block-storage/block-house';
import { CountingWriter, counterIn } from '#test/block-storage/counting-writer';
import { ImageContent } from '#test/block-storage/image-content';
import { until } from '#test/support/parts';

const MIB = 1024n ** 2n;
const NOBODY = '01980000-0000-7000-8000-000000000000';

describe.each([
  { pool: 'that copies', copies: true },
  { pool: 'that shares blocks', copies: false },
])('groups in a pool $pool', ({ copies }) => {
  const under = copies ? undefined : xfsFolder();
  const where = copies || under ? describe : describe.skip;
  let house: BlockHouse;
  let content: ImageContent;
  const writers: CountingWriter[] = [];
  beforeAll(async () => {
    if (!copies && !under) return;
    house = await BlockHouse.create({ under });
    content = new ImageContent(house);
  });
  afterAll(() => house?.close());
  afterEach(async () => {
    vi.restoreAllMocks();
    for (const writer of writers.splice(0)) await writer.stop();
  });

  const query = <Row = Record<string, unknown>>(text: string, params: unknown[] = []) =>
    house.testDatabase.query<Row>(text, params);
  const volumeGroup = (name: string, changes = {}) =>
    house.volumeGroups.create(house.caller(), { name, description: '', config: {}, ...changes });
  const cut = (volumeGroupId: string, name: string) =>
    house.snapshotGroups.create(house.caller(), { name, volumeGroupId, description: '', config: {} });
  const member = (name: string, volumeGroupId: string) => house.volume(name, { sizeBytes: MIB, volumeGroupId });
  const group = async (name: string, members = 3) => {
    const { id } = await volumeGroup(name);
    const volumes = [];
    for (let n = 1; n <= members; n++) volumes.push(await member(`${name}-${n}`, id));
    return { id, volumes };
  };
  const snapshotsOf = async (volumeId: string) => {
    const found = [];
    for await (const page of house.snapshots.list(house.caller(), { volumeId })) found.push(...page);
    return found;
  };
  const remove = (id: string) => house.snapshotGroups.delete(house.caller(), id);
  /** The exporter says that it is the one who writes. */
  const writerTo = async (volumes: readonly { id: string }[]) => {
    const writer = await CountingWriter.start(volumes.map(({ id }) => content.path('volume', id)));
    writers.push(writer);
    vi.spyOn(house.store.exporter, 'writers').mockResolvedValue([writer.pid]);
    return writer;
  };
  const nothingLeft = async (volumes: readonly { id: string }[]) => {
    await house.settled();
    for (const { id } of volumes) expect(await snapshotsOf(id)).toEqual([]);
    const ids = volumes.map(({ id }) => id);
    expect(await query("SELECT FROM trivet.snapshot WHERE volume_id = ANY ($1) AND state <> 'gone'", [ids])).toEqual(
      [],
    );
    const dead = await query<{ id: string }>('SELECT id FROM trivet.snapshot WHERE volume_id = ANY ($1)', [ids]);
    const there = (await house.images()).map(({ id }) => id);
    for (const { id } of dead) expect(there).not.toContain(id);
  };

  where('a snapshot group', () => {
    it('holds all its volumes as of one instant while a writer is busy', async () => {
      const { id, volumes } = await group('busy');
      await writerTo(volumes);
      // In the order in which the writer writes.
      const order = volumes.map(volume => volume.id);
      for (let round = 1; round <= 5; round++) {
        const { snapshots } = await cut(id, `instant-${round}`);
        expect(snapshots.map(({ volumeId }) => volumeId).sort()).toEqual([...order].sort());
        const counters = order.map(volumeId => {
          const snapshot = snapshots.find(candidate => candidate.volumeId === volumeId)!;
          return counterIn(content.path('snapshot', snapshot.id));
        });
        expect(counters[0]).toBeGreaterThan(0n);
        for (let n = 1; n < counters.length; n++) expect(counters[n - 1]! - counters[n]!).toBeGreaterThanOrEqual(0n);
        expect(counters[0]! - counters.at(-1)!).toBeLessThanOrEqual(1n);
        // It goes on.
        const now = counterIn(content.path('volume', order[0]!));
        await until('the writer writes', () => counterIn(content.path('volume', order[0]!)) > now);
      }
    });

    it('is answered on a repeat, with the snapshots that it made', async () => {
      const { id, volumes } = await group('repeated', 2);
      const made = await cut(id, 'g');
      expect(made).toMatchObject({ name: 'g', volumeGroupId: id });
      expect(made.snapshots.map(snapshot => [snapshot.name, snapshot.volumeName]).sort()).toEqual([
        ['g', 'repeated-1'],
        ['g', 'repeated-2'],
      ]);
      expect(await cut(id, 'g')).toEqual(made);
      expect(await house.snapshotGroups.get(house.caller(), made.id)).toEqual(made);
      expect(await house.snapshotGroups.list(house.caller(), { volumeGroupId: id })).toEqual([made]);
      expect(await snapshotsOf(volumes[0]!.id)).toEqual([made.snapshots.find(one => one.volumeId === volumes[0]!.id)]);
      const parallel = await Promise.all(Array.from({ length: 10 }, () => cut(id, 'parallel')));
      expect(new Set(parallel.map(one => one.id)).size).toBe(1);
    });

    it('takes another name where a volume has a snapshot of its name', async () => {
      const { id, volumes } = await group('taken', 1);
      await house.snapshot(volumes[0]!.id, 'g');
      const made = await cut(id, 'g');
      expect(made.snapshots[0]!.name).toBe(`g-${made.id}`);
    });

    it('goes with its snapshots; with a clone of one it stays, whole', async () => {
      const { id, volumes } = await group('gone', 2);
      const made = await cut(id, 'g');
      const { id: cloneId } = await house.volume('gone-clone', {
        sizeBytes: undefined,
        source: { snapshotId: made.snapshots[1]!.id },
      });
      await expect(remove(made.id)).rejects.toMatchObject({ kind: 'failed_precondition', field: 'clones' });
      expect((await house.snapshotGroups.get(house.caller(), made.id)).snapshots).toHaveLength(2);
      await house.volumes.delete(house.caller(), cloneId, { force: false });
      await house.outOfIndex();
      await remove(made.id);
      await expect(house.snapshotGroups.get(house.caller(), made.id)).rejects.toMatchObject({ kind: 'not_found' });
      await expect(remove(made.id)).rejects.toMatchObject({ kind: 'not_found' });
      await nothingLeft(volumes);
    });

    it('shows what is left when one of its snapshots was deleted, and goes with that', async () => {
      const { id, volumes } = await group('thinned', 2);
      const made = await cut(id, 'g');
      await house.outOfIndex();
      await house.snapshots.delete(house.caller(), made.snapshots[0]!.id);
      expect((await house.snapshotGroups.get(house.caller(), made.id)).snapshots).toEqual([made.snapshots[1]]);
      await remove(made.id);
      await nothingLeft(volumes);
    });
  });

  where('a creation that cannot be', () => {
    it('has no volumes, or no group', async () => {
      const { id } = await volumeGroup('empty');
      await expect(cut(id, 'g')).rejects.toMatchObject({ kind: 'failed_precondition' });
      for (const unknown of ['', 'x', NOBODY])
        await expect(cut(unknown, 'g')).rejects.toMatchObject({ kind: 'not_found' });
    });

    it('has a volume that is lost', async () => {
      const { id, volumes } = await group('with-lost', 2);
      const condition = JSON.stringify({ type: 'lost', message: 'its image is missing' });
      await query('UPDATE trivet.volume SET condition = $2 WHERE id = $1', [volumes[1]!.id, condition]);
      await expect(cut(id, 'g')).rejects.toMatchObject({
        kind: 'failed_precondition',
        message: expect.stringContaining('its image is missing'),
      });
      await query('UPDATE trivet.volume SET condition = NULL WHERE id = $1', [volumes[1]!.id]);
      await nothingLeft(volumes);
    });

    it('would stop the writers for longer than they may be, by the sum of its members', async () => {
      const { id, volumes } = await group('predicted', 2);
      vi.spyOn(house.store.volumes, 'predictCut').mockResolvedValue({ extents: 60_000, more: false, stallMs: 1_100 });
      await expect(cut(id, 'g')).rejects.toMatchObject({
        kind: 'failed_precondition',
        message: expect.stringMatching(/2200 ms.*120000 extents/),
      });
      await nothingLeft(volumes);
    });

    it('takes longer than predicted: the writers go on, nothing is left, and it is not tried again by itself', async () => {
      const { id, volumes } = await group('late', 2);
      const writer = await writerTo(volumes);
      const original = house.store.volumes.stageTogether.bind(house.store.volumes);
      const staged = vi
        .spyOn(house.store.volumes, 'stageTogether')
        .mockImplementation((cuts, pause, signal) => original(cuts, { ...pause, deadlineMs: 0 }, signal));
      await expect(cut(id, 'g')).rejects.toMatchObject({ kind: 'unavailable' });
      await nothingLeft(volumes);
      expect(staged).toHaveBeenCalledOnce();
      expect(writer.state()).not.toBe('T');
      staged.mockRestore();
      expect((await cut(id, 'g')).snapshots).toHaveLength(2);
    });

    it('was deleted while it was made', async () => {
      const { id, volumes } = await group('negated', 2);
      const original = house.store.volumes.commit.bind(house.store.volumes);
      let release!: () => void;
      const released = new Promise<void>(resolve => {
        release = resolve;
      });
      let commits = 0;
      // One has its name already, the other is held.
      vi.spyOn(house.store.volumes, 'commit').mockImplementation(async (...args) => {
        if (++commits === 2) await released;
        await original(...args);
      });
      const creating = expect(cut(id, 'g')).rejects.toMatchObject({ kind: 'aborted' });
      const [row] = await until('the second commit is held', async () =>
        commits < 2
          ? undefined
          : query<{ id: string }>(
              "SELECT id FROM trivet.snapshot_group WHERE volume_group_id = $1 AND state <> 'gone'",
              [id],
            ),
      );
      await expect(house.snapshots.delete(house.caller(), await anySnapshot(volumes[0]!.id))).rejects.toMatchObject({
        kind: 'aborted',
      });
      const deleting = remove(row!.id);
      await until(
        'the deletion is accepted',
        async () => (await query('SELECT FROM trivet.operation WHERE resource_id = $1', [row!.id])).length === 2,
      );
      await expect(cut(id, 'g')).rejects.toMatchObject({ kind: 'aborted' });
      release();
      await creating;
      await deleting;
      await nothingLeft(volumes);
      expect((await cut(id, 'g')).snapshots).toHaveLength(2);
    });
    const anySnapshot = async (volumeId: string) =>
      (
        await query<{ id: string }>("SELECT id FROM trivet.snapshot WHERE volume_id = $1 AND state <> 'gone'", [
          volumeId,
        ])
      )[0]!.id;
  });

  where('a volume group', () => {
    it('is found again by its name, and is another one with another description', async () => {
      const made = await volumeGroup('named', { description: 'd', config: { a: 1, b: true } });
      expect(await volumeGroup('named', { description: 'd', config: { b: true, a: 1 } })).toEqual(made);
      await expect(volumeGroup('named', { description: 'other' })).rejects.toMatchObject({ kind: 'already_exists' });
      expect(await house.volumeGroups.list(house.caller(), { name: 'named' })).toEqual([made]);
      expect(await house.volumeGroups.list(house.caller(), { name: 'unknown' })).toEqual([]);
      expect(await house.volumeGroups.get(house.caller(), made.id)).toEqual(made);
      for (const unknown of ['', 'x', NOBODY])
        await expect(house.volumeGroups.get(house.caller(), unknown)).rejects.toMatchObject({ kind: 'not_found' });
      for (const unknown of ['x', NOBODY])
        await expect(member('nowhere', unknown)).rejects.toMatchObject({ kind: 'not_found', field: 'volumeGroupId' });
      const parallel = await Promise.all(Array.from({ length: 10 }, () => volumeGroup('parallel')));
      expect(new Set(parallel.map(({ id }) => id)).size).toBe(1);
    });

    it('stays while it has volumes or snapshot groups', async () => {
      const { id, volumes } = await group('held', 1);
      const made = await cut(id, 'g');
      const removeIt = () => house.volumeGroups.delete(house.caller(), id);
      expect((await house.volumeGroups.get(house.caller(), id)).volumes.map(volume => volume.id)).toEqual([
        volumes[0]!.id,
      ]);
      await expect(removeIt()).rejects.toMatchObject({ kind: 'failed_precondition', field: 'volumes' });
      await house.volumes.update(house.caller(), volumes[0]!.id, { volumeGroupId: null });
      await expect(removeIt()).rejects.toMatchObject({ kind: 'failed_precondition', field: 'snapshotGroups' });
      await remove(made.id);
      await removeIt();
      await expect(removeIt()).rejects.toMatchObject({ kind: 'not_found' });
      expect((await volumeGroup('held')).id).not.toBe(id);
    });
  });

  where('at the end', () => {
    it('is no slot, no temporary and nothing parked', async () => {
      await house.settled();
      expect(await query('SELECT FROM trivet.operation_slot')).toEqual([]);
      expect(await query("SELECT FROM trivet.operation WHERE state = 'needs_attention'")).toEqual([]);
      expect((await house.images()).filter(({ kind }) => kind === 'temporary')).toEqual([]);
    });
  });
});
