import { afterEach, beforeEach, expect, it, vi } from 'vitest';

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("is this machine's own until PostgreSQL was heard, and goes on from what that said, whatever is done to this one's clock", async () => {
  const { applianceTime, hearApplianceTime } = await import('#platform/process/appliance-time');
  expect(applianceTime()).toBe(Date.now());
  hearApplianceTime(1_000_000);
  vi.advanceTimersByTime(2_500);
  vi.setSystemTime(new Date('2031-01-01'));
  expect(applianceTime()).toBe(1_002_500);
  hearApplianceTime(5_000_000);
  expect(applianceTime()).toBe(5_000_000);
});
