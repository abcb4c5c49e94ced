import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Progress } from './progress.js';

const MIB = 1024 ** 2;
let written: string[];
const output = (isTTY: boolean) => ({ isTTY, write: (text: string) => written.push(text) });

beforeEach(() => {
  written = [];
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => vi.useRealTimers());

it('is a bar on a terminal, drawn over at most five times a second, and leaves a clean line', () => {
  const progress = new Progress('backup of data', output(true));
  progress.show(0, 100 * MIB, 0);
  vi.advanceTimersByTime(100);
  progress.show(10 * MIB, 100 * MIB, 10 * MIB);
  vi.advanceTimersByTime(900);
  progress.show(50 * MIB, 100 * MIB, 20 * MIB);
  progress.end();
  progress.end();
  expect(written).toEqual([
    `\r\u001b[Kbackup of data [${'.'.repeat(24)}]   0 %  0 B, 0 B/s`,
    `\r\u001b[Kbackup of data [${'#'.repeat(12)}${'.'.repeat(12)}]  50 %  20 MiB, 20 MiB/s`,
    '\r\u001b[K',
  ]);
});

it('is a line from time to time elsewhere', () => {
  const progress = new Progress('restore', output(false));
  progress.show(0, 100, 0);
  vi.advanceTimersByTime(10_000);
  progress.show(100, 100, 100 * MIB);
  progress.end();
  expect(written).toEqual(['restore: 100 %  100 MiB, 10 MiB/s\n']);
});
