import { existsSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Pins } from '#changes/pins';
import { BlockDriftCheck } from '#storage/block/drift/block-drift';
import { forgetGone } from '#storage/shared/forget-gone';
import { BLOCK, ChangesHouse, collect, type Taken } from '#test/changes/changes-house';
import { parts, until } from '#test/support/parts';

/** What backup software does all day: take, back up, delete; the next difference must still be known (invariant C1). */
let house: ChangesHouse;
let volume: string;
let count = 0;
beforeAll(async () => {
  house = await ChangesHouse.create({ under: parts().xfs!.path });
});
beforeEach(async () => {
  volume = await house.volume(`anchored-${count++}`);
});
afterAll(() => house?.close());

const block = (mark: number, blocks = 1) => Buffer.alloc(blocks * BLOCK, mark);
const there = ({ id }: Taken) => existsSync(house.path('snapshot', id));
const fill = (percent: number) =>
  house.query('UPDATE trivet.pool SET total_bytes = 1000000000000, used_bytes = 10000000000 * $1::bigint', [percent]);

async function written(name: string, mark: number, at = 0): Promise<Taken> {
  await house.write(volume, at * BLOCK, block(mark));
  return house.snapshot(volume, name);
}

describe('the anchor', () => {
  it('stays, hidden, until the next cut is indexed, and goes then', async () => {
    const s1 = await written('s1', 1);
    await house.index();
    await house.delete(s1.id);
    expect(there(s1)).toBe(true);
    await house.release();
    expect(there(s1)).toBe(true);
    expect(await house.house.snapshots.get(house.house.caller(), s1.id).catch(error => error)).toMatchObject({
      kind: 'not_found',
    });
    const s2 = await written('s2', 2, 7);
    await house.release();
    expect(there(s1)).toBe(true);
    await house.index();
    await house.release();
    expect(there(s1)).toBe(false);
    expect(await house.expectDelta(s1, s2)).toBe('index');
    expect(await house.query('SELECT FROM trivet.finding')).toEqual([]);
  });

  it('tells fifty differences, whatever blocks are used again', async () => {
    let before = await written('round-0', 1);
    await house.index();
    for (let round = 1; round <= 50; round++) {
      await house.delete(before.id);
      for (let n = 0; n < 10; n++)
        await house.write(volume, ((round * 37 + n * 11) % 256) * BLOCK, block((round * 7 + n) % 256));
      if (round % 7 === 0) await house.punch(volume, (round % 256) * BLOCK, 3 * BLOCK);
      const now = await house.snapshot(volume, `round-${round}`);
      if (round % 2 === 0) await house.release();
      await house.index();
      expect(await house.expectDelta(before, now)).toBe('index');
      before = now;
    }
    await house.release();
    const images = (await house.house.images()).filter(({ kind }) => kind === 'snapshot').map(({ id }) => id);
    expect(images).toContain(before.id);
  });

  it('is no deleted snapshot that is still to be indexed: that one stays too', async () => {
    const [s1, s2, s3] = [await written('s1', 1), await written('s2', 2), await written('s3', 3)];
    await house.delete(s1.id);
    await house.delete(s2.id);
    await house.release();
    expect([s1, s2].map(there)).toEqual([true, true]);
    await house.index();
    await house.release();
    expect([s1, s2, s3].map(there)).toEqual([false, false, true]);
    expect(await house.expectDelta(s1, s3)).toBe('index');
  });

  it('is no orphan to the audit', async () => {
    const s1 = await written('s1', 1);
    await house.index();
    await house.delete(s1.id);
    const { database, house: blocks } = house;
    await new BlockDriftCheck(database, { open: async () => blocks.store }, 0).run(AbortSignal.timeout(20_000));
    expect(there(s1)).toBe(true);
    expect(await house.query("SELECT subject FROM trivet.finding WHERE kind = 'orphan_image'")).toEqual([]);
  });

  it('is not forgotten as long as it is in the chain', async () => {
    const s1 = await written('s1', 1);
    await house.index();
    await house.delete(s1.id);
    await house.query("UPDATE trivet.snapshot SET updated_at = now() - interval '31 days' WHERE id = $1", [s1.id]);
    await forgetGone(house.database).run(new AbortController().signal);
    const s2 = await written('s2', 2);
    await house.index();
    expect(await house.expectDelta(s1, s2)).toBe('index');
  });

  it('goes with its volume', async () => {
    const s1 = await written('s1', 1);
    await house.index();
    await house.delete(s1.id);
    await house.house.volumes.delete(house.house.caller(), volume, { force: false });
    expect(there(s1)).toBe(false);
    expect(
      await house.query('SELECT cut, image_gone_at IS NULL AS kept FROM trivet.snapshot WHERE id = $1', [s1.id]),
    ).toEqual([{ cut: null, kept: false }]);
  });

  it('is given up in a pool that is nearly full, which is said; the next difference is not known then', async () => {
    const s1 = await written('s1', 1);
    await house.index();
    await house.delete(s1.id);
    try {
      await fill(94);
      await house.release();
      expect(there(s1)).toBe(true);
      await fill(96);
      // Older ones of other volumes go first.
      await until('the anchor is given up', async () => {
        await house.release();
        return !there(s1);
      });
    } finally {
      await fill(1);
    }
    const told = "SELECT message FROM trivet.finding WHERE kind = 'anchor_released' AND subject = $1";
    expect(await house.query(told, [`volume anchored-${count - 1}`])).toEqual([
      { message: expect.stringContaining('nearly full') },
    ]);
    const s2 = await written('s2', 2);
    await expect(house.delta({ id: s1.id }, { id: s2.id })).rejects.toMatchObject({ kind: 'unavailable' });
    await house.index();
    await expect(house.delta({ id: s1.id }, { id: s2.id })).rejects.toMatchObject({
      kind: 'failed_precondition',
      message: expect.stringContaining('the image of s1 is gone'),
    });
    expect(await house.expectAllocated(s2)).toBe('index');
    const s3 = await written('s3', 3, 9);
    await house.index();
    expect(await house.expectDelta(s2, s3)).toBe('index');
    await expect(house.delta({ id: s1.id }, { id: s3.id })).rejects.toMatchObject({ kind: 'failed_precondition' });
  });
});

describe('a pin', () => {
  it('keeps an image that nobody else needs, until it is released', async () => {
    const [s1, s2] = [await written('s1', 1), await written('s2', 2)];
    await house.index();
    const pins = await Pins.take(house.database, house.house.tenantId, [s1.id, s2.id], 'test');
    await house.delete(s1.id);
    await house.release();
    expect(there(s1)).toBe(true);
    await pins!.release();
    await house.release();
    expect(there(s1)).toBe(false);
    expect(await Pins.take(house.database, house.house.tenantId, [s1.id, s2.id], 'test')).toBeUndefined();
    expect(await house.query('SELECT FROM trivet.snapshot_pin')).toEqual([]);
  });

  it('of a walk is there while it is read, and gone after it', async () => {
    const [s1, s2] = [await written('s1', 1), await written('s2', 2)];
    const answer = await house.delta({ id: s1.id }, { id: s2.id });
    expect(answer.source).toBe('walk');
    expect(await house.query('SELECT reason FROM trivet.snapshot_pin')).toHaveLength(2);
    expect(await collect(answer)).toHaveLength(1);
    expect(await house.query('SELECT FROM trivet.snapshot_pin')).toEqual([]);
  });
});
