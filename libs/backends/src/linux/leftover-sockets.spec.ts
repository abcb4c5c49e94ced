import { expect, it } from 'vitest';
import { hasLeftovers } from '#backends/linux/leftover-sockets';

/** As Linux 6.18 writes them. */
const KILLED =
  '   7: 0B0042E0:A2C4 090042E0:1A90 04 00001000:00000000 01:00000014 00000003     0        0 0 2 0000000000000000 120 4 1 10 -1';
const PORTAL =
  '   1: 320042E0:0CBC 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0';

it('are what a killed process had written and nobody has acknowledged', () => {
  expect(hasLeftovers([PORTAL, KILLED], [])).toBe(true);
  expect(hasLeftovers([KILLED.replace('00001000:', '00000000:')], [])).toBe(false);
});

it('are not what a process still has, nor an open connection, nor those of clients of what listens here', () => {
  expect(hasLeftovers([KILLED.replace('0        0 0 2', '0        0 88231 2')], [])).toBe(false);
  expect(hasLeftovers([KILLED.replace(' 04 ', ' 01 ')], [])).toBe(false);
  expect(hasLeftovers([PORTAL, KILLED.replace(':A2C4', ':0CBC')], [])).toBe(false);
  expect(hasLeftovers([KILLED.replace(':A2C4', ':0CBC')], [3260])).toBe(false);
});
