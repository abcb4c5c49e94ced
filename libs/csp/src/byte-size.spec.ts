import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byteSize, sizeNumber } from '#csp/byte-size';

const MOST = 2n ** 63n - 1n;

describe('a size', () => {
  it('is exact, as digits and back as a number of JSON', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: MOST }), size => {
        expect(byteSize.parse(String(size))).toBe(size);
        expect(JSON.stringify({ size: sizeNumber(size) })).toBe(`{"size":${size}}`);
      }),
      { seed: 1, numRuns: 500 },
    );
  });

  it('may be a number that JavaScript holds', () => {
    expect(byteSize.parse(1073741824)).toBe(1073741824n);
    expect(byteSize.parse(Number.MAX_SAFE_INTEGER)).toBe(BigInt(Number.MAX_SAFE_INTEGER));
  });

  it.each([
    0,
    -1,
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    1e30,
    '0',
    '-1',
    '+1',
    '1.0',
    '1e3',
    '0x10',
    ' 1',
    '1 ',
    '',
    '1_000',
    '١',
    String(MOST + 1n),
    '9'.repeat(30),
    null,
    undefined,
    true,
    [],
    [1],
    {},
    10n,
  ])('is not %o', wrong => {
    expect(byteSize.safeParse(wrong).error?.issues[0]?.message).toBe('must be a positive whole number of bytes');
  });
});
