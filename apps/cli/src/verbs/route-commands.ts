import type { RouteContract } from '#admin/contract/route';

/** How the command line calls what the contract calls otherwise. */
const NOUNS: Readonly<Record<string, string>> = {
  ProtectionTemplate: 'protection',
  PerformancePolicy: 'policy',
};
const VERBS: Readonly<Record<string, string>> = { get: 'show' };

/** Of routes whose id does not say their commands, and of those that several commands share. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  login: ['token create'],
  logout: ['token create'],
  me: ['token create'],
  resetFactors: ['user reset-factors'],
  listOwnLogins: ['login list'],
  endOwnLogin: ['login end'],
  endOtherLogins: ['login end'],
  endLogins: ['login end'],
  getOverview: ['doctor'],
  search: ['search'],
  getFirstRun: ['first-run show', 'first-run manifest'],
  listBackendKinds: ['backend kinds'],
  tryBackend: ['backend create'],
  changeBackend: ['backend change', 'backend cordon', 'backend drain', 'backend uncordon', 'pool thin'],
  changeEndpoint: ['endpoint change', 'endpoint suspend', 'endpoint resume'],
  registerBucket: ['bucket import'],
  readAccessKey: ['access key'],
  createJoinToken: ['cluster join-token'],
  listWorkers: ['doctor'],
  listTasks: ['doctor'],
  changeQueue: ['queue pause', 'queue resume'],
  streamEvents: ['operation watch'],
  listFindings: ['pool findings'],
  changeStorageHost: ['storage-host drain', 'storage-host undrain'],
  changeTenant: ['tenant rename', 'tenant suspend', 'tenant resume'],
  getQuotas: ['tenant quota'],
  setQuotas: ['tenant quota'],
  changeUser: ['user change', 'user passwd', 'user disable', 'user enable'],
  listVolumes: ['volume list', 'volume bin'],
  listVolumesOfAll: ['volume list', 'volume bin'],
  listSnapshotsOfAll: ['snapshot list'],
  listBucketsOfAll: ['bucket list'],
  listHostsOfAll: ['host list'],
  listUsageOfAll: ['usage list'],
  listForecastsOfAll: ['forecast list'],
  listVolumeGrowth: ['volume growth'],
  getVolumeHistory: ['volume history'],
  getVolumePerformance: ['volume performance'],
  getTenantPerformance: ['tenant performance'],
  listBusiestVolumes: ['volume busiest'],
  createVolume: ['volume create', 'volume clone', 'volume register'],
  deleteVolume: ['volume delete', 'volume purge'],
  bulkDeleteVolumes: ['bulk delete-volumes'],
  bulkPurgeVolumes: ['bulk purge-volumes'],
  bulkDeleteSnapshots: ['bulk delete-snapshots'],
  bulkDeleteBuckets: ['bulk delete-buckets'],
  bulkUnpublish: ['bulk unpublish'],
  bulkRetryOperations: ['bulk retry-operations'],
  bulkCancelOperations: ['bulk cancel-operations'],
  listBulkItems: ['bulk items'],
  totalVolumes: ['bulk delete-volumes', 'bulk purge-volumes'],
  totalSnapshots: ['bulk delete-snapshots'],
  totalBuckets: ['bulk delete-buckets'],
  totalPublications: ['bulk unpublish'],
  totalOperations: ['bulk retry-operations', 'bulk cancel-operations'],
};

/** What the command line need not do, and why. */
export const WITHOUT_COMMAND: Readonly<Record<string, string>> = {
  getProvider: 'of the page: a browser logs in at the provider',
  beginProviderLogin: 'of the page: a browser logs in at the provider',
  finishProviderLogin: 'of the page: a browser logs in at the provider',
  getFactors: 'of the page: a person keeps an app with codes; `trivet user reset-factors` takes it away',
  beginTotp: 'of the page: its secret is read off the screen by an app',
  confirmTotp: 'of the page: it shows recovery codes to the person whose they are',
  renewRecoveryCodes: 'of the page: it shows recovery codes to the person whose they are',
  removeTotp: 'of the page: a person takes its own away, with a code of it',
  getPasskeyLogin: 'of the page: a browser has passkeys',
  beginPasskeyLogin: 'of the page: a browser has passkeys',
  loginByPasskey: 'of the page: a browser has passkeys',
  beginPasskey: 'of the page: a browser has passkeys',
  addPasskey: 'of the page: a browser has passkeys',
  removePasskey: 'of the page: a person removes its own; `trivet user reset-factors` removes all',
  changePassword: 'of the page: it ends a login; an administrator has `trivet user passwd`',
  getChangeMap: 'a picture in cells; `trivet snapshot changes` has the exact ranges',
  getOpenApi: 'the document itself; it is docs/openapi.json',
};

/** `NOUN VERB` of each command that calls the route: as its id says, listBackends or rotateAccess, or as it is told here. */
export function commandsOf({ id }: Pick<RouteContract, 'id'>): readonly string[] {
  if (Object.hasOwn(WITHOUT_COMMAND, id)) return [];
  const told = OTHERS[id];
  if (told) return told;
  const [, verb = '', thing = ''] = /^([a-z]+)(\w*)$/.exec(id) ?? [];
  const single = verb === 'list' ? singular(thing) : thing;
  const noun = NOUNS[single] ?? single.replaceAll(/\B[A-Z]/g, letter => `-${letter}`).toLowerCase();
  return [`${noun} ${VERBS[verb] ?? verb}`];
}

const singular = (things: string): string =>
  things
    .replace(/ies$/, 'y')
    .replace(/(cess|us)es$/, '$1')
    .replace(/([^s])s$/, '$1');
