import { describe, expect, it } from 'vitest';
import { hashOfRecoveryCode, newRecoveryCodes, newTotpSecret, stepOfCode, totpUri } from '#tenancy/factors/totp-codes';

/** Base32 of the ASCII text 12345678901234567890 (RFC 6238, appendix B); the last six of its eight digits. */
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

describe('a code', () => {
  it.each([
    [59, '287082', 1],
    [1_111_111_109, '081804', 37_037_036],
    [1_234_567_890, '005924', 41_152_263],
    [20_000_000_000, '353130', 666_666_666],
  ])('of RFC 6238 at %d s is %s', (seconds, code, step) => {
    expect(stepOfCode(SECRET, code, 0, seconds * 1_000)).toBe(step);
  });

  it('is good for one step before and after its own, and once', () => {
    const at = (step: number, used = 0) => stepOfCode(SECRET, '081804', used, step * 30_000);
    const own = 37_037_036;
    expect([-2, -1, 0, 1, 2].map(off => at(own + off))).toEqual([undefined, own, own, own, undefined]);
    expect([at(own, own), at(own, own + 1), at(own, own - 1)]).toEqual([undefined, undefined, own]);
  });

  it('of other digits, and text that is none, is refused', () => {
    for (const code of ['000000', '28708', '2870822', '', 'abcdef', '２８７０８２'])
      expect(stepOfCode(SECRET, code, 0, 59_000)).toBeUndefined();
  });
});

it('a secret has 160 bits, and its address says all that an app needs', () => {
  const [one, other] = [newTotpSecret(), newTotpSecret()];
  expect(one).toMatch(/^[A-Z2-7]{32}$/);
  expect(one).not.toBe(other);
  const url = new URL(totpUri(one, 'Trivet', 'ann@acme'));
  expect(decodeURIComponent(url.pathname)).toMatch(/Trivet:ann@acme$/);
  expect(Object.fromEntries(url.searchParams)).toEqual({
    issuer: 'Trivet',
    secret: one,
    algorithm: 'SHA1',
    digits: '6',
    period: '30',
  });
});

it('recovery codes are ten, each of another form than a code, and read as people write them', () => {
  const codes = newRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) expect(code).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/);
  const [code] = codes as [string];
  expect(hashOfRecoveryCode(` ${code.toUpperCase().replaceAll('-', ' ')} `)).toEqual(hashOfRecoveryCode(code));
  for (const other of ['123456', '', `${code}x`, code.slice(1)]) expect(hashOfRecoveryCode(other)).toBeUndefined();
});
