import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BlockBackend, type BlockStore, UNOPENED } from '#backends/block-backend';
import { StorageError } from '#platform/errors';
import { BlockDriftCheck, SHARES } from '#storage/block/drift/block-drift';
import { BlockHouse } from '#test/block-storage/block-house';

/** The audit goes on where it was left, whatever process does it. */
const PORTION = 2;
const VOLUMES = 7;
const HOUR = 3_600_000;

let house: BlockHouse;
let ids: string[];
beforeAll(async () => {
  house = await BlockHouse.create();
  const made: string[] = [];
  for (let n = 0; n < VOLUMES; n++) made.push((await house.volume(`audited-${n}`)).id);
  ids = made.sort();
});
afterAll(() => house?.close());

interface Faults {
  silent?: string;
  absent?: string;
  shut?: string;
}

/** Which images are inspected; the store does not answer for one, says of another that it is not there, and cannot open a third. */
function storeOf(inspected: string[], { silent, absent, shut }: Faults): BlockStore {
  const { volumes } = house.store;
  const inspectImage: BlockBackend['inspectImage'] = async (image, signal) => {
    inspected.push(image.id);
    if (image.id === silent) throw new StorageError('unavailable', 'the store does not answer');
    if (image.id === shut) throw new StorageError('failed_precondition', 'it cannot be opened', { field: UNOPENED });
    return image.id === absent ? { state: 'absent' } : volumes.inspectImage(image, signal);
  };
  const get = (_: BlockBackend, name: keyof BlockBackend) =>
    name === 'inspectImage' ? inspectImage : (volumes[name] as () => unknown).bind(volumes);
  return { ...house.store, volumes: new Proxy(volumes, { get: get as never }) };
}

/** As a worker that has just started. */
async function audited(faults: Faults = {}, everyMs = 0): Promise<string[]> {
  const inspected: string[] = [];
  const store = storeOf(inspected, faults);
  const check = new BlockDriftCheck(house.parts.database, { open: async () => store }, everyMs, undefined, PORTION);
  await check.run(AbortSignal.timeout(20_000));
  return inspected;
}
const lost = async () =>
  (
    await house.testDatabase.query<{ subject: string }>("SELECT subject FROM trivet.finding WHERE kind = 'lost_image'")
  ).map(({ subject }) => subject);

it('ends at the first call without an answer, and begins there again after a restart', async () => {
  expect(await audited({ silent: ids[3], absent: ids[0] })).toEqual(ids.slice(0, 4));
  const [first] = await lost();
  // The portion of the silent one once more, and what was found in the part before stays found.
  expect(await audited({ silent: ids[6] })).toEqual(ids.slice(2, 7));
  expect(await lost()).toEqual([first]);
  expect(await audited()).toEqual(ids.slice(6));
  expect(await lost()).toEqual([first]);
  // The next pass finds its image.
  expect(await audited()).toEqual(ids);
  expect(await lost()).toEqual([]);
});

it('goes on behind an image that is there and cannot be opened, and says so', async () => {
  expect(await audited({ shut: ids[3]! })).toEqual(ids);
  expect(await lost()).toHaveLength(1);
  expect(await house.testDatabase.query('SELECT FROM trivet.volume WHERE condition IS NOT NULL')).toEqual([]);
  expect(await audited()).toEqual(ids);
  expect(await lost()).toEqual([]);
});

it('is not repeated by a worker that starts when another one has just ended it', async () => {
  await audited();
  expect(await audited({}, HOUR)).toEqual([]);
  await house.testDatabase.query("UPDATE trivet.pool SET audited_at = audited_at - interval '1 hour'");
  expect(await audited({}, HOUR)).toEqual(ids);
});

it('lists what is in the pool by shares, and goes on at the one that it was left at', async () => {
  const orphans = Array.from({ length: 4 * SHARES }, () => randomUUID());
  for (const id of orphans) writeFileSync(join(house.poolPath, 'volumes', id), '');
  const { volumes } = house.store;
  /** The shares that are listed, and how many images each had; the store does not answer for one of them. */
  const listing = async (silent?: number): Promise<Map<number, number>> => {
    const listed = new Map<number, number>();
    const listImages: BlockBackend['listImages'] = async function* (pool, signal, share) {
      if (share!.nth === silent) throw new StorageError('unavailable', 'the store does not answer');
      listed.set(share!.nth, 0);
      for await (const image of volumes.listImages(pool, signal, share)) {
        listed.set(share!.nth, listed.get(share!.nth)! + 1);
        yield image;
      }
    };
    const get = (_: BlockBackend, name: keyof BlockBackend) =>
      name === 'listImages' ? listImages : (volumes[name] as () => unknown).bind(volumes);
    const store = { ...house.store, volumes: new Proxy(volumes, { get: get as never }) };
    await new BlockDriftCheck(house.parts.database, { open: async () => store }, 0).run(AbortSignal.timeout(20_000));
    return listed;
  };
  const shares = [...Array(SHARES).keys()];
  const before = await listing(9);
  expect([...before.keys()]).toEqual(shares.slice(0, 9));
  const after = await listing();
  expect([...after.keys()]).toEqual(shares.slice(9));
  const counts = [...before.values(), ...after.values()];
  expect(counts.reduce((sum, count) => sum + count)).toBe(orphans.length + VOLUMES);
  expect(Math.max(...counts)).toBeLessThan(orphans.length / 2);
  const found = await house.testDatabase.query<{ subject: string }>(
    "SELECT subject FROM trivet.finding WHERE kind = 'orphan_image'",
  );
  expect(found.map(({ subject }) => subject.split('/').at(-1)!).sort()).toEqual([...orphans].sort());
});
