import { beforeAll, describe, expect, it } from 'vitest';
import { Refusal, toProblem } from '#admin/problems/problems';
import { StorageError } from '#platform/errors';
import { configureLogging } from '#platform/logging/log';

beforeAll(() => configureLogging({ level: 'fatal' }));

const INSTANCE = 'urn:uuid:00000000-0000-4000-8000-000000000000';
const OPERATION = '00000000-0000-4000-8000-000000000001';

describe('a defect', () => {
  it.each<[string, unknown]>([
    ['an error of anybody', new TypeError("cannot read 'secret' of undefined")],
    ['one that says it is one', new StorageError('internal', 'the secret row is not there')],
    ['what is no error', 'secret'],
    ['one of an operation', new StorageError('internal', 'secret', { operation: { id: OPERATION, goesOn: false } })],
    ['a refusal of a framework that nobody knows', Object.assign(new Error('secret'), { statusCode: 418 })],
  ])('%s tells nothing but what to quote', (_, error) => {
    const { problem } = toProblem(error, INSTANCE);
    expect(problem).toMatchObject({
      status: 500,
      code: 'internal',
      detail: `internal error; quote ${INSTANCE}`,
      instance: INSTANCE,
    });
    expect(JSON.stringify(problem)).not.toContain('secret');
  });
});

it('what may succeed later says when to try again, and which operation it is about', () => {
  const operation = { id: OPERATION, goesOn: true };
  const busy = new StorageError('aborted', 'another one is under way', { retry: 'later', operation });
  expect(toProblem(busy, INSTANCE)).toMatchObject({
    problem: { status: 409, retryable: true, operation: `/api/v1/operations/${OPERATION}` },
    retryAfterSeconds: 2,
  });
  const { problem, retryAfterSeconds } = toProblem(new Refusal('not_found', 'it is not there'), INSTANCE);
  expect([problem.retryable, problem.operation, retryAfterSeconds]).toEqual([false, null, undefined]);
});

it('a detail without end is cut between characters', () => {
  const { detail } = toProblem(new Refusal('invalid_argument', '😀'.repeat(5_000)), INSTANCE).problem;
  expect(detail).toHaveLength(2_048);
  expect(detail.isWellFormed()).toBe(true);
});
