import type { AccessProtocol } from '#backends/block-backend';
import type { Caller } from '#operations/accepting/caller';
import type { Submitted } from '#operations/accepting/operations';

/**
 * What the block interfaces ask of the domain. Every mutation is accepted as a durable operation and waited for up to the
 * caller's deadline (invariant E8); a repeat joins it, or is answered from what is already so. Throws StorageError:
 * another tenant's object, or one of another backend, is `not_found`; busy beyond the deadline is `aborted`; a state that
 * forbids the call is `failed_precondition`, with `field` naming the attribute that does.
 */
export interface BlockStorage {
  readonly hosts: HostCalls;
  readonly volumes: VolumeCalls;
  readonly publications: PublicationCalls;
  readonly snapshots: SnapshotCalls;
  readonly volumeGroups: VolumeGroupCalls;
  readonly snapshotGroups: SnapshotGroupCalls;
  readonly recycleBin: RecycleBinCalls;
}

export interface HostCalls {
  /** Upsert by uuid, atomic. Changed initiators or CHAP are applied to all its publications before it answers (I4). */
  put(caller: BlockCaller, request: HostRequest): Promise<HostView>;
  /** A new one; an initiator that a host of the tenant has already: `already_exists`, field `iqns`. */
  add(caller: TenantCaller, request: Omit<HostRequest, 'uuid'>): Promise<HostView>;
  get(caller: BlockCaller, hostId: string): Promise<HostView>;
  list(caller: BlockCaller, filter: { uuid?: string }): Promise<HostView[]>;
  /** While volumes are published to it: `failed_precondition`, field `published`. Unknown: `not_found`. */
  delete(caller: TenantCaller, hostId: string): Promise<void>;
}

export interface VolumeCalls {
  get(caller: BlockCaller, volumeId: string): Promise<VolumeView>;
  find(caller: BlockCaller, name: string): Promise<VolumeView | undefined>;
  /** In pages, by name: memory does not follow their number. */
  list(caller: BlockCaller): AsyncIterable<VolumeView[]>;
  /**
   * Find or create; with `source` a clone, or a copy of an image. Same name with another size, source, pool, folder or thickness:
   * `already_exists`. Not done at the deadline: the view is not `ready`, and the work goes on.
   */
  create(caller: BlockCaller, request: VolumeRequest): Promise<Submitted<VolumeView>>;
  /**
   * The volume `imported` as `request.name`: it keeps id, data and snapshots, and the rest is as requested. Of another size,
   * pool, folder or thickness: `invalid_argument`; published: `failed_precondition`. A repeat answers it. No volume of that
   * name: as `create` of the image of that name; neither: `invalid_argument`.
   */
  import(caller: BlockCaller, imported: string, request: VolumeRequest): Promise<Submitted<VolumeView>>;
  /** All of the changes or none. Smaller than now: `invalid_argument`, field `size`. */
  update(caller: BlockCaller, volumeId: string, changes: VolumeChanges): Promise<Submitted<VolumeView>>;
  /**
   * Published: `failed_precondition`, field `published`; has snapshots that callers see: field `snapshots`. `force` ends
   * the sessions and takes the snapshots along. Unknown: `not_found`. Kept in the recycle bin unless destroyOnDelete. `binned`:
   * one that is there already is removed for good; else it is unknown; `only`: and one that is not there is refused.
   */
  delete(
    caller: BlockCaller,
    volumeId: string,
    options: { force: boolean; binned?: boolean | 'only' },
  ): Promise<Submitted<void>>;
}

export interface PublicationCalls {
  /** Idempotent. `host`: its uuid or id. Volume or host unknown: `not_found`. */
  publish(caller: BlockCaller, volumeId: string, request: PublishRequest): Promise<Submitted<PublicationView>>;
  /** Ends the host's sessions before it answers. A host that is unknown or has no publication, or another than `only`: fine. */
  unpublish(caller: BlockCaller, volumeId: string, host: string, only?: string): Promise<Submitted<void>>;
}

