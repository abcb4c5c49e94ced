import { expect, it } from 'vitest';
import { describePortals } from './doors.js';

it.each([
  ['192.0.2.10:3260', ''],
  ['192.0.2.10:3260,slow=192.0.2.11:3260,slow=[fd00::7]:3260', ''],
  ['127.0.0.1:3260', ' (this host alone; '],
  ['127.0.0.1:23456', ' (this host alone; '],
  ['192.0.2.10:3260,slow=192.0.2.10:3261', " (nodes of HPE's driver come to port 3260 alone, not to 192.0.2.10:3261)"],
  ['0.0.0.0:3260', " (nodes of HPE's driver come to port 3260 alone, not to 0.0.0.0:3260)"],
])('says which hosts can come to %s', (portals, said) => {
  const line = describePortals(portals);
  expect(line.startsWith(portals + said)).toBe(true);
  expect(line.includes('(')).toBe(said !== '');
  expect(line).not.toContain('\n');
});

it('says that nothing is exported', () => {
  expect(describePortals(undefined)).toBe('none: volumes are not exported');
});
