import type { AccessProtocol } from '#backends/block-backend';
import type { Outcome } from '#operations/operation';
import type { Witness } from '#storage/witness';

/**
 * What the block legs ask of the domain. Every mutation is accepted as a durable operation and waited for up to the
 * caller's deadline (invariant E8); a repeat joins it, or is answered from what is already so. Throws StorageError:
 * another tenant's object, or one of another backend, is `not_found`; busy beyond the deadline is `aborted`; a state that
 * forbids the call is `failed_precondition`, with `field` naming the attribute that does.
 */
export interface BlockStorage {
  /** Upsert by uuid, atomic. Changed initiators or CHAP are applied to all its publications before it answers (I4). */
  putHost(caller: BlockCaller, request: HostRequest): Promise<HostView>;
  getHost(caller: BlockCaller, hostId: string): Promise<HostView>;
  listHosts(caller: BlockCaller, filter: { uuid?: string }): Promise<HostView[]>;
  /** While volumes are published to it: `failed_precondition`, field `published`. Unknown: `not_found`. */
  deleteHost(caller: TenantCaller, hostId: string): Promise<void>;

  getVolume(caller: BlockCaller, volumeId: string): Promise<VolumeView>;
  findVolume(caller: BlockCaller, name: string): Promise<VolumeView | undefined>;
  /** In pages, by name: memory does not follow their number. */
  listVolumes(caller: BlockCaller): AsyncIterable<VolumeView[]>;
  /**
   * Find or create; with `source` a clone. Same name with another size, source, pool, folder or thickness:
   * `already_exists`. Not done at the deadline: the view has `background`, and the work goes on.
   */
  createVolume(caller: BlockCaller, request: VolumeRequest): Promise<VolumeView>;
  /**
   * The volume `imported` as `request.name`: it keeps id, data and snapshots, and the rest is as requested. Not there, of
   * another size, pool, folder or thickness: `invalid_argument`; published: `failed_precondition`. A repeat answers it.
   */
  importVolume(caller: BlockCaller, imported: string, request: VolumeRequest): Promise<VolumeView>;
  /** All of the changes or none. Smaller than now: `invalid_argument`, field `size`. */
  updateVolume(caller: BlockCaller, volumeId: string, changes: VolumeChanges): Promise<VolumeView>;
  /**
   * Published: `failed_precondition`, field `published`; has snapshots that callers see: field `snapshots`. `force` ends
   * the sessions and takes the snapshots along. Unknown: `not_found`. Kept in the recycle bin unless destroyOnDelete.
   */
  deleteVolume(caller: BlockCaller, volumeId: string, options: { force: boolean }): Promise<void>;

  /** Idempotent. `host`: its uuid or id. Volume or host unknown: `not_found`. */
  publish(caller: BlockCaller, volumeId: string, request: PublishRequest): Promise<PublicationView>;
  /** Ends the host's sessions before it answers. A host that is unknown or has no publication: fine. */
  unpublish(caller: BlockCaller, volumeId: string, host: string): Promise<void>;

  /**
   * Snapshots that callers see, in the order of their cuts. An unknown volume has none. With a name that the volume does
   * not have but another one has: that one (docs/callers.md#look-ups). `holding`: only
   * whether there is one that holds its volume against deletion, at most one; those of protection templates go with it.
   */
  listSnapshots(
    caller: BlockCaller,
    filter: { volumeId?: string; name?: string; holding?: boolean },
  ): AsyncIterable<SnapshotView[]>;
  getSnapshot(caller: BlockCaller, snapshotId: string): Promise<SnapshotView>;
  /** Find or create by volume and name; the name at another volume is another snapshot. */
  createSnapshot(caller: BlockCaller, request: SnapshotRequest): Promise<SnapshotView>;
  /** Has a clone that callers see: `failed_precondition`, field `clones`. Unknown: `not_found`. */
  deleteSnapshot(caller: BlockCaller, snapshotId: string): Promise<void>;

  listVolumeGroups(caller: BlockCaller, filter: { name?: string }): Promise<VolumeGroupView[]>;
  getVolumeGroup(caller: BlockCaller, groupId: string): Promise<VolumeGroupView>;
  createVolumeGroup(caller: BlockCaller, request: VolumeGroupRequest): Promise<VolumeGroupView>;
  /** Has members or snapshot groups: `failed_precondition`. */
  deleteVolumeGroup(caller: BlockCaller, groupId: string): Promise<void>;
  listSnapshotGroups(caller: BlockCaller, filter: { volumeGroupId: string }): Promise<SnapshotGroupView[]>;
  getSnapshotGroup(caller: BlockCaller, groupId: string): Promise<SnapshotGroupView>;
  /** All members as of one instant, all or none (invariant F4). */
  createSnapshotGroup(caller: BlockCaller, request: SnapshotGroupRequest): Promise<SnapshotGroupView>;
  /** With its snapshots; one that has a clone: `failed_precondition`. */
  deleteSnapshotGroup(caller: BlockCaller, groupId: string): Promise<void>;
}

