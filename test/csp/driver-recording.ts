/**
 * What HPE's own driver sent, recorded between its release 3.2.0 (flavour vanilla, controller and node) and an appliance
 * while csi-sanity 5.4.0 drove it, and its library's group calls; one of each kind of request, in an order in which they
 * work. `<name>` stands for what differs: ids of earlier answers, and names of the run.
 */
export interface Recorded {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  body?: object;
  status: number;
  /** The id of the answer is this from now on. */
  learns?: string;
}

const GIB = 1073741824;
const NODE = {
  name: 'vm',
  uuid: '<host>',
  iqns: ['<iqn>'],
  networks: ['192.0.2.2/24', 'fd00::2/64', 'fe80::fc:ff:fe00:1/64'],
  nqns: ['nqn.2014-08.org.nvmexpress:uuid:7248ab47-ca22-498b-b886-1cf8cb7233ee'],
};

const VOLUME: Recorded[] = [
  { method: 'GET', path: '/volumes?name=<one>', status: 404 },
  {
    method: 'POST',
    path: '/volumes',
    body: { name: '<one>', size: GIB, config: { multi_initiator: false }, volume_group_id: '' },
    status: 200,
    learns: 'volume',
  },
  {
    method: 'PUT',
    path: '/volumes/<volume>',
    body: { id: '<volume>', size: 2 * GIB, volume_group_id: '' },
    status: 200,
  },
  { method: 'POST', path: '/hosts', body: { ...NODE, access_protocol: 'iscsi' }, status: 200 },
  {
    method: 'PUT',
    path: '/volumes/<volume>/actions/publish',
    body: { host_uuid: '<host>', access_protocol: 'iscsi' },
    status: 200,
  },
  {
    method: 'PUT',
    path: '/volumes/<volume>/actions/unpublish',
    body: { host_uuid: JSON.stringify(NODE) },
    status: 204,
  },
];

const SNAPSHOT: Recorded[] = [
  { method: 'GET', path: '/snapshots?name=<cut>&volume_id=<volume>', status: 404 },
  {
    method: 'POST',
    path: '/snapshots',
    body: { name: '<cut>', volume_id: '<volume>' },
    status: 200,
    learns: 'snapshot',
  },
  {
    method: 'POST',
    path: '/volumes',
    body: {
      name: '<restored>',
      size: 2 * GIB,
      base_snapshot_id: '<snapshot>',
      clone: true,
      config: { multi_initiator: false },
      volume_group_id: '',
    },
    status: 200,
    learns: 'copy',
  },
  { method: 'DELETE', path: '/volumes/<copy>?force=false', status: 204 },
  { method: 'DELETE', path: '/snapshots/<snapshot>', status: 204 },
  { method: 'GET', path: '/snapshots?volume_id=fake-vol-id-9a205c3f-2', status: 200 },
  { method: 'GET', path: '/snapshots/none-exist-id', status: 404 },
];

const GROUP: Recorded[] = [
  {
    method: 'POST',
    path: '/volume_groups',
    body: { name: '<group name>', description: 'd' },
    status: 200,
    learns: 'group',
  },
  { method: 'PUT', path: '/volumes/<volume>', body: { id: '<volume>', volume_group_id: '<group>' }, status: 200 },
  {
    method: 'POST',
    path: '/snapshot_groups',
    body: { name: '<group cut>', volume_group_id: '<group>' },
    status: 200,
    learns: 'cuts',
  },
  { method: 'DELETE', path: '/snapshot_groups/<cuts>', status: 204 },
  { method: 'DELETE', path: '/snapshot_groups/<cuts>', status: 204 },
  { method: 'DELETE', path: '/volume_groups/<group>', status: 409 },
];

const END: Recorded[] = [
  { method: 'GET', path: '/snapshots?volume_id=<volume>', status: 200 },
  { method: 'DELETE', path: '/volumes/<volume>?force=false', status: 204 },
  { method: 'GET', path: '/volumes/<volume>', status: 404 },
  { method: 'DELETE', path: '/volume_groups/<group>', status: 204 },
  { method: 'DELETE', path: '/volume_groups/<group>', status: 204 },
  // For a claim of several nodes with volumeMode: Block.
  {
    method: 'POST',
    path: '/volumes',
    body: { name: '<shared>', size: GIB, config: { multi_initiator: true }, volume_group_id: '' },
    status: 200,
    learns: 'several',
  },
  { method: 'DELETE', path: '/volumes/<several>?force=false', status: 204 },
];

export const RECORDING: readonly Recorded[] = [...VOLUME, ...SNAPSHOT, ...GROUP, ...END];
