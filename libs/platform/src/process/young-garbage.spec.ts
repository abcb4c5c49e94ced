import { getHeapSpaceStatistics } from 'node:v8';
import { expect, it } from 'vitest';
import { dropped } from '#platform/process/young-garbage';

const MIB = 1024 ** 2;
const young = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')!.space_used_size;

it('is collected when enough of it was dropped, and not before', () => {
  dropped(16 * MIB);
  for (let n = 0; n < 256; n++) Buffer.allocUnsafeSlow(1_024);
  const before = young();
  dropped(12 * MIB);
  expect(young()).toBeGreaterThanOrEqual(before);
  dropped(4 * MIB);
  expect(young()).toBeLessThan(before);
});
