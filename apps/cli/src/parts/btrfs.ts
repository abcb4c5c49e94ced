import { existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { isRoot } from '../home.js';
import { findProgram } from './command.js';
import type { Lack, Part } from './part.js';

const PROGRAMS = ['mkfs.btrfs', 'btrfs', 'mount', 'umount'];
const UNTESTED = 'pools on btrfs are not tested';

const knownToKernel = (): boolean =>
  /^\s*btrfs$/m.test(readFileSync('/proc/filesystems', 'latin1')) ||
  existsSync(`/lib/modules/${release()}/kernel/fs/btrfs`);

/** Tests make and mount images of their own. */
export const btrfsPart: Part = {
  name: 'btrfs',
  // There is nothing to point to.
  addressVariable: '',
  absent: {},

  async check(): Promise<Lack | undefined> {
    if (!isRoot())
      return { reason: `images are mounted by root only; ${UNTESTED}`, packages: [], remedy: 'run as root' };
    if (!knownToKernel())
      return { reason: `this kernel has no btrfs; ${UNTESTED}`, packages: [], remedy: 'use a kernel with btrfs' };
    const missing = PROGRAMS.filter(name => findProgram(name) === undefined);
    if (missing.length === 0) return undefined;
    return {
      reason: `${missing.join(', ')} not installed; ${UNTESTED}`,
      packages: ['btrfs-progs', 'mount'],
      remedy: 'apt-get install btrfs-progs mount',
    };
  },

  async start(): Promise<Record<string, string>> {
    return {};
  },
};
