import { expect, it } from 'vitest';
import { isLeftover } from '#backends/linux/leftover-sockets';

/** As Linux 6.18 writes them. */
const KILLED =
  '   7: 0B0042E0:A2C4 090042E0:1A90 04 00001000:00000000 01:00000014 00000003     0        0 0 2 0000000000000000 120 4 1 10 -1';
const SERVED = new Set([3260]);

it('is what a killed process had written and nobody has acknowledged', () => {
  expect(isLeftover(KILLED, SERVED)).toBe(true);
  expect(isLeftover(KILLED.replace('00001000:', '00000000:'), SERVED)).toBe(false);
});

it('is not what a process still has, nor an open connection, nor one of a client of ours', () => {
  expect(isLeftover(KILLED.replace('0        0 0 2', '0        0 88231 2'), SERVED)).toBe(false);
  expect(isLeftover(KILLED.replace(' 04 ', ' 01 '), SERVED)).toBe(false);
  expect(isLeftover(KILLED.replace(':A2C4', ':0CBC'), SERVED)).toBe(false);
});
