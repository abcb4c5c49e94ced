import { describe, expect, it } from 'vitest';
import { discoveryIps, isLocal, servesNodes } from '#storage/block/pools/portals';

describe('portals', () => {
  it.each([
    // Nodes of HPE's driver ping what they are told, and a port behind it makes it a name that nobody knows.
    [
      ['192.0.2.1:3260', '192.0.2.2:3260'],
      ['192.0.2.1', '192.0.2.2'],
    ],
    [['192.0.2.2:3261', '192.0.2.1:3260'], ['192.0.2.1']],
    [['[fd00::7]:3260'], ['fd00::7']],
    // The demo and backups find their way to any port.
    [
      ['127.0.0.1:23456', '[::1]:23456'],
      ['127.0.0.1:23456', '[::1]:23456'],
    ],
    [['127.0.0.1:3260'], ['127.0.0.1']],
  ])('%s are told as %s', (portals, told) => {
    expect(discoveryIps(portals)).toEqual(told);
  });

  it.each([
    [['192.0.2.1:3260'], true, false],
    [['192.0.2.1:3261', '192.0.2.2:3260'], true, false],
    [['192.0.2.1:3261'], false, false],
    [['192.0.2.1:13260'], false, false],
    // No host can be told to go there.
    [['0.0.0.0:3260', '[::]:3260'], false, false],
    [['127.0.0.1:3261', '[::1]:3261'], false, true],
    [['127.0.0.1:3260'], true, true],
  ])('%s serve nodes: %s, this host alone: %s', (portals, nodes, local) => {
    expect([servesNodes(portals), isLocal(portals)]).toEqual([nodes, local]);
  });
});
