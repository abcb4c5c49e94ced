import { expect, it } from 'vitest';
import { counted } from '#platform/counted';

it('says one of them in the singular', () => {
  expect([0, 1, 2].map(count => counted(count, 'volume'))).toEqual(['0 volumes', '1 volume', '2 volumes']);
  expect([1, 2].map(count => counted(count, 'access', 'accesses'))).toEqual(['1 access', '2 accesses']);
});
