import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SnapshotKey } from '#changes/changed-blocks';
import { uuidv7 } from '#platform/uuid';
import { BLOCK, ChangesHouse, collect, type Taken } from '#test/changes/changes-house';
import { parts, until } from '#test/support/parts';

/** The rules that do not depend on a service: which snapshots there are, their order, offsets, capacity. */
const BYTES = 1024 ** 2;

let house: ChangesHouse;
let volume: string;
let other: string;
let s1: Taken;
let s2: Taken;
let grown: Taken;
let foreign: Taken;
beforeAll(async () => {
  house = await ChangesHouse.create({ under: parts().xfs!.path });
  volume = await house.volume('asked');
  other = await house.volume('other');
  await house.write(volume, 0, Buffer.alloc(2 * BLOCK, 1));
  s1 = await house.snapshot(volume, 's1');
  await house.write(volume, BLOCK, Buffer.alloc(BLOCK, 2));
  s2 = await house.snapshot(volume, 's2');
  await house.expand(volume, 2 * BYTES);
  await house.write(volume, 2 * BYTES - BLOCK, Buffer.alloc(BLOCK, 3));
  grown = await house.snapshot(volume, 'grown');
  foreign = await house.snapshot(other, 's1');
  await house.index();
});
afterAll(() => house?.close());

const id = ({ id: snapshotId }: Taken): SnapshotKey => ({ id: snapshotId });
const unpinned = () =>
  until('nothing is pinned', async () => (await house.query('SELECT FROM trivet.snapshot_pin')).length === 0);
const asked = (answer: Promise<unknown>) => answer.then(() => 'answered').catch(error => [error.kind, error.field]);

describe('a snapshot', () => {
  it('is found by its id, its name at its volume, or its name where that is one only', async () => {
    for (const key of [id(s2), { volumeId: volume, name: 's2' }, { name: 's2' }])
      expect(await collect(await house.delta(id(s1), key))).toEqual([{ offset: BLOCK, end: 2 * BLOCK }]);
    expect(await asked(house.allocated({ name: 's1' }))).toEqual(['invalid_argument', 'target']);
    // Of the target's volume before any other.
    expect(await collect(await house.delta({ name: 's1' }, id(s2)))).toHaveLength(1);
  });

  it.each([
    { id: '' },
    { id: 'nonsense' },
    { id: uuidv7() },
    { name: 'nobody' },
    { name: 'no\u0000body' },
    { volumeId: uuidv7(), name: '\u0000' },
    { volumeId: 'x', name: 's1' },
    { volumeId: uuidv7(), name: 's1' },
  ] as SnapshotKey[])('is not found by %j', async key => {
    expect(await asked(house.allocated(key))).toEqual(['not_found', undefined]);
    expect(await asked(house.delta(key, id(s2)))).toEqual(['not_found', undefined]);
    expect(await asked(house.delta(id(s1), key))).toEqual(['not_found', undefined]);
  });

  it("of another tenant is none, and a temporary one's neither", async () => {
    const query = { tenantId: uuidv7(), from: 0, signal: AbortSignal.timeout(5_000) };
    expect(await asked(house.changes.allocated({ ...query, target: id(s1) }))).toEqual(['not_found', undefined]);
    const { id: hidden } = await house.house.snapshot(volume, 'for-a-clone', { hidden: true });
    expect(await asked(house.allocated({ id: hidden }))).toEqual(['not_found', undefined]);
  });

  it('is not asked about before it is complete', async () => {
    const snapshotId = uuidv7();
    await house.query(
      `INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool, folder)
       SELECT tenant_id, $1, backend_id, id, 'unfinished', 'creating', false, '', '{}', pool, folder FROM trivet.volume WHERE id = $2`,
      [snapshotId, other],
    );
    expect(await asked(house.allocated({ id: snapshotId }))).toEqual(['unavailable', undefined]);
    expect(await asked(house.allocated({ name: 'unfinished' }))).toEqual(['unavailable', undefined]);
    await house.query('DELETE FROM trivet.snapshot WHERE id = $1', [snapshotId]);
  });
});

