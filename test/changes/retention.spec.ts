import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { forgetGone } from '#storage/shared/forget-gone';
import { BLOCK, ChangesHouse, type Taken } from '#test/changes/changes-house';
import { parts } from '#test/support/parts';
import { wrongTallies } from '#test/support/tallies';

const DAY = 86_400_000;
const KEPT = 30 * DAY;

let house: ChangesHouse;
let volume: string;
let count = 0;
beforeAll(async () => {
  house = await ChangesHouse.create({ under: parts().xfs!.path });
});
beforeEach(async () => {
  volume = await house.volume(`retained-${count++}`);
});
afterEach(async () => {
  expect(await wrongTallies({ query: (text, params) => house.query(text, params) })).toEqual([]);
});
afterAll(() => house?.close());

async function written(n: number): Promise<Taken> {
  await house.write(volume, ((n * 5) % 64) * BLOCK, Buffer.alloc(3 * BLOCK, n + 1));
  if (n % 3 === 0) await house.punch(volume, ((n * 7) % 64) * BLOCK, 2 * BLOCK);
  return house.snapshot(volume, `s${n}`);
}

async function chain(length: number): Promise<Taken[]> {
  const taken: Taken[] = [];
  for (let n = 0; n < length; n++) taken.push(await written(n));
  await house.index();
  return taken;
}

/** As if it had been deleted so long ago. */
async function deletedLongAgo({ id }: Taken): Promise<void> {
  await house.delete(id);
  await house.release();
  await house.query("UPDATE trivet.snapshot SET updated_at = now() - interval '31 days' WHERE id = $1", [id]);
}

const cuts = async () =>
  (
    await house.query<{ cut: number }>(
      'SELECT cut::int AS cut FROM trivet.snapshot WHERE volume_id = $1 AND cut IS NOT NULL ORDER BY cut',
      [volume],
    )
  ).map(({ cut }) => cut);
const spans = (level: number) =>
  house.query<{ from: number; to: number }>(
    `SELECT from_cut::int AS from, to_cut::int AS to FROM trivet.change_step
      WHERE volume_id = $1 AND kind = 'delta' AND state = 'ready' AND level = $2 ORDER BY from_cut`,
    [volume, level],
  );

describe('a deleted snapshot', () => {
  it('can be a base by its id as long as it is kept, its name is free, and it is no target', async () => {
    const [s1, s2, s3] = (await chain(3)) as [Taken, Taken, Taken];
    await house.delete(s1.id);
    await house.release();
    await house.retain(KEPT);
    expect(await house.expectDelta(s1, s3)).toBe('index');
    await expect(house.delta({ volumeId: volume, name: 's0' }, { id: s3.id })).rejects.toMatchObject({
      kind: 'not_found',
    });
    await expect(house.allocated({ id: s1.id })).rejects.toMatchObject({ kind: 'not_found' });
    await expect(house.delta({ id: s1.id }, { id: s1.id })).rejects.toMatchObject({ kind: 'not_found' });
    expect((await house.snapshot(volume, 's0')).id).not.toBe(s1.id);
    expect(await house.expectDelta(s2, s3)).toBe('index');
  });

  it('leaves after that: it is not known any more, which is said, and what lies around it is one step', async () => {
    const taken = (await chain(5)) as [Taken, Taken, Taken, Taken, Taken];
    const [s1, s2, s3, s4, s5] = taken;
    await deletedLongAgo(s3);
    await house.retain(KEPT);
    expect(await cuts()).toEqual([1, 2, 4, 5]);
    await expect(house.delta({ id: s3.id }, { id: s4.id })).rejects.toMatchObject({
      kind: 'failed_precondition',
      message: expect.stringContaining('do a full backup'),
    });
    await expect(house.allocated({ id: s3.id })).rejects.toMatchObject({ kind: 'not_found' });
    // Its row stays for as long again, else nobody could say so.
    await forgetGone(house.database).run(new AbortController().signal);
    await expect(house.delta({ id: s3.id }, { id: s4.id })).rejects.toMatchObject({ kind: 'failed_precondition' });
    for (const [base, target] of [
      [s1, s2],
      [s1, s4],
      [s1, s5],
      [s2, s4],
      [s2, s5],
      [s4, s5],
    ] as const)
      expect(await house.expectDelta(base, target)).toBe('index');
    for (const one of [s1, s2, s4, s5]) await house.expectAllocated(one);
    expect(
      await house.query('SELECT FROM trivet.change_step WHERE volume_id = $1 AND (from_cut = 3 OR to_cut = 3)', [
        volume,
      ]),
    ).toEqual([]);
  });

  it('leaves at either end of the chain without a step in its place', async () => {
    const [s1, s2, s3] = (await chain(3)) as [Taken, Taken, Taken];
    await house.query('UPDATE trivet.change_upkeep SET due_at = now() WHERE volume_id = $1', [volume]);
    await house.retain(KEPT);
    await deletedLongAgo(s1);
    await deletedLongAgo(s3);
    await house.retain(KEPT);
    expect(await cuts()).toEqual([2]);
    expect(await house.query('SELECT FROM trivet.change_step WHERE volume_id = $1 AND to_cut = 3', [volume])).toEqual(
      [],
    );
    await house.expectAllocated(s2);
    const s4 = await written(9);
    await house.index();
    expect(await house.expectDelta(s2, s4)).toBe('index');
  });

  it('leaves before its time when the index has more than its part of the pool', async () => {
    const taken = (await chain(4)) as [Taken, Taken, Taken, Taken];
    await house.delete(taken[1].id);
    await house.release();
    await house.query('UPDATE trivet.change_step SET stored_bytes = 1e12 WHERE volume_id = $1', [volume]);
    await house.retain(KEPT);
    expect(await cuts()).toEqual([1, 3, 4]);
    expect(await house.expectDelta(taken[0], taken[3])).toBe('index');
    await house.query('UPDATE trivet.change_step SET stored_bytes = 1');
  });

  it('of a deleted volume has no steps any more', async () => {
    const [s1] = (await chain(2)) as [Taken, Taken];
    await house.query('UPDATE trivet.change_upkeep SET due_at = now() WHERE volume_id = $1', [volume]);
    await house.retain(KEPT);
    await house.delete(s1.id);
    for (const { id } of await house.query<{ id: string }>(
      "SELECT id FROM trivet.snapshot WHERE volume_id = $1 AND state = 'ready'",
      [volume],
    ))
      await house.delete(id);
    await house.house.volumes.delete(house.house.caller(), volume, { force: false });
    await house.retain(KEPT);
    expect(await house.query('SELECT FROM trivet.change_step WHERE volume_id = $1', [volume])).toEqual([]);
    expect(
      await house.query(
        'SELECT FROM trivet.change_chunk c WHERE NOT EXISTS (SELECT FROM trivet.change_step s WHERE s.id = c.step_id)',
      ),
    ).toEqual([]);
  });
});

