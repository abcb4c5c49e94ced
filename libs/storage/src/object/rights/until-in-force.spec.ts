import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ObjectBackend } from '#backends/object-backend';
import type { StepContext } from '#operations/definitions/handler';
import { StorageError } from '#platform/errors';
import { untilInForce } from '#storage/object/rights/until-in-force';

const ATTEMPTS = 20;
const QUESTION = {
  key: { accessKeyId: 'key', secretAccessKey: 'secret' },
  expected: [{ bucket: 'photos', mode: 'revoked' as const }],
};

let isInForce: boolean;
const backend = { traits: () => ({ late: true }), isInForce: async () => isInForce } as unknown as ObjectBackend;
const progress: Record<string, unknown> = {};
const context = {
  progress,
  call: (_: string, work: (signal: AbortSignal) => Promise<unknown>) => work(new AbortController().signal),
} as unknown as StepContext;

beforeEach(() => {
  isInForce = false;
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

/** What one attempt of the operation comes to. */
async function attempt(): Promise<string> {
  const gaveUp = () => new StorageError('failed_precondition', 'given up');
  const ended = untilInForce(backend, [QUESTION], context, gaveUp).then(
    () => 'in force',
    (error: StorageError) => error.kind,
  );
  await vi.advanceTimersByTimeAsync(10_000);
  return ended;
}

it('gives up after some attempts, and has as many when it is asked for again', async () => {
  for (const _ of [1, 2]) {
    for (let n = 1; n < ATTEMPTS; n++) expect(await attempt()).toBe('aborted');
    expect(await attempt()).toBe('failed_precondition');
  }
  isInForce = true;
  expect(await attempt()).toBe('in force');
});
