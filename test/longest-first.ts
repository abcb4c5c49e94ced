import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take longer than a minute, the longest first. vitest begins with the largest, and these are small: the last of
 * them had the others idle for minutes. Some that wait for leases stand between those that keep a processor busy.
 */
const LONG = [
  'systemd/units',
  'compose/appliance',
  'compose/first-start',
  'compose/upgrade',
  'install/ubuntu-24.04',
  'install/debian-13',
  'guest/node-takeover',
  'hosts/takeover-unpublish',
  'guest/node-crowd',
  'block-crash/stopped-worker',
  'install/debian-12',
  'block-backend/rbd-extents',
  'hosts/takeover',
  'guest/node-lifecycle',
  'guest/node-reboot',
  'block-crash/kill-group-cuts',
  'block-crash/kill-creations',
  'block-crash/kill-snapshot-deletions',
  'block-crash/kill-snapshots-faults',
  'block-crash/kill-exports',
  'deploy/nest-cli',
  'launcher/whole-set',
  'cosi/appliance-rgw',
  'guest/node-paths',
  'block-crash/kill-volumes-faults',
  'guest/node-parting',
  'block-crash/stale-requests',
  'block-crash/indexing-killed',
  'admin/command-line',
  'launcher/interrupted',
].map(name => `/test/${name}.spec.ts`);

const placeOf = ({ moduleId }: TestSpecification): number => {
  const at = LONG.findIndex(name => moduleId.endsWith(name));
  return at === -1 ? LONG.length : at;
};

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b));
  }
}
