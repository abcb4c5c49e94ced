import { expect, it } from 'vitest';
import { unknownOf } from './unknown-filters';

it('a filter that a list does not know is named, and nothing else of its address', () => {
  const address = new URLSearchParams(
    'state=ready&colour=red&colour=blue&cursor=x&limit=20&sort=name&columns=Name&tenant=a',
  );
  expect(unknownOf(address.keys(), ['state', 'search'])).toEqual(['colour']);
});
