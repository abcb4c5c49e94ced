import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AdminCall } from '#admin/requests/admin-call';

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

it.each<[prefer: string | undefined, seconds: number]>([
  [undefined, 10],
  ['wait=0', 0],
  ['wait=5', 5],
  ['Wait=7', 7],
  ['respond-async, wait=30', 30],
  ['wait=30; respond-async', 30],
  ['wait=120', 120],
  ['wait=999999', 120],
  ['wait=-1', 10],
  ['wait=1.5', 10],
  ['await=3', 10],
  ['wait=soon', 10],
])('a call with Prefer: %s waits for its operation until %i s after it came', (prefer, seconds) => {
  const request = { headers: prefer === undefined ? {} : { prefer } };
  const call = new AdminCall(...([undefined, request] as unknown as ConstructorParameters<typeof AdminCall>));
  vi.advanceTimersByTime(2_000);
  expect(call.deadline).toBe(1_000_000 + seconds * 1_000);
});
