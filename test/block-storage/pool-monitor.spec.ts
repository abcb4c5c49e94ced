import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { reflinkKind } from '#backends/reflink/reflink-kind';
import { StorageHost } from '#operations/workers/storage-host';
import { PoolMonitor } from '#storage/block/pools/pool-monitor';
import { BlockHouse } from '#test/block-storage/block-house';

let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create();
});
afterAll(() => house?.close());

const look = (host?: StorageHost) =>
  new PoolMonitor(house.parts.database, { open: async () => house.store }, () => reflinkKind, host).run(
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

it('says that its own pool is absent when the place is empty, and nothing has files of it open', async () => {
  const host = await StorageHost.join(house.parts.database, 'node-a', '1');
  await look(host);
  const of = ({ name, path }: { name: string; path: string }) => ({ backend: house.backendId, name, path });
  const pool = of({ name: 'default', path: house.poolPath });
  expect(host.reach).toMatchObject({ pools: [pool], absent: [] });
  const marker = join(house.poolPath, 'trivet-pool.json');
  renameSync(marker, `${marker}.away`);
  await look(host);
  // Its volumes are there: somebody has taken the mark file away.
  expect(host.reach).toMatchObject({ pools: [], absent: [] });
  renameSync(`${marker}.away`, marker);

  const away = `${house.poolPath}.away`;
  renameSync(house.poolPath, away);
  try {
    await look(host);
    expect(host.reach).toMatchObject({ pools: [], absent: [pool] });
    mkdirSync(house.poolPath);
    await look(host);
    expect(host.reach).toMatchObject({ pools: [], absent: [pool] });
    const asked = vi.spyOn(house.store.exporter, 'listTargets');
    const target = { tid: 1, iqn: 'iqn.2026-11.example:v', initiators: [], sessions: [] };
    for (const [targets, absent] of [
      [[{ ...target, path: '/volumes/v' }], []],
      [[target], [pool]],
    ] as const) {
      asked.mockResolvedValueOnce([...targets]);
      await look(host);
      expect(host.reach).toMatchObject({ absent });
    }
    asked.mockRejectedValueOnce(new Error('it does not answer'));
    await look(host);
    expect(host.reach).toMatchObject({ absent: [] });
    asked.mockRestore();
    // What another host would be without is none of its business.
    await house.testDatabase.query("UPDATE trivet.pool_home SET host = 'node-b'");
    await look(host);
    expect(host.reach).toMatchObject({ absent: [] });
  } finally {
    rmSync(house.poolPath, { recursive: true, force: true });
    renameSync(away, house.poolPath);
  }
});

it('takes no pool into use while its host is drained, found or empty, and does afterwards', async () => {
  // The only one: of several it would have to be named.
  await house.testDatabase.query('DELETE FROM trivet.storage_host');
  const host = await StorageHost.join(house.parts.database, 'node-c', '1');
  const drain = (draining: boolean) =>
    house.testDatabase.query("SELECT trivet.drain_storage_host('node-c', $1, NULL, 'me')", [draining]);
  const homes = async () => (await house.testDatabase.query('SELECT host FROM trivet.pool_home')).map(one => one.host);
  await house.testDatabase.query('DELETE FROM trivet.pool_home');
  await drain(true);
  await look(host);
  expect(await row()).toMatchObject({ state: 'down', reason: expect.stringMatching(/drained.*undrain/) });
  expect(await homes()).toEqual([]);
  expect(host.reach).toMatchObject({ pools: [] });
  await drain(false);
  await look(host);
  expect(await row()).toMatchObject({ state: 'up', reason: null });
  expect(await homes()).toEqual(['node-c']);
  // What it has it goes on with.
  await drain(true);
  await look(host);
  expect(await row()).toMatchObject({ state: 'up' });

  const away = `${house.poolPath}.away`;
  renameSync(house.poolPath, away);
  mkdirSync(house.poolPath);
  await house.testDatabase.query('DELETE FROM trivet.pool_home');
  await house.testDatabase.query('UPDATE trivet.pool SET uuid = NULL');
  try {
    await look(host);
    expect(await row()).toMatchObject({ state: 'down', reason: expect.stringMatching(/drained.*undrain/) });
    expect(readdirSync(house.poolPath)).toEqual([]);
    await drain(false);
    await look(host);
    expect(readdirSync(house.poolPath)).toContain('trivet-pool.json');
  } finally {
    rmSync(house.poolPath, { recursive: true, force: true });
    renameSync(away, house.poolPath);
  }
});
