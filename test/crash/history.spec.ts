import { describe, expect, it } from 'vitest';
import { type Attempt, type History, violations } from '#test/crash/history';
import type { CallLogRow } from '#test/fakes/object/fake-control';

const attempt = (change: Partial<Attempt> = {}): Attempt => ({
  operationId: 'op',
  kind: 'bucket.create',
  resources: ['i1'],
  worker: 'w1',
  fence: 1,
  from: 100,
  to: 200,
  begun: change.from ?? 100,
  ended: change.to ?? 200,
  ...change,
});
const effect = (method: string, outcome: string, change: Partial<CallLogRow> = {}): CallLogRow => ({
  seq: 0,
  call: 'c',
  pid: 1,
  method,
  resource: 'photos',
  incarnation: 'i1',
  phase: 'effect',
  outcome,
  at: 150,
  ...change,
});
const judge = (attempts: Attempt[], calls: CallLogRow[] = []): string[] => {
  const history: History = {
    attempts,
    calls,
    pids: new Map([
      ['w1', 1],
      ['w2', 2],
    ]),
    registered: new Map([['foreign', 'r1']]),
  };
  return violations(history);
};

describe('the judge of the crash tests', () => {
  it('finds nothing in a clean history', () => {
    const calls = [
      effect('createBucket', 'created'),
      effect('createBucket', 'unchanged', { pid: 2, at: 900 }),
      effect('configureBucket', 'changed'),
      effect('putGrants', 'changed', { resource: 'foreign', incarnation: null, at: 320 }),
      effect('deleteBucket', 'deleted', { at: 320 }),
    ];
    const later = attempt({ operationId: 'op2', resources: ['i1', 'r1'], from: 300, to: 400 });
    expect(judge([attempt(), later], calls)).toEqual([]);
  });

  it('goes by what was seen, and not by when it came in', () => {
    const next = attempt({ operationId: 'op2', from: 197, to: 300, begun: 201, worker: 'w2' });
    expect(judge([attempt(), next])).toEqual([]);
  });

  it.each([
    ['a fence that repeats', [attempt(), attempt({ from: 300, to: 400 })], [], /fence 1 instead of 2/],
    [
      'two attempts at one resource at once',
      [attempt(), attempt({ operationId: 'op2', from: 199, to: 300, worker: 'w2' })],
      [],
      /P3/,
    ],
    ['an effect after the lease', [attempt()], [effect('configureBucket', 'changed', { at: 203 })], /without a lease/],
    ['an effect of another process', [attempt()], [effect('createBucket', 'created', { pid: 2 })], /without a lease/],
    [
      'an effect at a resource that was not held',
      [attempt()],
      [effect('putPrincipal', 'created', { resource: 'trivet-x', incarnation: null })],
      /without a lease/,
    ],
    [
      'an incarnation that comes back',
      [attempt()],
      [effect('createBucket', 'created'), effect('deleteBucket', 'deleted'), effect('createBucket', 'created')],
      /P2: createBucket created photos of i1 after its end/,
    ],
    [
      'two incarnations alive under one name',
      [attempt({ resources: ['i1', 'i2'] })],
      [effect('createBucket', 'created'), effect('createBucket', 'created', { incarnation: 'i2' })],
      /while it belonged to i1/,
    ],
    [
      'the deletion of the next incarnation',
      [attempt({ resources: ['i1', 'i2'] })],
      [effect('createBucket', 'created', { incarnation: 'i2' }), effect('deleteBucket', 'deleted')],
      /of i2 was deleted for i1/,
    ],
    [
      'an old creation that is delivered after the end',
      [attempt()],
      [effect('createBucket', 'created'), effect('deleteBucket', 'deleted'), effect('createBucket', 'late created')],
      /after its end/,
    ],
    [
      'a key that comes back',
      [attempt({ resources: ['a'] })],
      ['removeKey', 'putPrincipal'].map(method =>
        effect(method, method === 'removeKey' ? 'deleted' : 'changed', { resource: 'trivet-a', incarnation: null }),
      ),
      /after its end/,
    ],
  ])('finds %s', (_, attempts, calls, message) => {
    expect(judge(attempts, calls).join('\n')).toMatch(message);
  });
});
