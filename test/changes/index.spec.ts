import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IndexScheduler } from '#changes/index-scheduler';
import { readIndexWork } from '#changes/index-work';
import { Cancelled } from '#operations/leases/lease';
import type { LeasedOperation } from '#operations/operation';
import { BLOCK, ChangesHouse, collect, type Taken } from '#test/changes/changes-house';
import { parts, until } from '#test/support/parts';

let house: ChangesHouse;
beforeAll(async () => {
  house = await ChangesHouse.create({ under: parts().xfs!.path });
});
afterAll(() => house?.close());

const block = (mark: number, blocks = 1) => Buffer.alloc(blocks * BLOCK, mark);

describe('the change index', () => {
  let volume: string;
  const taken: Taken[] = [];
  beforeAll(async () => {
    volume = await house.volume('indexed');
    await house.write(volume, 0, block(1, 8));
    taken.push(await house.snapshot(volume, 's1'));
    await house.write(volume, 4 * BLOCK, block(2, 2));
    taken.push(await house.snapshot(volume, 's2'));
    await house.punch(volume, 0, 2 * BLOCK);
    await house.write(volume, 100 * BLOCK, block(3));
    taken.push(await house.snapshot(volume, 's3'));
  });

  it('walks the images while nothing is indexed', async () => {
    const [s1, s2, s3] = taken as [Taken, Taken, Taken];
    expect(await house.expectDelta(s1, s3)).toBe('walk');
    expect(await house.expectAllocated(s2)).toBe('walk');
    expect(await house.query('SELECT FROM trivet.snapshot_pin')).toEqual([]);
  });

  it('builds its steps in the order of the cuts, and answers from them', async () => {
    await house.index();
    const [s1, s2, s3] = taken as [Taken, Taken, Taken];
    expect(
      await house.query('SELECT kind, from_cut, to_cut, state, ranges FROM trivet.change_step ORDER BY to_cut, kind'),
    ).toMatchObject([
      { kind: 'allocated', from_cut: '0', to_cut: '1', state: 'ready', ranges: '1' },
      { kind: 'delta', from_cut: '1', to_cut: '2', state: 'ready', ranges: '1' },
      // The steps since the last list have more ranges than it: it is kept anew.
      { kind: 'allocated', from_cut: '0', to_cut: '3', state: 'ready', ranges: '2' },
      { kind: 'delta', from_cut: '2', to_cut: '3', state: 'ready', ranges: '2' },
    ]);
    expect(await house.expectDelta(s1, s2)).toBe('index');
    expect(await house.expectDelta(s2, s3)).toBe('index');
    expect(await house.expectDelta(s1, s3)).toBe('index');
    for (const one of taken) expect(await house.expectAllocated(one)).toBe('index');
    expect(await collect(await house.delta({ id: s1.id }, { id: s3.id }))).toEqual([
      { offset: 0, end: 2 * BLOCK },
      { offset: 4 * BLOCK, end: 6 * BLOCK },
      { offset: 100 * BLOCK, end: 101 * BLOCK },
    ]);
  });

  it('goes on at any offset', async () => {
    const [s1, , s3] = taken as [Taken, Taken, Taken];
    for (const from of [0, 1, BLOCK, 2 * BLOCK, 4 * BLOCK + 7, 100 * BLOCK, 101 * BLOCK - 1, 101 * BLOCK, 1024 ** 2]) {
      await house.expectDelta(s1, s3, from);
      await house.expectAllocated(s3, from);
    }
  });
});

describe('steps of one volume that wait', () => {
  it('follow each other after a single look, in the order of their cuts', async () => {
    const volume = await house.volume('quick');
    const ids: string[] = [];
    for (let n = 0; n < 8; n++) {
      await house.write(volume, n * BLOCK, block(n + 1));
      ids.push((await house.snapshot(volume, `quick-${n}`)).id);
    }
    // Somebody who begins with a later one, since the earlier one's building was cancelled, ends at once.
    const tenantId = house.house.tenantId;
    const later = { tenantId, resourceId: ids[1]! } as LeasedOperation;
    const begun = house.database.withTenant(tenantId, tx => readIndexWork(tx, later));
    await expect(begun).rejects.toBeInstanceOf(Cancelled);
    await new IndexScheduler(house.database).run(AbortSignal.timeout(10_000));
    const pending = "SELECT FROM trivet.snapshot WHERE volume_id = $1 AND index_state = 'pending'";
    await until('all are indexed', async () => (await house.query(pending, [volume])).length === 0);
    const built = await house.query<{ id: string }>(
      `SELECT resource_id AS id FROM trivet.operation
        WHERE kind = 'changes.index' AND state = 'succeeded' AND resource_id = ANY ($1) ORDER BY finished_at`,
      [ids],
    );
    expect(built.map(({ id }) => id)).toEqual(ids);
    const steps = "SELECT FROM trivet.change_step WHERE volume_id = $1 AND kind = 'delta' AND to_cut = from_cut + 1";
    expect(await house.query(steps, [volume])).toHaveLength(7);
  });
});
