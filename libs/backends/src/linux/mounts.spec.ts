import { expect, it } from 'vitest';
import { Mounts } from '#backends/linux/mounts';

const TABLE = `22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 8:16 / /srv/pool rw - xfs /dev/sdb rw
31 22 8:16 /sub /srv/bound rw - xfs /dev/sdb rw
32 22 0:50 / /srv/with\\040space rw - fuse dead rw
33 30 0:51 / /srv/pool rw - fuse over rw
`;

it('tells file systems apart by the longest mount, the last one of a place, and joins mounts of one device', () => {
  const mounts = new Mounts(() => TABLE);
  expect(mounts.deviceOf('/srv/pools')).toBe('8:1');
  expect(mounts.deviceOf('/srv/bound/x')).toBe('8:16');
  expect(mounts.deviceOf('/srv/pool/volumes')).toBe('0:51');
  expect(mounts.deviceOf('/srv/with space')).toBe('0:50');
  expect(new Mounts(() => TABLE.split('\n').slice(0, 3).join('\n')).deviceOf('/srv/pool')).toBe(
    mounts.deviceOf('/srv/bound'),
  );
  expect(new Mounts().deviceOf('/')).toMatch(/^\d+:\d+$/);
});
