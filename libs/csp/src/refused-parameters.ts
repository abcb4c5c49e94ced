import { invalid } from '#platform/errors';
import type { VolumeConfig } from '#storage/block/block-storage';

/**
 * Parameters that HPE documents for its arrays and that nothing here can follow. Kept and echoed they would look as if they
 * held, or make an empty volume where a copy was wanted. docs/callers.md has a row for each.
 */
interface Refused {
  why: string;
  /** Values that ask for nothing, in small letters. */
  harmless: readonly string[];
}

const refused = (names: string, why: string, harmless: readonly string[] = ['', 'false']): [string, Refused][] =>
  names.split(' ').map(name => [name, { why, harmless }]);

export const REFUSED_OF_VOLUMES: ReadonlyMap<string, Refused> = new Map([
  ...refused('snapshot createSnapshot', 'a clone is of what the volume holds now; restore a VolumeSnapshot instead'),
  ...refused('virtualCopyOf', 'no volume is a view of another one; cloneOf makes a clone, which shares blocks'),
  ...refused('takeover reverseReplication forceImport', 'there is no other array to take a volume from'),
  ...refused(
    'remoteCopyGroup replicationDevices replicationPolicy periodicReplicationInterval oneRcgPerPvc ' +
      'allowBatchReplicatedVolumeCreation primarySecret primarySecretNamespace',
    'volumes are not replicated',
  ),
  ...refused('cpg snapCpg', 'there are no CPGs; pool says where a volume is made'),
  ...refused('root', 'there are no datasets; pool and folder say where a volume is made'),
  ...refused('qosName', 'there are no volume sets with QoS rules'),
  ...refused('hostSeesVLUN fcPortsList', 'volumes are reached at iSCSI targets, each of its own'),
  ...refused('iscsiPortalIps', 'a pool is served at its own portals (TRIVET_ISCSI_PORTALS)'),
  ...refused('provisioningType', 'volumes are thin, or thick by thick: "true"', ['', 'tpvv']),
  ...refused('sparse', 'volumes are thin, or thick by thick: "true"', ['', 'true']),
  ...refused('compression', 'volumes are not compressed', ['', 'false', 'off']),
  ...refused('deduplication', 'volumes are not deduplicated', ['', 'false', 'off']),
  ...refused('volblocksize', "the pool's file system says how large its blocks are", ['']),
  ...refused('sync', 'the file system says when a write is stable', ['', 'standard']),
]);

export const REFUSED_OF_GROUPS: ReadonlyMap<string, Refused> = new Map([
  ...refused('bwMaxLimitKb bwMinGoalKb ioMaxLimit ioMinGoal latencyGoal priority', 'groups have no limits and goals'),
  ...refused('domain', 'there are no virtual domains'),
]);

/** The driver's own rule for the keys that it makes of parameters. */
export const snakeCase = (name: string): string =>
  name
    .replace(/(.)([A-Z][a-z]+)/g, '$1_$2')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase();

function refuse(map: VolumeConfig, table: ReadonlyMap<string, Refused>, where: string): void {
  for (const [name, { why, harmless }] of table) {
    const key = snakeCase(name);
    for (const spelling of new Set([key, name])) {
      if (!Object.hasOwn(map, spelling) || harmless.includes(String(map[spelling]).toLowerCase())) continue;
      throw invalid(`config.${spelling}`, `${why}; remove the line ${name} from the ${where}`);
    }
  }
}

export const refuseVolumeParameters = (map: VolumeConfig): void => refuse(map, REFUSED_OF_VOLUMES, 'StorageClass');
export const refuseGroupParameters = (map: VolumeConfig): void => refuse(map, REFUSED_OF_GROUPS, 'VolumeGroupClass');