describe('a delta', () => {
  it('is of one volume, and forwards in the order of the cuts, whatever their times', async () => {
    expect(await asked(house.delta(id(foreign), id(s2)))).toEqual(['invalid_argument', 'base']);
    expect(await asked(house.delta(id(s2), id(s1)))).toEqual(['invalid_argument', 'base']);
    await house.query("UPDATE trivet.snapshot SET cut_at = now() + interval '1 day' WHERE id = $1", [s1.id]);
    expect(await house.expectDelta(s1, s2)).toBe('index');
  });

  it('of a snapshot with itself has no ranges', async () => {
    const answer = await house.delta(id(s2), id(s2));
    expect(answer).toMatchObject({ source: 'empty', capacityBytes: BYTES, volumeId: volume });
    expect(await collect(answer)).toEqual([]);
  });

  it("has its target's capacity, and what lies beyond a smaller base is changed where there are data", async () => {
    const answer = await house.delta(id(s1), id(grown));
    expect(answer.capacityBytes).toBe(2 * BYTES);
    expect(await collect(answer)).toEqual([
      { offset: BLOCK, end: 2 * BLOCK },
      { offset: 2 * BYTES - BLOCK, end: 2 * BYTES },
    ]);
  });
});

describe('an offset', () => {
  it('may be the capacity, which leaves nothing, and not more', async () => {
    for (const ask of [
      (from: number) => house.allocated(id(s2), from),
      (from: number) => house.delta(id(s1), id(s2), from),
    ]) {
      const answer = await ask(BYTES);
      expect(answer).toMatchObject({ source: 'empty', capacityBytes: BYTES });
      expect(await collect(answer)).toEqual([]);
      expect(await asked(ask(BYTES + 1))).toEqual(['out_of_range', undefined]);
      expect(await asked(ask(-1))).toEqual(['out_of_range', undefined]);
      expect(await asked(ask(2 ** 60))).toEqual(['out_of_range', undefined]);
    }
    expect(await asked(house.delta(id(s2), id(s2), BYTES + 1))).toEqual(['out_of_range', undefined]);
  });
});

describe('a reader that waits', () => {
  it('gets the difference when its step is built, and leaves when it likes', async () => {
    const waiting = await house.volume('waiting');
    await house.write(waiting, 0, Buffer.alloc(BLOCK, 1));
    const [base, target] = [await house.snapshot(waiting, 'w1'), await house.snapshot(waiting, 'w2')];
    // As where an index is behind, and a base's image was given up.
    await house.query('UPDATE trivet.snapshot SET image_gone_at = now() WHERE id = $1', [base.id]);
    const ask = (signal: AbortSignal, waits?: boolean) =>
      house.changes.delta({
        tenantId: house.house.tenantId,
        base: id(base),
        target: id(target),
        from: 0,
        signal,
        waits,
      });
    expect(await asked(ask(AbortSignal.timeout(10_000)))).toEqual(['unavailable', undefined]);
    const leaving = new AbortController();
    const left = ask(leaving.signal, true);
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    const answer = ask(AbortSignal.timeout(30_000), true);
    await house.query('UPDATE trivet.snapshot SET image_gone_at = NULL WHERE id = $1', [base.id]);
    await house.index();
    expect(await collect(await answer)).toEqual([]);
  });

  it('gets the difference whose step is stored after it was looked for', async () => {
    const late = await house.volume('late');
    await house.write(late, 0, Buffer.alloc(BLOCK, 1));
    const [base, target] = [await house.snapshot(late, 'l1'), await house.snapshot(late, 'l2')];
    const gone = 'UPDATE trivet.snapshot SET image_gone_at = $2 WHERE id = $1';
    await house.query(gone, [base.id, new Date()]);
    const { database } = house.house.parts;
    const { withTenant } = database;
    let looks = 0;
    database.withTenant = async function (this: typeof database, ...given: never[]) {
      // The question, the look for the step, and then: why is there none?
      if (++looks === 3) {
        database.withTenant = withTenant;
        await house.query(gone, [base.id, null]);
        await house.index();
      }
      return Reflect.apply(withTenant, database, given);
    } as typeof withTenant;
    expect((await house.delta(id(base), id(target))).source).toBe('index');
  });
});

describe('a reader that leaves', () => {
  it.each(['index', 'walk'])('ends the ranges with its reason, from the %s', async source => {
    const target = source === 'index' ? s2 : await house.snapshot(volume, 'walked');
    const leaving = new AbortController();
    const answer = await house.delta(id(s1), id(target), 0, leaving.signal);
    expect(answer.source).toBe(source);
    const reason = new Error('left');
    leaving.abort(reason);
    await expect(collect(answer)).rejects.toBe(reason);
    await unpinned();
  });

  it('before the first range keeps no image', async () => {
    const target = await house.snapshot(volume, 'left');
    const leaving = new AbortController();
    const answer = await house.delta(id(s1), id(target), 0, leaving.signal);
    expect(answer.source).toBe('walk');
    expect(await house.query('SELECT FROM trivet.snapshot_pin')).toHaveLength(2);
    leaving.abort();
    await unpinned();
    // Also who has left when the answer comes.
    await house.delta(id(s1), id(target), 0, leaving.signal);
    await unpinned();
  });
});
