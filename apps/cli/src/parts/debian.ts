import { isRoot } from '../home.js';
import { forTests, isAskedFor, type Lack, lacking } from './part.js';

const PROGRAMS = ['debootstrap', 'unshare', 'nsenter', 'chroot'];
const PACKAGES = ['debootstrap', 'debian-archive-keyring', 'util-linux'];

const lack = (untested: string): Lack | undefined =>
  isRoot()
    ? lacking(PROGRAMS, PACKAGES, untested)
    : { reason: `debootstrap wants root; ${untested}`, packages: [], remedy: 'run as root' };

/** Tests make bare Debians in folders, in namespaces of their own. */
export const debianPart = forTests('debian', () => lack('the installation is not tested on a bare Debian'));

/** A bare Ubuntu, in the same way. */
export const ubuntuPart = forTests('ubuntu', () =>
  isAskedFor('ubuntu')
    ? lack('the installation is not tested on a bare Ubuntu')
    : {
        reason: 'no Ubuntu is asked for; the installation is not tested on one',
        packages: [],
        remedy: 'run with ubuntu in TRIVET_REQUIRE, which loads Ubuntu 24.04',
      },
);
