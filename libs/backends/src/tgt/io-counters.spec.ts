import { expect, it } from 'vitest';
import { ioBetween, lookOf } from '#backends/tgt/io-counters';
import { parseCounters } from '#backends/tgt/tgt-stat';

const unit = (sid: number, readBytes: number, reads: number, { tid = 1, written = 0, writes = 0 } = {}) => ({
  tid,
  lun: 1,
  sid,
  readBytes,
  reads,
  writtenBytes: written,
  writes,
});
const between = (before: Parameters<typeof lookOf>[2], after: Parameters<typeof lookOf>[2], ms = 60_000) =>
  ioBetween(lookOf('run-1', 1_000, before), lookOf('run-1', 1_000 + ms, after));

it('reads what tgtd says of units and sessions, controllers left out', () => {
  const text = [
    'tgt lun sid rd_subm(bytes,cmds) rd_done(bytes,cmds) wr_subm(bytes,cmds) wr_done(bytes,cmds) errs',
    '  1   0   1            0      0            0      0            0      0            0      0    0',
    '999999999   1   1         8192      2         4096      1       123456     30       123000     29    1',
    '',
  ].join('\n');
  expect(parseCounters(text)).toEqual([
    { tid: 999_999_999, lun: 1, sid: 1, readBytes: 4096, reads: 1, writtenBytes: 123_000, writes: 29 },
  ]);
});

it('adds up the sessions of a target, and leaves out targets that rest', () => {
  const before = [unit(1, 100, 1), unit(2, 50, 5), unit(3, 7, 7, { tid: 2 })];
  const after = [unit(1, 300, 3), unit(2, 60, 6, { written: 512, writes: 1 }), unit(3, 7, 7, { tid: 2 })];
  expect(between(before, after)).toEqual({
    seconds: 60,
    targets: [{ tid: 1, readBytes: 210, reads: 3, writtenBytes: 512, writes: 1 }],
  });
});

it('counts a session from its begin, and one that ended no more', () => {
  expect(between([unit(1, 1_000_000, 10)], [unit(2, 5, 1)])?.targets).toMatchObject([{ readBytes: 5, reads: 1 }]);
});

it('takes counters that fell for those of another session under the same number', () => {
  expect(between([unit(1, 1_000_000, 10, { writes: 3 })], [unit(1, 2_000_000, 9)])?.targets).toMatchObject([
    { readBytes: 2_000_000, reads: 9, writes: 0 },
  ]);
});

it('says nothing at its first look, of another run of the daemon, after a long gap, or when time stood still', () => {
  const look = (instance: string, at: number) => lookOf(instance, at, [unit(1, 10, 1)]);
  expect(ioBetween(undefined, look('run-1', 0))).toBeUndefined();
  expect(ioBetween(look('run-1', 0), look('run-2', 60_000))).toBeUndefined();
  expect(ioBetween(look('run-1', 0), look('run-1', 300_001))).toBeUndefined();
  expect(ioBetween(look('run-1', 5), look('run-1', 5))).toBeUndefined();
  expect(ioBetween(look('run-1', 9), look('run-1', 5))).toBeUndefined();
});
