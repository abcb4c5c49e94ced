import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { reflinkKind } from '#backends/reflink/reflink-kind';
import { PoolMonitor } from '#storage/block/pools/pool-monitor';
import { BlockHouse } from '#test/block-storage/block-house';

let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create();
});
afterAll(() => house?.close());

const look = () =>
  new PoolMonitor(house.parts.database, { open: async () => house.store }, () => reflinkKind).run(
    AbortSignal.timeout(10_000),
  );
const row = async () => (await house.testDatabase.query('SELECT uuid, state, reason FROM trivet.pool'))[0]!;

it('takes another pool of ours in the place of the known one for a pool that is down', async () => {
  const { uuid } = await row();
  const other = '0c9f2c3e-5d1c-4b7e-9d3a-000000000000';
  await house.testDatabase.query('UPDATE trivet.pool SET uuid = $1', [other]);
  await look();
  expect(await row()).toMatchObject({ uuid: other, state: 'down', reason: expect.stringContaining(String(uuid)) });
  await expect(house.volume('into-the-wrong-pool')).rejects.toMatchObject({ kind: 'unavailable' });
  await house.testDatabase.query('UPDATE trivet.pool SET uuid = $1', [uuid]);
  await look();
  expect(await row()).toMatchObject({ state: 'up' });
  await house.volume('into-the-right-pool');
});

it('says once what is wrong with a pool, to callers and to whoever shows its reason', async () => {
  const marker = join(house.poolPath, 'trivet-pool.json');
  renameSync(marker, `${marker}.away`);
  try {
    await look();
    expect(await row()).toMatchObject({ state: 'down', reason: 'it has no marker of a pool' });
    await expect(house.volume('nowhere')).rejects.toMatchObject({
      message: 'pool default is down: it has no marker of a pool',
    });
  } finally {
    renameSync(`${marker}.away`, marker);
  }
  await look();
  expect(await row()).toMatchObject({ state: 'up', reason: null });
});
