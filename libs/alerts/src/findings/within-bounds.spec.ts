import { expect, it } from 'vitest';
import { asFinding } from '#alerts/findings/attention';
import { gotWorse, keyOf, MOST_OF_RULE, withinBounds } from '#alerts/findings/within-bounds';

const finding = (object: string, what = '') =>
  asFinding({ rule: 'operation_parked', object, what, means: '', todo: '', link: null });

it('a text that is cut in the middle of a character remains one that PostgreSQL takes', () => {
  const [bounded] = withinBounds([finding(`${'a'.repeat(499)}😀`, `${'b'.repeat(1_999)}😀`)], new Map()).values();
  expect(bounded!.object).toBe(`${'a'.repeat(499)}\u{fffd}`);
  expect(bounded!.what).toBe(`${'b'.repeat(1_999)}\u{fffd}`);
});

it('what is an alert already keeps its place before what is new', () => {
  const all = Array.from({ length: MOST_OF_RULE + 1 }, (_, n) => finding(`object-${n}`));
  const last = keyOf(all.at(-1)!);
  expect(withinBounds(all, new Set()).has(last)).toBe(false);
  const found = withinBounds(all, new Set([last]));
  expect(found.size).toBe(MOST_OF_RULE);
  expect(found.has(last)).toBe(true);
});

it('a pool that is down is not one that fills no more; another pool is', () => {
  const found = new Set([keyOf({ rule: 'pool_down', object: 'acme/local/main' })]);
  expect(gotWorse({ rule: 'pool_filling', object: 'acme/local/main' }, found)).toBe(true);
  expect(gotWorse({ rule: 'pool_full', object: 'acme/local/main' }, found)).toBe(true);
  expect(gotWorse({ rule: 'pool_filling', object: 'acme/local/other' }, found)).toBe(false);
  expect(gotWorse({ rule: 'pool_down', object: 'acme/local/main' }, found)).toBe(false);
});
