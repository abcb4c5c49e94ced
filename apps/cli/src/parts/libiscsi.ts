import { forTests, lacking } from './part.js';

const PROGRAMS = ['iscsi-ls', 'iscsi-inq', 'iscsi-readcapacity16', 'qemu-io', 'qemu-img'];
const PACKAGES = ['libiscsi-bin', 'qemu-utils', 'qemu-block-extra'];

/** Initiators in user space: the hosts of the tests. */
export const libiscsiPart = forTests('libiscsi', () =>
  lacking(PROGRAMS, PACKAGES, 'targets are not tested with stock initiators'),
);
