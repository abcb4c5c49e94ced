import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createSnapshot } from '#storage/block/snapshots/create-snapshot';
import { deleteSnapshot } from '#storage/block/snapshots/delete-snapshot';
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
const creation = createSnapshot.handler({ blocks });
const volume = async (name: string) => (await house.volume(name, { sizeBytes: 1024n ** 2n })).id;
const snapshot = (volumeId: string) => untilDone(() => house.snapshot(volumeId, 's'));

describe('snapshot.create', () => {
  // Without what is only passed after a failure, or with a writer.
  it.each(pointsOf(creation, 'undo', 'retry', 'remove', 'writers', 'Together'))('%s', async point => {
    const volumeId = await volume(point);
    await attempts.content.write(volumeId, 0, 5);
    attempts.endAt(point);
    const made = await snapshot(volumeId);
    await attempts.clean();
    await attempts.expectEnd(made.id, 'snapshot.create', point);
    expect(await attempts.content.read('snapshot', made.id, 1)).toEqual([5]);
    expect(await attempts.content.inspect('snapshot', made.id)).toMatchObject({ readOnly: true });
    expect(
      await attempts.query('SELECT cut, cut_at, size_bytes FROM trivet.snapshot WHERE id = $1', [made.id]),
    ).toEqual([{ cut: '1', cut_at: expect.any(Date), size_bytes: '1048576' }]);
  });
});

describe('snapshot.create, which fails for good, leaves nothing', () => {
  it.each(undoingPointsOf(creation))('%s', async point => {
    const volumeId = await volume(`undo ${point}`);
    attempts.failAfterCommit(1);
    if (point) attempts.endAt(point);
    await expect(snapshot(volumeId)).rejects.toMatchObject({ kind: 'resource_exhausted' });
    await attempts.expectNothingOf([volumeId]);
    attempts.reset();
    expect(await snapshot(volumeId)).toMatchObject({ ready: true });
  });
});

describe('snapshot.delete', () => {
  it.each(pointsOf(deleteSnapshot.handler({ blocks }), 'retry'))('%s', async point => {
    const { id } = await snapshot(await volume(point));
    await house.outOfIndex();
    attempts.endAt(point);
    await untilGone(() => house.snapshots.delete(house.caller(), id));
    await attempts.clean();
    await attempts.expectEnd(id, 'snapshot.delete', point);
    expect(await attempts.content.inspect('snapshot', id)).toEqual({ state: 'absent' });
  });
});