/** What administrators may do beyond. */
export interface BlockAdministration extends BlockStorage {
  /** Removes one that is in the recycle bin before its time is up. Not there: `not_found`. */
  purgeVolume(caller: BlockCaller, volumeId: string): Promise<void>;
  /** Out of the recycle bin, with its id. Not there: `not_found`. Its name is taken by now: `already_exists`, field `name`. */
  restoreVolume(caller: TenantCaller, volumeId: string, name?: string): Promise<void>;
}

/** Who calls: a session of a user says tenant and backend; a request cannot. */
export interface BlockCaller {
  tenantId: string;
  backendId: string;
  backendKind: string;
  /** Wait no longer than this for the operation; the work goes on. Milliseconds since the epoch. */
  deadline: number;
  signal?: AbortSignal;
  traceparent?: string;
  /** Who it is, for people who look at the operation. */
  actor?: string;
  witness?: Witness;
  /** Written by storage when it accepted or joined an operation; goes into the call's log line. */
  operationId?: string;
  /** Written by storage: how the wait for that operation ended. */
  outcome?: Outcome;
}

/** What needs no backend. */
export type TenantCaller = Pick<BlockCaller, 'tenantId' | 'witness'>;

/** Values as the caller sent them: echoed, never reinterpreted. */
export type ConfigValue = string | number | boolean;
export type VolumeConfig = Readonly<Record<string, ConfigValue>>;

export interface HostRequest {
  uuid: string;
  name: string;
  iqns: readonly string[];
  wwpns: readonly string[];
  nqns: readonly string[];
  /** Interface addresses, CIDR or plain. */
  networks: readonly string[];
  chap?: { user: string; password: string };
  accessProtocol?: string;
  virtualDomain?: string;
}

/** Without the CHAP password. */
export interface HostView {
  id: string;
  uuid: string;
  name: string;
  iqns: readonly string[];
  wwpns: readonly string[];
  nqns: readonly string[];
  networks: readonly string[];
  chapUser?: string;
  accessProtocol?: string;
  virtualDomain?: string;
}

export interface VolumeRequest {
  name: string;
  /** Absent: the source's size, else 10 GiB. */
  sizeBytes?: bigint;
  description: string;
  source?: { snapshotId: string } | { volumeId: string };
  volumeGroupId?: string;
  /** The backend's first pool when absent. */
  pool?: string;
  folder: string;
  thick: boolean;
  encrypted: boolean;
  deduplication: boolean;
  /** -1: none. */
  limitIops: number;
  limitMbps: number;
  performancePolicy?: string;
  protectionTemplate?: string;
  destroyOnDelete: boolean;
  /** Every key as received, those above included. */
  config: VolumeConfig;
}

export interface VolumeChanges {
  sizeBytes?: bigint;
  description?: string;
  /** null: leave the group. */
  volumeGroupId?: string | null;
  performancePolicy?: string;
  protectionTemplate?: string | null;
  destroyOnDelete?: boolean;
  /** -1: none. */
  limitIops?: number;
  limitMbps?: number;
  /** Merged into the stored one. */
  config?: VolumeConfig;
}

export interface VolumeView {
  id: string;
  name: string;
  sizeBytes: bigint;
  /** Of its size, when the audit last looked: blocks that it shares with snapshots included. */
  usedBytes: bigint;
  description: string;
  published: boolean;
  volumeGroupId: string;
  /** '' when it is no clone of a snapshot that callers see or named. */
  baseSnapshotId: string;
  parentVolumeId: string;
  /** Name of the volume that it was cloned from. */
  cloneOf: string;
  pool: string;
  folder: string;
  thick: boolean;
  destroyOnDelete: boolean;
  config: VolumeConfig;
  /** Not there yet. */
  background?: 'InProgress';
  createdAt: Date;
}

export interface PublishRequest {
  host: string;
  accessProtocol: AccessProtocol;
}

export interface PublicationView {
  accessProtocol: AccessProtocol;
  lun: number;
  serialNumber: string;
  targetName: string;
  /** Addresses, where port 3260 serves it; with their port where hosts are on this host alone. */
  discoveryIps: readonly string[];
  chap?: { user: string; password: string };
}

export interface SnapshotRequest {
  name: string;
  volumeId: string;
  description: string;
  config: VolumeConfig;
}

export interface SnapshotView {
  id: string;
  name: string;
  description: string;
  volumeId: string;
  volumeName: string;
  /** Of the volume at the cut. */
  sizeBytes: bigint;
  /** Of the cut. */
  createdAt: Date;
  ready: boolean;
  /** A clone that callers see hangs on it. */
  inUse: boolean;
  config: VolumeConfig;
}

export interface VolumeGroupRequest {
  name: string;
  description: string;
  /** Of each member that has none of its own. */
  protectionTemplate?: string;
  config: VolumeConfig;
}

export interface VolumeGroupView extends Omit<VolumeGroupRequest, 'protectionTemplate'> {
  id: string;
  createdAt: Date;
  /** By name. */
  volumes: readonly { id: string; name: string }[];
}

export interface SnapshotGroupRequest {
  name: string;
  volumeGroupId: string;
  description: string;
  config: VolumeConfig;
}

export interface SnapshotGroupView extends SnapshotGroupRequest {
  id: string;
  volumeGroupName: string;
  createdAt: Date;
  snapshots: readonly SnapshotView[];
}
