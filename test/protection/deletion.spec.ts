import { afterAll, beforeAll, expect, it } from 'vitest';
import { Snapshots } from '#storage/block/snapshots/snapshots';
import { BlockHouse } from '#test/block-storage/block-house';

let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create();
});
afterAll(() => house?.close());

/** The driver asks for snapshots before it deletes a volume, and refuses while there is one. */
it('lets a volume go that has only snapshots of its protection template, and takes them along', async () => {
  const snapshots = new Snapshots(house.parts);
  const holding = async (volumeId: string) => {
    let found = 0;
    for await (const page of snapshots.list(house.caller(), { volumeId, holding: true })) found += page.length;
    return found;
  };
  const { id } = await house.volume('protected', { protectionTemplate: 'Retain-30Daily' });
  const made = await snapshots.create(house.caller(), { name: 'daily', volumeId: id, description: '', config: {} });
  const own = await snapshots.create(house.caller(), { name: 'own', volumeId: id, description: '', config: {} });
  await house.testDatabase.query(
    `INSERT INTO trivet.protection_run (tenant_id, template_id, volume_id, schedule, period, snapshot_id)
     SELECT tenant_id, id, $2, 'daily', now(), $3 FROM trivet.protection_template
      WHERE tenant_id = $1 AND name = 'Retain-30Daily'`,
    [house.tenantId, id, made.value.id],
  );
  expect(await holding(id)).toBe(1);
  await expect(house.volumes.delete(house.caller(), id, { force: false })).rejects.toMatchObject({
    field: 'snapshots',
  });
  await snapshots.delete(house.caller(), own.value.id);
  expect(await holding(id)).toBe(0);
  await house.volumes.delete(house.caller(), id, { force: false });
  await expect(snapshots.get(house.caller(), made.value.id)).rejects.toMatchObject({ kind: 'not_found' });
});
