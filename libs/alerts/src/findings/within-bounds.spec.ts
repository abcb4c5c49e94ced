import { expect, it } from 'vitest';
import { asFinding } from '#alerts/findings/attention';
import { withinBounds } from '#alerts/findings/within-bounds';

const finding = (object: string, what = '') =>
  asFinding({ rule: 'operation_parked', object, what, means: '', todo: '', link: null });

it('a text that is cut in the middle of a character remains one that PostgreSQL takes', () => {
  const [bounded] = withinBounds([finding(`${'a'.repeat(499)}😀`, `${'b'.repeat(1_999)}😀`)]).values();
  expect(bounded!.object).toBe(`${'a'.repeat(499)}\u{fffd}`);
  expect(bounded!.what).toBe(`${'b'.repeat(1_999)}\u{fffd}`);
});
