import { existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { isRoot } from '../home.js';
import { forTests, lacking } from './part.js';

const UNTESTED = 'pools on btrfs are not tested';

const knownToKernel = (): boolean =>
  /^\s*btrfs$/m.test(readFileSync('/proc/filesystems', 'latin1')) ||
  existsSync(`/lib/modules/${release()}/kernel/fs/btrfs`);

/** Tests make and mount images of their own. */
export const btrfsPart = forTests('btrfs', () => {
  if (!isRoot()) return { reason: `images are mounted by root only; ${UNTESTED}`, packages: [], remedy: 'run as root' };
  if (!knownToKernel())
    return { reason: `this kernel has no btrfs; ${UNTESTED}`, packages: [], remedy: 'use a kernel with btrfs' };
  return lacking(['mkfs.btrfs', 'btrfs', 'mount', 'umount'], ['btrfs-progs', 'mount'], UNTESTED);
});
