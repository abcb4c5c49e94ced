import { describe, expect, it } from 'vitest';
import { pools, portals, scsiIdentity } from '#platform/config/block-forms';

describe('settings of block volumes', () => {
  it.each([
    ['default=/srv/pool', [{ name: 'default', path: '/srv/pool' }]],
    [
      ' ssd=/mnt/ssd , hdd=/mnt/with=sign/ ',
      [
        { name: 'ssd', path: '/mnt/ssd' },
        { name: 'hdd', path: '/mnt/with=sign/' },
      ],
    ],
    [
      'a=/home of, "me"/pool,b=/b,',
      [
        { name: 'a', path: '/home of, "me"/pool' },
        { name: 'b', path: '/b' },
      ],
    ],
  ])('reads the pools %s', (text, expected) => {
    expect(pools.parse(text)).toEqual(expected);
  });

  it.each([
    ['srv/pool', 'expected name=/absolute/path'],
    ['default=srv/pool', 'expected name=/absolute/path'],
    ['-x=/srv', 'expected name=/absolute/path'],
    ['a=/x,a=/y', 'two pools have one name'],
    ['a=/x,b=/y/../x', 'two pools have one path'],
  ])('refuses the pools %s', (text, message) => {
    expect(
      pools
        .safeParse(text)
        .error?.issues.map(issue => issue.message)
        .join(),
    ).toContain(message);
  });

  it('reads portals with and without their pool', () => {
    expect(portals.parse('127.0.0.1:3260,ssd=10.0.0.7:3261,ssd=[fd00::7]:3260')).toEqual([
      { pool: undefined, portal: '127.0.0.1:3260' },
      { pool: 'ssd', portal: '10.0.0.7:3261' },
      { pool: 'ssd', portal: '[fd00::7]:3260' },
    ]);
  });

  it.each(['127.0.0.1', '127.0.0.1:0', '127.0.0.1:65536', 'fd00::7:3260', '=127.0.0.1:1', 'x=y=127.0.0.1:1'])(
    'refuses the portal %s',
    text => {
      expect(portals.safeParse(text).success).toBe(false);
    },
  );

  it.each([
    ['Nimble/Server', { vendor: 'Nimble', product: 'Server' }],
    ['TrueNAS/iSCSI Disk', { vendor: 'TrueNAS', product: 'iSCSI Disk' }],
    ['12345678/1234567890/23456', { vendor: '12345678', product: '1234567890/23456' }],
  ])('reads the identity %s', (text, expected) => {
    expect(scsiIdentity.parse(text)).toEqual(expected);
  });

  it.each([
    'Nimble',
    '/Server',
    'Nimble/',
    '123456789/x',
    'x/12345678901234567',
    'a,b/c',
    'a/b,c',
    ' a/b',
    'a/b ',
    'ä/b',
    'a/\n',
  ])('refuses the identity %j', text => {
    expect(scsiIdentity.safeParse(text).success).toBe(false);
  });
});