export interface SnapshotCalls {
  /**
   * Snapshots that callers see, in the order of their cuts. An unknown volume has none. With a name that the volume does
   * not have but another one has: that one (docs/callers.md#look-ups). `holding`: only
   * whether there is one that holds its volume against deletion, at most one; those of protection templates go with it.
   */
  list(
    caller: BlockCaller,
    filter: { volumeId?: string; name?: string; holding?: boolean },
  ): AsyncIterable<SnapshotView[]>;
  get(caller: BlockCaller, snapshotId: string): Promise<SnapshotView>;
  /** Find or create by volume and name; the name at another volume is another snapshot. */
  create(caller: BlockCaller, request: SnapshotRequest): Promise<Submitted<SnapshotView>>;
  /** Has a clone that callers see: `failed_precondition`, field `clones`. Unknown: `not_found`. */
  delete(caller: BlockCaller, snapshotId: string): Promise<Submitted<void>>;
}

export interface VolumeGroupCalls {
  list(caller: BlockCaller, filter: { name?: string }): Promise<VolumeGroupView[]>;
  get(caller: BlockCaller, groupId: string): Promise<VolumeGroupView>;
  create(caller: BlockCaller, request: VolumeGroupRequest): Promise<VolumeGroupView>;
  /** Has members or snapshot groups: `failed_precondition`. */
  delete(caller: BlockCaller, groupId: string): Promise<void>;
}

export interface SnapshotGroupCalls {
  list(caller: BlockCaller, filter: { volumeGroupId: string }): Promise<SnapshotGroupView[]>;
  get(caller: BlockCaller, groupId: string): Promise<SnapshotGroupView>;
  /** All members as of one instant, all or none (invariant F4). */
  create(caller: BlockCaller, request: SnapshotGroupRequest): Promise<Submitted<SnapshotGroupView>>;
  /** With its snapshots; one that has a clone: `failed_precondition`. */
  delete(caller: BlockCaller, groupId: string): Promise<Submitted<void>>;
}

export interface RecycleBinCalls {
  /** Out of the recycle bin, with its id. Not there: `not_found`. Its name is taken by now: `already_exists`, field `name`. */
  restore(caller: TenantCaller, volumeId: string, name?: string): Promise<void>;
}

/** Who calls: a session of a user says tenant and backend; a request cannot. */
export interface BlockCaller extends Caller {
  readonly backendKind: string;
}

/** What needs no backend. */
export type TenantCaller = Pick<BlockCaller, 'tenantId' | 'observer'>;

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

/** What a volume's maker may leave open: it is as the performance policy says, else as by default (volume-policy.ts). */
export interface VolumeSettings {
  /** Else that of the source, else the backend's first one. */
  pool?: string;
  folder?: string;
  thick?: boolean;
  /** -1: none. */
  limitIops?: number;
  limitMbps?: number;
  destroyOnDelete?: boolean;
}

/**
 * What a volume is made from, looked up when it is accepted: of a snapshot with `volumeId` that must be its volume. image: a
 * file that somebody put into the pool's folder of imports; it stays as it is.
 */
export type VolumeOrigin =
  | { snapshotId: string; volumeId?: string }
  | { volumeId: string }
  | { volumeName: string }
  | { image: string };

export interface VolumeRequest extends VolumeSettings {
  name: string;
  /** Absent: the source's size, else 10 GiB. */
  sizeBytes?: bigint;
  description: string;
  source?: VolumeOrigin;
  volumeGroupId?: string;
  encrypted?: boolean;
  deduplication?: boolean;
  performancePolicy?: string;
  protectionTemplate?: string;
  /** Every key as received, those above included. */
  config: VolumeConfig;
}

export interface VolumeChanges extends Pick<VolumeSettings, 'limitIops' | 'limitMbps' | 'destroyOnDelete'> {
  sizeBytes?: bigint;
  description?: string;
  /** null: leave the group. */
  volumeGroupId?: string | null;
  performancePolicy?: string;
  protectionTemplate?: string | null;
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
  /** False: it is still being made. */
  ready: boolean;
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
  /** Made only to clone from: it is in no list, stands in nobody's way, and goes with its last clone. */
  hidden?: boolean;
  /** Although its cut keeps writers waiting for longer than is good for them. */
  force?: boolean;
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
