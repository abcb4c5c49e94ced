import { isRoot } from '../home.js';
import { forTests, lacking } from './part.js';

const PROGRAMS = ['debootstrap', 'unshare', 'nsenter', 'chroot'];
const PACKAGES = ['debootstrap', 'debian-archive-keyring', 'util-linux'];
const UNTESTED = 'the installation is not tested on a bare Debian';

/** Tests make bare Debians in folders, in namespaces of their own. */
export const debianPart = forTests('debian', () =>
  isRoot()
    ? lacking(PROGRAMS, PACKAGES, UNTESTED)
    : { reason: `debootstrap wants root; ${UNTESTED}`, packages: [], remedy: 'run as root' },
);
