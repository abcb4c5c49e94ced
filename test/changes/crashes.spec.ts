import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { CHANGE_OPERATIONS } from '#changes/change-operations';
import { IndexScheduler } from '#changes/index-scheduler';
import { handlersOf } from '#operations/definitions/define-operation';
import { StorageError } from '#platform/errors';
import { EndedAttempts, pointsOf } from '#test/block-storage/ended-attempts';
import { BLOCK, ChangesHouse, collect, type Taken } from '#test/changes/changes-house';
import { scattered } from '#test/changes/synthetic-ranges';
import { parts } from '#test/support/parts';

/** Attempts that end at each of their points, and the next one, which goes on or begins anew. */
let house: ChangesHouse;
let attempts: EndedAttempts;
let count = 0;
beforeAll(async () => {
  house = await ChangesHouse.create({ under: parts().xfs!.path });
  attempts = new EndedAttempts(house.house);
});
afterEach(() => attempts.reset());
afterAll(() => house?.close());

const handlers = handlersOf(CHANGE_OPERATIONS, {} as never);
const points = (kind: string, ...without: string[]) =>
  pointsOf(
    handlers.find(one => one.kind === kind),
    ...without,
  );

async function pair(): Promise<[Taken, Taken]> {
  const volume = await house.volume(`crash-${count++}`);
  await house.write(volume, 0, Buffer.alloc(20 * BLOCK, 1));
  const s1 = await house.snapshot(volume, 's1');
  await house.index();
  await house.write(volume, 3 * BLOCK, Buffer.alloc(BLOCK, 2));
  await house.punch(volume, 10 * BLOCK, 2 * BLOCK);
  return [s1, await house.snapshot(volume, 's2')];
}

const stepsOf = (volumeId: string) =>
  house.query<{ state: string; ranges: string; chunks: number; stored: number }>(
    `SELECT s.state, s.ranges, s.chunks, (SELECT count(*)::int FROM trivet.change_chunk c WHERE c.step_id = s.id) AS stored
       FROM trivet.change_step s WHERE volume_id = $1 AND kind = 'delta'`,
    [volumeId],
  );

describe('changes.index', () => {
  it.each(points('changes.index', 'again', 'undo', 'retry', ':point').concat('changes.index:begin:point'))(
    '%s',
    async point => {
      const [s1, s2] = await pair();
      attempts.endAt(point);
      await house.index();
      expect(await house.expectDelta(s1, s2)).toBe('index');
      expect(await house.expectAllocated(s2)).toBe('index');
      expect(await stepsOf(s1.volumeId)).toEqual([{ state: 'ready', ranges: '2', chunks: 1, stored: 1 }]);
    },
  );

  // A step of several portions: what was committed is not built again, and nothing is in it twice.
  it.each(['compare:again', 'compare:point', 'changed:answered', 'end:before'])('%s, in portions', async at => {
    const [s1, s2] = await pair();
    const changed = vi
      .spyOn(house.house.store.extents, 'changed')
      .mockImplementation((_base, _target, from) => scattered(900_000, from));
    vi.spyOn(house.house.store.extents, 'allocated').mockImplementation((_image, from) => scattered(10, from));
    attempts.endAt(`changes.index:${at}`);
    await house.index();
    expect(await stepsOf(s1.volumeId)).toMatchObject([{ state: 'ready', ranges: '900000' }]);
    const [step] = await stepsOf(s1.volumeId);
    expect(step!.stored).toBe(step!.chunks);
    expect(changed.mock.calls.length).toBeGreaterThan(1);
    expect(changed.mock.calls.some(([, , from]) => from > 0)).toBe(true);
    // As large as what was made up.
    await house.query('UPDATE trivet.snapshot SET size_bytes = $2 WHERE volume_id = $1', [s1.volumeId, 2 ** 40]);
    const made: number[] = [];
    for await (const { count: n, offsets } of scattered(900_000, 0)) made.push(...offsets.subarray(0, n));
    const ranges = await collect(await house.delta({ id: s1.id }, { id: s2.id }));
    expect(ranges.length).toBe(made.length);
    expect(ranges.every(({ offset, end }, n) => offset === made[n] && end === offset + 4_096)).toBe(true);
  });

  it('writes nothing once another worker has its lease', async () => {
    const [s1, s2] = await pair();
    const { extents } = house.house.store;
    const changed = extents.changed.bind(extents);
    let overtaken = 0;
    vi.spyOn(extents, 'changed').mockImplementation(async function* (...asked) {
      if (overtaken++ === 0) {
        const rows = await house.query(
          `UPDATE trivet.operation SET lease_until = now(), fence = fence + 1
            WHERE kind = 'changes.index' AND resource_id = $1 AND state = 'running' RETURNING 1`,
          [s2.id],
        );
        expect(rows).toHaveLength(1);
        yield* scattered(50, 0, 2 ** 30);
      } else yield* changed(...asked);
    });
    await house.index();
    expect(overtaken).toBe(2);
    expect(await house.expectDelta(s1, s2)).toBe('index');
    expect(await stepsOf(s1.volumeId)).toEqual([{ state: 'ready', ranges: '2', chunks: 1, stored: 1 }]);
  });

  it.each([
    ['before it began', 'begin'],
    ['while it reads', 'read'],
  ])('is cancelled when its volume is deleted %s', async (_, when) => {
    const [, s2] = await pair();
    const { volumes } = house.house;
    const remove = () => volumes.delete(house.house.caller(), s2.volumeId, { force: true });
    const ofIt = () =>
      house.query<{ state: string; error: unknown }>(
        "SELECT state, error FROM trivet.operation WHERE kind = 'changes.index' AND resource_id = $1",
        [s2.id],
      );
    if (when === 'begin') {
      await house.query("UPDATE trivet.queue SET paused = true WHERE class = 'index'");
      await new IndexScheduler(house.database).run(AbortSignal.timeout(10_000));
      await remove();
      expect(await ofIt()).toMatchObject([{ state: 'pending' }]);
      await house.query("UPDATE trivet.queue SET paused = false WHERE class = 'index'");
    } else {
      const { extents } = house.house.store;
      const changed = extents.changed.bind(extents);
      vi.spyOn(extents, 'changed').mockImplementationOnce(async function* (...asked) {
        await remove();
        yield* changed(...asked);
      });
    }
    await house.index();
    expect(await ofIt()).toEqual([{ state: 'cancelled', error: null }]);
  });

  it('has one builder, however many workers look', async () => {
    const [s1, s2] = await pair();
    await Promise.all(Array.from({ length: 8 }, () => house.index()));
    const [{ n } = { n: 0 }] = await house.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM trivet.operation WHERE kind = 'changes.index' AND resource_id = $1",
      [s2.id],
    );
    expect(n).toBe(1);
    expect(await house.expectDelta(s1, s2)).toBe('index');
  });

  it('leaves out a snapshot whose image cannot be read; those around it are in one chain', async () => {
    const [s1, s2] = await pair();
    const unreadable = () => {
      throw new StorageError('failed_precondition', 'the image may be changed');
    };
    vi.spyOn(house.house.store.extents, 'changed').mockImplementation(unreadable);
    vi.spyOn(house.house.store.extents, 'allocated').mockImplementation(unreadable);
    await house.index();
    await expect(house.delta({ id: s1.id }, { id: s2.id }).then(collect)).rejects.toMatchObject({
      kind: 'failed_precondition',
    });
    attempts.reset();
    await house.write(s1.volumeId, 0, Buffer.alloc(BLOCK, 9));
    const s3 = await house.snapshot(s1.volumeId, 's3');
    await house.index();
    expect(await house.expectDelta(s1, s3)).toBe('index');
    // Both images are there.
    expect(await house.expectDelta(s2, s3)).toBe('walk');
    await house.delete(s2.id);
    await house.release();
    await expect(house.delta({ id: s2.id }, { id: s3.id })).rejects.toMatchObject({ kind: 'failed_precondition' });
  });

  it('begins a new chain when the image before cannot be read', async () => {
    const [s1, s2] = await pair();
    vi.spyOn(house.house.store.extents, 'changed').mockImplementation(() => {
      throw new StorageError('not_found', 'no image of s1');
    });
    await house.index();
    attempts.reset();
    expect(await house.expectAllocated(s2)).toBe('index');
    await house.delete(s1.id);
    await house.release();
    await expect(house.delta({ id: s1.id }, { id: s2.id })).rejects.toMatchObject({
      kind: 'failed_precondition',
      message: expect.stringContaining('no image of s1'),
    });
  });
});

