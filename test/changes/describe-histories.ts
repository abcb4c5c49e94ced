import { afterAll, beforeAll, describe, it } from 'vitest';
import type { ChangesHouse } from '#test/changes/changes-house';
import { History } from '#test/changes/history';

const FIRST = 1_795_200_000;
const LONG = 25;

export interface Histories {
  begin(): Promise<ChangesHouse>;
  /** In a long run so many times as many, from the first on. */
  seeds: readonly number[];
  steps: number;
  /** Of most writes. */
  unit?: number;
}

/** Whatever happens to a volume, what the index says and the data of its snapshots agree. */
export function describeHistories(where: string, { begin, seeds, steps, unit }: Histories): void {
  describe(`where ${where}`, () => {
    let house: ChangesHouse;
    beforeAll(async () => {
      house = await begin();
    });
    afterAll(() => house?.close());

    const all = process.env.TRIVET_TEST_LONG ? Array.from({ length: seeds.length * LONG }, (_, n) => n) : seeds;
    it.each(all)(
      'history %i',
      async each => {
        const history = await History.begin(house, FIRST + each, unit);
        await history.run(steps).catch(error => {
          throw new Error(`${error.message}\nafter:\n  ${history.told.join('\n  ')}`, { cause: error });
        });
      },
      120_000,
    );
  });
}
