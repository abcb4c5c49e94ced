import { isRoot } from '../home.js';
import { findProgram } from './command.js';
import type { Lack, Part } from './part.js';

const PROGRAMS = ['debootstrap', 'unshare', 'nsenter', 'chroot'];
const PACKAGES = ['debootstrap', 'debian-archive-keyring', 'util-linux'];
const UNTESTED = 'the installation is not tested on a bare Debian';

/** Tests make bare Debians in folders, in namespaces of their own. */
export const debianPart: Part = {
  name: 'debian',
  // There is nothing to point to.
  addressVariable: '',
  absent: {},

  async check(): Promise<Lack | undefined> {
    if (!isRoot()) return { reason: `debootstrap wants root; ${UNTESTED}`, packages: [], remedy: 'run as root' };
    const missing = PROGRAMS.filter(name => findProgram(name) === undefined);
    if (missing.length === 0) return undefined;
    return {
      reason: `${missing.join(', ')} not installed; ${UNTESTED}`,
      packages: PACKAGES,
      remedy: `apt-get install ${PACKAGES.join(' ')}`,
    };
  },

  async start(): Promise<Record<string, string>> {
    return {};
  },
};
