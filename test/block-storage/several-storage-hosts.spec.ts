import { afterAll, beforeAll, expect, it } from 'vitest';
import { BlockHouse } from '#test/block-storage/block-house';

/** Pools have homes on several storage hosts; where operations run is in test/hosts. */
let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create({ morePools: ['archive', 'beside', 'found-by-nobody'] });
  for (const [pool, host] of [
    ['default', 'node-b'],
    ['archive', 'node-c'],
    ['beside', 'node-b'],
  ])
    await house.testDatabase.query(
      'INSERT INTO trivet.pool_home (tenant_id, backend_id, pool, host) VALUES ($1, $2, $3, $4)',
      [house.tenantId, house.backendId, pool, host],
    );
});
afterAll(() => house?.close());

const groupOver = async (name: string, pools: readonly string[]): Promise<string> => {
  const { id } = await house.volumeGroups.create(house.caller(), { name, description: '', config: {} });
  for (const [n, pool] of pools.entries()) await house.volume(`${name}-${n}`, { pool, volumeGroupId: id });
  return id;
};
const cut = (volumeGroupId: string) =>
  house.snapshotGroups.create(house.caller(), { name: 'cut', volumeGroupId, description: '', config: {} });

it('refuses a snapshot group over pools of several hosts and says which host has which, each pool once', async () => {
  const volumeGroupId = await groupOver('spread', ['default', 'beside', 'archive', 'default']);
  await expect(cut(volumeGroupId)).rejects.toMatchObject({
    kind: 'failed_precondition',
    message: expect.stringMatching(
      /several storage hosts: pool archive is on node-c, pool beside is on node-b, pool default is on node-b$/,
    ),
  });
});

it('takes one over several pools of one host, and over a pool that no host has found yet', async () => {
  const volumeGroupId = await groupOver('near', ['default', 'beside', 'found-by-nobody']);
  expect((await cut(volumeGroupId)).snapshots).toHaveLength(3);
});
