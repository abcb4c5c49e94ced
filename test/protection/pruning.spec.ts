import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { ProtectionHouse, weekly } from '#test/protection/protection-house';

/** Only what a template made is pruned, only beyond what it retains, and never from under a clone. */
let house: ProtectionHouse;
let volume: string;
beforeAll(async () => {
  house = await ProtectionHouse.create();
  await house.templates.add('mine', [weekly('weekly', 3)]);
});
beforeEach(async () => {
  await house.empty();
  volume = await house.volume('mine');
});
afterAll(() => house?.close());

async function weeks(count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await house.aWeekPasses(volume);
    await house.round();
    await house.settle();
  }
}
const ids = async () => (await house.snapshots(volume)).map(({ id }) => id);

async function foreignSnapshot(name: string): Promise<string> {
  const id = uuidv7();
  const { tenantId, backendId } = house;
  await house.query(
    `INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool,
                                  folder, size_bytes, cut, cut_at)
     VALUES ($1, $2, $3, $4, $5, 'ready', false, '', '{}', 'main', '', 1, 1000, now())`,
    [tenantId, id, backendId, volume, name],
  );
  return id;
}

async function clone(snapshotId: string): Promise<string> {
  const id = await house.volume(null);
  await house.query('UPDATE trivet.volume SET base_snapshot_id = $2 WHERE id = $1', [id, snapshotId]);
  return id;
}

describe('pruning', () => {
  it('keeps the newest that the schedule retains', async () => {
    await weeks(3);
    await house.prune();
    const three = await ids();
    expect(three).toHaveLength(3);
    expect(await house.operations('snapshot.delete')).toEqual([]);
    await weeks(2);
    const five = await ids();
    await house.prune();
    expect(await ids()).toEqual(five.slice(2));
    expect((await house.operations('snapshot.delete')).map(row => row.resource_id)).toEqual(five.slice(0, 2));
    expect(await house.query('SELECT FROM trivet.protection_run')).toHaveLength(3);
  });

  it('touches no snapshot that somebody else made, whatever its name and age', async () => {
    const theirs = await foreignSnapshot('mine-weekly-2020-01-01T0000Z');
    await weeks(4);
    await house.prune();
    expect(await ids()).toHaveLength(4);
    expect(await ids()).toContain(theirs);
  });

  it('spares one with a clone that callers see, and takes it when the clone is gone', async () => {
    await weeks(4);
    const [oldest, second] = await ids();
    const clonedVolume = await clone(oldest!);
    await weeks(1);
    await house.prune();
    expect(await ids()).toContain(oldest);
    expect(await ids()).not.toContain(second);
    const [{ later } = { later: false }] = await house.query<{ later: boolean }>(
      "SELECT prune_at > now() + interval '30 minutes' AS later FROM trivet.volume_protection",
    );
    expect(later).toBe(true);
    await house.query("UPDATE trivet.volume SET state = 'gone' WHERE id = $1", [clonedVolume]);
    await house.prune();
    expect(await ids()).toHaveLength(3);
    expect(await ids()).not.toContain(oldest);
  });

  it('does not count what was deleted by hand or could not be made', async () => {
    await weeks(3);
    const [first] = await ids();
    await house.query("UPDATE trivet.snapshot SET state = 'gone' WHERE id = $1", [first]);
    await weeks(1);
    const kept = await ids();
    await house.prune();
    expect(await ids()).toEqual(kept);
    expect(kept).toHaveLength(3);
  });

  it('does not count one that is still being made, and comes back for it', async () => {
    await weeks(3);
    await house.aWeekPasses(volume);
    await house.round();
    await house.query('UPDATE trivet.volume_protection SET prune_at = now()');
    await house.round();
    expect(await ids()).toHaveLength(4);
    expect(await house.operations('snapshot.delete')).toEqual([]);
    await house.settle();
    await house.prune();
    expect(await ids()).toHaveLength(3);
  });

  it('by two schedulers at once deletes each once', async () => {
    await weeks(6);
    await house.query('UPDATE trivet.volume_protection SET prune_at = now()');
    await Promise.all([house.round(), house.round(), house.round()]);
    await house.settle();
    await house.prune();
    expect(await ids()).toHaveLength(3);
    const deleted = (await house.operations('snapshot.delete')).map(row => row.resource_id);
    expect(deleted).toHaveLength(3);
    expect(new Set(deleted).size).toBe(3);
  });

  it('rests while nothing is to be done', async () => {
    await weeks(1);
    await house.prune();
    expect(await house.query('SELECT prune_at FROM trivet.volume_protection')).toEqual([{ prune_at: null }]);
    expect(await house.query('SELECT FROM trivet.protection_due()')).toEqual([]);
  });

  it('leaves the snapshots of a volume in the recycle bin', async () => {
    await weeks(5);
    await house.query("UPDATE trivet.volume SET state = 'binned' WHERE id = $1", [volume]);
    await house.prune();
    expect(await ids()).toHaveLength(5);
  });
});