describe('changes.merge', () => {
  it.each(points('changes.merge', 'undo', 'retry', 'begin:point'))('%s', async point => {
    const [s1, s2] = await pair();
    await house.write(s1.volumeId, 15 * BLOCK, Buffer.alloc(2 * BLOCK, 3));
    const s3 = await house.snapshot(s1.volumeId, 's3');
    await house.index();
    await house.delete(s2.id);
    await house.release();
    await house.query("UPDATE trivet.snapshot SET updated_at = now() - interval '31 days' WHERE id = $1", [s2.id]);
    attempts.endAt(point);
    await house.retain(30 * 86_400_000);
    expect(await house.expectDelta(s1, s3)).toBe('index');
    expect(await stepsOf(s1.volumeId)).toEqual([{ state: 'ready', ranges: '3', chunks: 1, stored: 1 }]);
    await expect(house.delta({ id: s2.id }, { id: s3.id })).rejects.toMatchObject({ kind: 'failed_precondition' });
  });
});

describe('a damaged chunk', () => {
  const damage = (volumeId: string) =>
    house.query(
      `UPDATE trivet.change_chunk SET body = set_byte(body, octet_length(body) - 1, get_byte(body, octet_length(body) - 1) # 1)
        WHERE step_id IN (SELECT id FROM trivet.change_step WHERE volume_id = $1)`,
      [volumeId],
    );
  const remove = (volumeId: string) =>
    house.query(
      'DELETE FROM trivet.change_chunk WHERE step_id IN (SELECT id FROM trivet.change_step WHERE volume_id = $1)',
      [volumeId],
    );

  it.each([
    ['damaged', damage],
    ['missing', remove],
  ])('%s: the images say it while they are there, and then nobody', async (_, harm) => {
    const [s1, s2] = await pair();
    await house.index();
    await harm(s1.volumeId);
    expect(await house.expectDelta(s1, s2)).toBe('index');
    expect(await house.expectDelta(s1, s2)).toBe('walk');
    await house.expectAllocated(s2);
    await house.delete(s1.id);
    await house.release();
    await expect(house.delta({ id: s1.id }, { id: s2.id })).rejects.toMatchObject({ kind: 'failed_precondition' });
  });

  it('is no short answer when the images are gone', async () => {
    const [s1, s2] = await pair();
    await house.index();
    await house.delete(s1.id);
    await house.release();
    await damage(s1.volumeId);
    const answer = await house.delta({ id: s1.id }, { id: s2.id });
    await expect(collect(answer)).rejects.toMatchObject({ kind: 'failed_precondition' });
  });
});
