import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { BlockHouse } from '#test/block-storage/block-house';

const MIB = 1024n ** 2n;

/** What a pool promises (hard-cases F3): thin volumes, so that nothing of it is ever written. */
let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create();
});
afterAll(() => house?.close());

const pool = (change: string) => house.testDatabase.query(`UPDATE trivet.pool SET ${change}`);
const FULL = { kind: 'resource_exhausted', message: expect.stringContaining('insufficient storage space') };
const remove = (id: string) => house.volumes.delete(house.caller(), id, { force: false });
/** Those that were made. */
const together = async (prefix: string, count: number, sizeBytes: bigint) => {
  const settled = await Promise.allSettled(
    Array.from({ length: count }, (_, n) => house.volume(`${prefix}-${n}`, { sizeBytes })),
  );
  for (const one of settled) if (one.status === 'rejected') expect(one.reason).toMatchObject(FULL);
  return settled.flatMap(one => (one.status === 'fulfilled' ? [one.value.id] : []));
};

beforeEach(async () => {
  await house.testDatabase.query("UPDATE trivet.volume SET state = 'gone'");
  await pool(`total_bytes = ${1024n * MIB}, used_bytes = 0, thin_ratio = 1.0, state = 'up'`);
});

it('gives out what it has to callers that come together, and not a volume more', async () => {
  expect(await together('exact', 20, 100n * MIB)).toHaveLength(10);
  // What is left fits to the byte.
  const { id } = await house.volume('rest', { sizeBytes: 24n * MIB });
  await expect(house.volume('block', { sizeBytes: 512n })).rejects.toMatchObject(FULL);
  await remove(id);
  await house.volume('block', { sizeBytes: 512n });
});

it('does not refuse the repeats of a creation that takes the last room', async () => {
  const size = { sizeBytes: 1024n * MIB };
  const made = await Promise.all(Array.from({ length: 20 }, () => house.volume('last', size)));
  expect(new Set(made.map(({ id }) => id)).size).toBe(1);
});

it('promises more than it has where its ratio says so', async () => {
  await pool('thin_ratio = 2.5');
  expect(await together('thin', 30, 100n * MIB)).toHaveLength(25);
});

it('counts an expansion, from its acceptance', async () => {
  const first = await house.volume('first', { sizeBytes: 400n * MIB });
  const second = await house.volume('second', { sizeBytes: 400n * MIB });
  const grow = (id: string) => house.volumes.update(house.caller(), id, { sizeBytes: 600n * MIB });
  const settled = await Promise.allSettled([grow(first.id), grow(second.id)]);
  expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(settled.find(one => one.status === 'rejected')).toMatchObject({ reason: FULL });
  await expect(house.volume('third', { sizeBytes: 25n * MIB })).rejects.toMatchObject(FULL);
  await house.volume('third', { sizeBytes: 24n * MIB });
});

it('counts what is in the recycle bin', async () => {
  const { id } = await house.volume('binned', { sizeBytes: 1000n * MIB, destroyOnDelete: false });
  await remove(id);
  await expect(house.volume('after', { sizeBytes: 100n * MIB })).rejects.toMatchObject(FULL);
});

it('makes nothing above 85 %, in a pool that is down, or that nobody has looked at', async () => {
  await pool('used_bytes = total_bytes * 0.85');
  await house.volume('at-the-limit', { sizeBytes: MIB });
  await pool('used_bytes = total_bytes * 0.8501');
  await expect(house.volume('above', { sizeBytes: MIB })).rejects.toMatchObject(FULL);
  await pool('total_bytes = 0, used_bytes = 0');
  await expect(house.volume('unknown', { sizeBytes: MIB })).rejects.toMatchObject(FULL);
  await pool("state = 'down', reason = 'not mounted'");
  await expect(house.volume('down', { sizeBytes: MIB })).rejects.toMatchObject({ kind: 'unavailable' });
});
