import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StepLost, storedRanges } from '#changes/stored-ranges';
import { requireSchema } from '#platform/schema/schema-version';
import { BLOCK, ChangesHouse } from '#test/changes/changes-house';
import { fillStep, scattered } from '#test/changes/synthetic-ranges';
import { parts } from '#test/support/parts';

const COUNT = 150_000;

let house: ChangesHouse;
let step: { tenant_id: string; id: string; chunks: number };
const offsets: number[] = [];

beforeAll(async () => {
  house = await ChangesHouse.create({ under: parts().xfs!.path });
  const volume = await house.volume('large');
  await house.snapshot(volume, 's1');
  await house.write(volume, 0, Buffer.alloc(BLOCK, 1));
  await house.snapshot(volume, 's2');
  await house.index();
  const [row] = await house.query<typeof step>("SELECT tenant_id, id FROM trivet.change_step WHERE kind = 'delta'");
  const chunks = await fillStep({ query: (text, params) => house.query(text, params) }, row!, COUNT);
  step = { ...row!, chunks };
  for await (const batch of scattered(COUNT, 0)) offsets.push(...batch.offsets.subarray(0, batch.count));
});
afterAll(() => house?.close());

/** Each batch is looked at only after other statements have come and gone: what is read ahead has come by then. */
async function readSlowly(from: number, ahead: boolean): Promise<number[]> {
  const found: number[] = [];
  const signal = AbortSignal.timeout(30_000);
  for await (const { count, offsets } of storedRanges(house.database, step.tenant_id, step, from, signal, ahead)) {
    for (let n = 0; n < 3; n++) await requireSchema(house.database);
    found.push(...offsets.subarray(0, count));
  }
  return found;
}

describe('a step of many chunks', () => {
  it.each([true, false])('is read whole and in order, the next chunk ahead: %s', async ahead => {
    expect(step.chunks).toBeGreaterThan(2);
    expect(await readSlowly(0, ahead)).toEqual(offsets);
  });

  it('is read from any chunk on', async () => {
    for (const n of [1, COUNT / 2, COUNT - 1])
      expect(await readSlowly(offsets[n]! + 1, true)).toEqual(offsets.slice(n));
  });

  it('is lost when one of them is', async () => {
    const gone = `DELETE FROM trivet.change_chunk WHERE step_id = $1 AND no = 1`;
    await house.query(gone, [step.id]);
    await expect(readSlowly(0, true)).rejects.toThrow(StepLost);
    const [row] = await house.query('SELECT state, reason FROM trivet.change_step WHERE id = $1', [step.id]);
    expect(row).toEqual({ state: 'broken', reason: 'no chunk 1' });
  });
});
