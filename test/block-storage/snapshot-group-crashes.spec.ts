import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createSnapshotGroup } from '#storage/block/groups/create-snapshot-group';
import { deleteSnapshotGroup } from '#storage/block/groups/delete-snapshot-group';
import { BlockHouse } from '#test/block-storage/block-house';
import { EndedAttempts, pointsOf, undoingPointsOf, untilDone, untilGone } from '#test/block-storage/ended-attempts';

let house: BlockHouse;
let attempts: EndedAttempts;
beforeAll(async () => {
  house = await BlockHouse.create();
  attempts = new EndedAttempts(house);
});
afterAll(() => house?.close());
afterEach(() => attempts.reset());

const blocks = { open: async () => house.store };
const creation = createSnapshotGroup.handler({ blocks });
const group = async (name: string) => {
  const { id } = await house.volumeGroups.create(house.caller(), { name, description: '', config: {} });
  const volumes: string[] = [];
  for (const n of [1, 2])
    volumes.push((await house.volume(`${name}-${n}`, { sizeBytes: 1024n ** 2n, volumeGroupId: id })).id);
  return { id, volumes };
};
const cut = (volumeGroupId: string) =>
  untilDone(() =>
    house.snapshotGroups.create(house.caller(), { volumeGroupId, name: 'g', description: '', config: {} }),
  );

describe('snapshot_group.create', () => {
  // Without what is only passed after a failure or with a writer; what was left is discarded from the second attempt on.
  it.each(pointsOf(creation, 'undo', 'retry', 'remove', 'discardStages', 'writers:'))('%s', async point => {
    const { id, volumes } = await group(point);
    for (const volumeId of volumes) await attempts.content.write(volumeId, 0, 1);
    // A client writes to all of them between the attempts: what the first one cut must not be mixed with it.
    const { volumes: backend } = house.store;
    const predict = backend.predictCut.bind(backend);
    const whenBegunAgain = async () => {
      if (await begunAgain(id)) for (const volumeId of volumes) await attempts.content.write(volumeId, 0, 2);
    };
    vi.spyOn(backend, 'predictCut').mockImplementation(async (...args) => {
      await whenBegunAgain();
      return predict(...args);
    });
    attempts.endAt(point);
    const made = await cut(id);
    await attempts.clean();
    await attempts.expectEnd(made.id, 'snapshot_group.create', point);
    const marks = [];
    for (const one of made.snapshots) marks.push(...(await attempts.content.read('snapshot', one.id, 1)));
    expect(marks).toEqual(point.endsWith('end:after') ? [1, 1] : [2, 2]);
    const next = await attempts.query('SELECT next_cut FROM trivet.volume WHERE id = ANY ($1)', [volumes]);
    expect(next).toEqual([{ next_cut: '2' }, { next_cut: '2' }]);
  });
  const begunAgain = async (volumeGroupId: string) => {
    const again = `SELECT FROM trivet.operation o JOIN trivet.snapshot_group g ON g.id = o.resource_id
                    WHERE g.volume_group_id = $1 AND o.attempt > 1`;
    return (await attempts.query(again, [volumeGroupId])).length > 0;
  };
});

describe('snapshot_group.create, which fails for good, leaves nothing', () => {
  it.each(undoingPointsOf(creation))('%s', async point => {
    const { id, volumes } = await group(`undo ${point}`);
    attempts.failAfterCommit(2);
    if (point) attempts.endAt(point);
    await expect(cut(id)).rejects.toMatchObject({ kind: 'resource_exhausted' });
    await attempts.expectNothingOf(volumes);
    attempts.reset();
    expect((await cut(id)).snapshots).toHaveLength(2);
  });
});

describe('snapshot_group.delete', () => {
  // Its steps are those of a snapshot's deletion: here only where one image is gone already.
  it.each(pointsOf(deleteSnapshotGroup.handler({ blocks })).filter(point => /removeImage|end:/.test(point)))(
    '%s',
    async point => {
      const { id } = await group(point);
      const made = await cut(id);
      await house.outOfIndex();
      attempts.endAt(point);
      await untilGone(() => house.snapshotGroups.delete(house.caller(), made.id));
      await attempts.clean();
      await attempts.expectEnd(made.id, 'snapshot_group.delete', point);
      for (const { id: snapshotId } of made.snapshots)
        expect(await attempts.content.inspect('snapshot', snapshotId)).toEqual({ state: 'absent' });
    },
  );
});
