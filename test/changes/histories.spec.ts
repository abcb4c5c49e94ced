import { afterAll, beforeAll, describe, it } from 'vitest';
import { ChangesHouse } from '#test/changes/changes-house';
import { History } from '#test/changes/history';
import { parts } from '#test/support/parts';

/** Whatever happens to a volume, what the index says and the data of its snapshots agree. */
const SEED = 1_795_200_000;
const TIMES = process.env.TRIVET_TEST_LONG ? 25 : 1;

describe.each([
  ['blocks are shared', 4, () => parts().xfs!.path],
  ['data are copied', 2, () => undefined],
])('where %s', (_, cases, under) => {
  let house: ChangesHouse;
  beforeAll(async () => {
    house = await ChangesHouse.create({ under: under() });
  });
  afterAll(() => house?.close());

  it.each(Array.from({ length: cases * TIMES }, (_, n) => SEED + n))('history %i', async seed => {
    const history = await History.begin(house, seed);
    await history.run(20).catch(error => {
      throw new Error(`${error.message}\nafter:\n  ${history.told.join('\n  ')}`, { cause: error });
    });
  });
});
