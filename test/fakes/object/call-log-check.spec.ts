import { describe, expect, it } from 'vitest';
import { checkCallLog } from '#test/fakes/object/call-log-check';
import type { CallLogRow } from '#test/fakes/object/fake-control';

type Entry = [call: string, method: string, resource: string, phase: CallLogRow['phase'], outcome?: string];
const log = (...entries: Entry[]): CallLogRow[] =>
  entries.map(([call, method, resource, phase, outcome], n) => {
    return { seq: n + 1, call, pid: 1, method, resource, incarnation: null, phase, outcome: outcome ?? null, at: n };
  });
const whole = (call: string, method: string, resource: string, outcome: string): Entry[] => [
  [call, method, resource, 'begin'],
  [call, method, resource, 'effect', outcome],
  [call, method, resource, 'end', 'ok'],
];

describe('check of a call log', () => {
  it('is content with one call after the other, and with two lives', () => {
    const rows = log(
      ...whole('1', 'createBucket', 'a', 'created'),
      ...whole('2', 'createBucket', 'a', 'unchanged'),
      ...whole('3', 'putGrants', 'a', 'changed'),
      ...whole('4', 'deleteBucket', 'a', 'deleted'),
      ...whole('5', 'createBucket', 'a', 'created'),
      ...whole('6', 'putPrincipal', 'a', 'created'),
    );
    expect(checkCallLog(rows)).toEqual([]);
  });

  it('sees what was created twice, late or not', () => {
    expect(
      checkCallLog(
        log(...whole('1', 'putPrincipal', 'u', 'created'), ...whole('2', 'putPrincipal', 'u', 'late created')),
      ),
    ).toEqual(['principal u was created at 2 and again at 5']);
  });

  it('does not take the removal of a key for the end of its principal', () => {
    const rows = log(
      ...whole('1', 'putPrincipal', 'u', 'created'),
      ...whole('2', 'removeKey', 'u', 'deleted'),
      ...whole('3', 'putPrincipal', 'u', 'created'),
    );
    expect(checkCallLog(rows)).toHaveLength(1);
  });

  it('sees changing calls that overlap on one resource, and lets reads pass', () => {
    const rows = log(
      ['1', 'putGrants', 'a', 'begin'],
      ['2', 'inspectBucket', 'a', 'begin'],
      ['3', 'deleteBucket', 'a', 'begin'],
      ['4', 'deleteBucket', 'b', 'begin'],
      ['1', 'putGrants', 'a', 'end', 'ok'],
      ['2', 'inspectBucket', 'a', 'end', 'ok'],
      ['3', 'deleteBucket', 'a', 'end', 'ok'],
      ['4', 'deleteBucket', 'b', 'end', 'ok'],
    );
    expect(checkCallLog(rows)).toEqual(['bucket a: deleteBucket at 3 began within putGrants of 1']);
  });

  it('does not hold a call against its successors that a crash cut off', () => {
    const rows = log(['1', 'createBucket', 'a', 'begin'], ...whole('2', 'createBucket', 'a', 'created'));
    expect(checkCallLog(rows)).toEqual([]);
  });
});
