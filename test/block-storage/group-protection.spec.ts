import { afterAll, beforeAll, expect, it } from 'vitest';
import { ProtectionTemplates } from '#storage/block/protection/templates';
import { ProtectionScheduler } from '#storage/block/schedules/protection-scheduler';
import { restoreFromBin } from '#storage/block/volumes/recycle-bin';
import { BlockHouse } from '#test/block-storage/block-house';

/** HPE knows protection templates of volume groups only: they protect whatever is in the group. */
let house: BlockHouse;
let templates: ProtectionTemplates;
beforeAll(async () => {
  house = await BlockHouse.create();
  templates = new ProtectionTemplates(house.parts.database, house.tenantId);
  for (const name of ['of-group', 'of-volume', 'of-other'])
    await templates.add(name, [{ name: 'hourly', everyMinutes: 60, atMinutes: 0, retain: 2 }]);
});
afterAll(() => house?.close());

const group = (name: string, protectionTemplate?: string) =>
  house.volumeGroups.create(house.caller(), { name, description: '', config: {}, protectionTemplate });
const edit = (id: string, changes: object) => house.volumes.update(house.caller(), id, changes);
const templateOf = async (id: string): Promise<string | undefined> => {
  const rows = await house.testDatabase.query<{ name: string }>(
    `SELECT t.name FROM trivet.volume_protection p
       JOIN trivet.protection_template t ON t.tenant_id = p.tenant_id AND t.id = p.template_id WHERE p.volume_id = $1`,
    [id],
  );
  expect(rows.length).toBeLessThan(2);
  return rows[0]?.name;
};

it('protects members from their first moment or their joining on, and no longer than they are members', async () => {
  const [protects, other, without] = [await group('g1', 'of-group'), await group('g2', 'of-other'), await group('g3')];
  const born = await house.volume('born', { volumeGroupId: protects.id });
  expect(await templateOf(born.id)).toBe('of-group');
  const joined = await house.volume('joined');
  expect(await templateOf(joined.id)).toBeUndefined();
  for (const [volumeGroupId, template] of [
    [protects.id, 'of-group'],
    [other.id, 'of-other'],
    [without.id, undefined],
    [protects.id, 'of-group'],
    [null, undefined],
  ] as const) {
    await edit(joined.id, { volumeGroupId });
    expect(await templateOf(joined.id)).toBe(template);
  }
});

it('leaves a volume its own template, and comes back when that is taken away', async () => {
  const { id: volumeGroupId } = await group('g4', 'of-group');
  const { id } = await house.volume('own', { volumeGroupId, protectionTemplate: 'of-volume' });
  expect(await templateOf(id)).toBe('of-volume');
  await edit(id, { protectionTemplate: null });
  expect(await templateOf(id)).toBe('of-group');
  // The same template as its own stays when the volume leaves.
  await edit(id, { protectionTemplate: 'of-group' });
  await edit(id, { volumeGroupId: null });
  expect(await templateOf(id)).toBe('of-group');
});

it('is not of a volume that comes back from the recycle bin, where it has no group', async () => {
  const { id: volumeGroupId } = await group('g5', 'of-group');
  const { id } = await house.volume('binned', { volumeGroupId, destroyOnDelete: false });
  await house.volumes.delete(house.caller(), id, { force: false });
  await restoreFromBin(house.parts.database, house.tenantId, id);
  expect(await templateOf(id)).toBeUndefined();
});

it('takes snapshots of each member', async () => {
  const { id: volumeGroupId } = await group('g6', 'of-group');
  const members = [await house.volume('m1', { volumeGroupId }), await house.volume('m2', { volumeGroupId })];
  const ids = members.map(({ id }) => id);
  await house.testDatabase.query('UPDATE trivet.volume_protection SET next_run_at = now() WHERE volume_id = ANY ($1)', [
    ids,
  ]);
  await new ProtectionScheduler(house.parts.database).run(AbortSignal.timeout(20_000));
  await house.settled();
  const made = await house.testDatabase.query<{ volume_id: string }>(
    `SELECT volume_id FROM trivet.snapshot WHERE name LIKE 'of-group-hourly-%' AND volume_id = ANY ($1)`,
    [ids],
  );
  expect(made.map(({ volume_id }) => volume_id).sort()).toEqual([...ids].sort());
});

it('must exist, and stays as long as a group has it', async () => {
  await expect(group('g7', 'not-there')).rejects.toMatchObject({
    kind: 'invalid_argument',
    field: 'protectionTemplate',
  });
  await templates.add('kept', [{ name: 'daily', everyMinutes: 1440, atMinutes: 0, retain: 1 }]);
  const { id } = await group('g8', 'kept');
  await expect(templates.remove('kept')).rejects.toMatchObject({
    kind: 'failed_precondition',
    message: expect.stringContaining('1 volume group'),
  });
  await house.volumeGroups.delete(house.caller(), id);
  await templates.remove('kept');
});
