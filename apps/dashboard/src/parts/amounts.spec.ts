import { describe, expect, it } from 'vitest';
import { POOL_MARKS } from '#storage/block/pools/pool-marks';
import { MARKS, readBytes, shareOf, showAgo, showBytes, showDuration, showPercent } from './amounts';

describe('amounts', () => {
  it('are much, and too much, from where pools are', () => {
    expect(MARKS).toEqual(POOL_MARKS);
  });

  it.each([
    ['0', '0 B'],
    ['1023', '1023 B'],
    ['1024', '1 KiB'],
    ['10737418240', '10 GiB'],
    ['1610612736', '1.5 GiB'],
    ['9223372036854775807', '8 EiB'],
    [null, '–'],
  ])('%s bytes are %s', (bytes, text) => expect(showBytes(bytes)).toBe(text));

  it.each([
    ['10 GiB', '10737418240'],
    ['1.5g', '1610612736'],
    ['4096', '4096'],
    ['8 EB', '8000000000000000000'],
    ['8 EiB', '9223372036854775808'],
    ['100 GB', '100000000000'],
    ['100 GiB', '107374182400'],
    ['1.5 kB', '1500'],
    ['1.2345 kB', undefined],
    ['0.5', undefined],
    ['5 gigs', undefined],
    ['12 B', '12'],
    ['100 EiB', undefined],
    ['ten', undefined],
    ['1 XB', undefined],
    ['', undefined],
    ['-1', undefined],
  ])('%s is %s bytes', (text, bytes) => expect(readBytes(text)).toBe(bytes));

  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [61_000, '1 min 1 s'],
    [7_200_000, '2 h'],
    [90_061_000, '1 d 1 h'],
    [null, '–'],
  ])('%s ms are %s', (ms, text) => expect(showDuration(ms)).toBe(text));

  it('says relative times on both sides of now', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect(showAgo('2025-12-31T23:59:59Z', now)).toBe('now');
    expect(showAgo('2025-12-31T23:57:00Z', now)).toBe('3 min ago');
    expect(showAgo('2026-01-01T00:00:20Z', now)).toBe('in 20 s');
    expect(showAgo('2025-12-01T00:00:00Z', now)).toBe('31 d ago');
  });

  it('keeps shares between nothing and all', () => {
    expect(shareOf('5', '10')).toBe(0.5);
    expect(shareOf('20', '10')).toBe(1);
    expect(shareOf('1', '0')).toBe(0);
    expect(showPercent(0.001)).toBe('below 1 %');
    expect(showPercent(0)).toBe('0 %');
  });
});