describe('merged spans', () => {
  it('say what their steps say, and stay right when snapshots leave', async () => {
    const taken = await chain(17);
    await house.retain(KEPT);
    // Of the cuts 1 to 17: 1 and every second, fourth, eighth one are where they begin and end.
    const lengths = await Promise.all([1, 2, 3, 4, 5].map(async level => (await spans(level)).length));
    expect(lengths).toEqual([7, 4, 2, 1, 0]);
    for (let a = 0; a < taken.length; a += 3)
      for (let b = a + 1; b < taken.length; b += 2) expect(await house.expectDelta(taken[a]!, taken[b]!)).toBe('index');
    await deletedLongAgo(taken[7]!);
    await deletedLongAgo(taken[8]!);
    await house.retain(KEPT);
    expect(await cuts()).toHaveLength(15);
    const left = taken.filter((_, n) => n !== 7 && n !== 8);
    for (let a = 0; a < left.length; a += 2)
      for (let b = a + 1; b < left.length; b += 3) expect(await house.expectDelta(left[a]!, left[b]!)).toBe('index');
    for (const one of left) await house.expectAllocated(one);
  });
});

describe('the queue of chains', () => {
  const queued = () =>
    house.query<{ due: boolean }>('SELECT due_at <= now() AS due FROM trivet.change_upkeep WHERE volume_id = $1', [
      volume,
    ]);
  const due = () => house.query('UPDATE trivet.change_upkeep SET due_at = now() WHERE volume_id = $1', [volume]);
  const unfinished = () =>
    house.query(
      `INSERT INTO trivet.change_step (tenant_id, id, volume_id, kind, from_cut, to_cut, base_bytes, target_bytes, state)
       SELECT tenant_id, gen_random_uuid(), id, 'delta', 1, 3, 4096, 4096, 'building' FROM trivet.volume WHERE id = $1`,
      [volume],
    );
  const building = () =>
    house.query("SELECT FROM trivet.change_step WHERE volume_id = $1 AND state = 'building'", [volume]);

  it('is empty of what was looked at, and has what changes', async () => {
    const [s1] = (await chain(2)) as [Taken, Taken];
    await due();
    await house.retain(KEPT);
    expect(await queued()).toEqual([]);
    await written(7);
    await house.index();
    expect((await queued()).some(entry => entry.due)).toBe(true);
    await due();
    await house.retain(KEPT);
    expect(await queued()).toEqual([]);
    await deletedLongAgo(s1);
    await house.retain(KEPT);
    expect(await cuts()).toEqual([2, 3]);
    // What the merge built was queued as unfinished.
    await due();
    await house.retain(KEPT);
    expect(await queued()).toEqual([]);
  });

  it('has a step that nobody builds any more, as long as its index is held', async () => {
    await chain(3);
    await due();
    await house.retain(KEPT);
    await unfinished();
    await house.retain(KEPT);
    expect(await queued()).toEqual([{ due: false }]);
    const [operation] = await house.query<{ id: string }>(
      `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, state)
       SELECT tenant_id, gen_random_uuid(), 'changes.index', 'index', backend_id, 'snapshot', id, '', '{}', 'needs_attention'
         FROM trivet.volume WHERE id = $1 RETURNING id`,
      [volume],
    );
    await house.query(
      `INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, seq, priority)
       SELECT tenant_id, id, resource_id, 'index', true, seq, 0 FROM trivet.operation WHERE id = $1`,
      [operation!.id],
    );
    await due();
    await house.retain(KEPT);
    expect(await building()).toHaveLength(1);
    expect(await queued()).toEqual([{ due: false }]);
    await house.query('DELETE FROM trivet.operation_slot WHERE operation_id = $1', [operation!.id]);
    await house.query("UPDATE trivet.operation SET state = 'cancelled', finished_at = now() WHERE id = $1", [
      operation!.id,
    ]);
    await due();
    await house.retain(KEPT);
    expect(await building()).toEqual([]);
    expect(await queued()).toEqual([]);
  });
});
