import { findProgram } from './command.js';
import type { Lack, Part } from './part.js';

const PROGRAMS = ['iscsi-ls', 'iscsi-inq', 'iscsi-readcapacity16', 'qemu-io', 'qemu-img'];

/** Initiators in user space: the hosts of the tests. */
export const libiscsiPart: Part = {
  name: 'libiscsi',
  // There is nothing to point to.
  addressVariable: '',
  absent: {},

  async check(): Promise<Lack | undefined> {
    const missing = PROGRAMS.filter(name => findProgram(name) === undefined);
    if (missing.length === 0) return undefined;
    return {
      reason: `${missing.join(', ')} not installed; targets are not tested with stock initiators`,
      packages: ['libiscsi-bin', 'qemu-utils', 'qemu-block-extra'],
      remedy: 'apt-get install libiscsi-bin qemu-utils qemu-block-extra',
    };
  },

  async start(): Promise<Record<string, string>> {
    return {};
  },
};
