import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { reflinkKind } from '#backends/reflink/reflink-kind';
import { PoolMonitor } from '#storage/block/pools/pool-monitor';
import { BlockHouse } from '#test/block-storage/block-house';
import { until } from '#test/support/parts';

const LOST = 6;

let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create({ morePools: ['other'] });
});
afterAll(() => house?.close());

const look = () =>
  new PoolMonitor(house.parts.database, { open: async () => house.store }, () => reflinkKind).run(
    AbortSignal.timeout(10_000),
  );
const deletions = () =>
  house.testDatabase.query<{ state: string; attempt: number; error: { resource?: string } | null }>(
    "SELECT state, attempt, error FROM trivet.operation WHERE kind = 'volume.delete' ORDER BY seq",
  );

it('holds what a down pool did not answer until it is up, opens no circuit for it, and lets the other pool work', async () => {
  const volumes = await Promise.all(
    Array.from({ length: LOST }, (_, n) => house.volume(`other-${n}`, { pool: 'other' })),
  );
  const image = { pool: 'other', kind: 'volume', id: volumes[0]!.id, folder: '' } as const;
  const path = join(house.store.volumes.pathOf(image), '..', '..');
  const marker = join(path, 'trivet-pool.json');
  renameSync(marker, `${marker}.away`);
  await look();
  for (const { id } of volumes)
    await expect(house.volumes.delete(house.caller(), id, { force: false })).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('pool other is down'),
    });
  await until('each has had a try', async () =>
    (await deletions()).every(({ state, error }) => state === 'pending' && error),
  );
  await house.testDatabase.query("UPDATE trivet.operation SET next_run_at = now() WHERE state = 'pending'");
  const before = await deletions();
  expect(before.map(({ attempt }) => attempt)).toEqual(Array.from({ length: LOST }, () => 1));
  for (let n = 0; n < 5; n++) await house.volume(`default-${n}`);
  expect(await deletions()).toEqual(before);
  expect(await house.testDatabase.query('SELECT FROM trivet.backend_circuit WHERE open_until IS NOT NULL')).toEqual([]);

  await house.testDatabase.query(
    "UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE state = 'pending'",
  );
  renameSync(`${marker}.away`, marker);
  await look();
  await house.settled();
  expect((await deletions()).map(({ state }) => state)).toEqual(Array.from({ length: LOST }, () => 'succeeded'));
});
