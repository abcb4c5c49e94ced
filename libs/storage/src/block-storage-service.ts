import type { BlockParts } from '#storage/block-parts';
import type {
  BlockAdministration,
  BlockCaller,
  HostRequest,
  HostView,
  PublicationView,
  PublishRequest,
  SnapshotGroupRequest,
  SnapshotGroupView,
  SnapshotRequest,
  SnapshotView,
  TenantCaller,
  VolumeChanges,
  VolumeGroupRequest,
  VolumeGroupView,
  VolumeRequest,
  VolumeView,
} from '#storage/block-storage';
import { SnapshotGroups } from '#storage/groups/snapshot-groups';
import { VolumeGroups } from '#storage/groups/volume-groups';
import { Hosts } from '#storage/hosts/hosts';
import { Publications } from '#storage/publications/publications';
import { Snapshots } from '#storage/snapshots/snapshots';
import { purgeFromBin, restoreFromBin } from '#storage/volumes/recycle-bin';
import { Volumes } from '#storage/volumes/volumes';

/** The gateway's half of the block leg: what its protocol rooms call. */
export class BlockStorageService implements BlockAdministration {
  private readonly hosts: Hosts;
  private readonly volumes: Volumes;
  private readonly publications: Publications;
  private readonly snapshots: Snapshots;
  private readonly volumeGroups: VolumeGroups;
  private readonly snapshotGroups: SnapshotGroups;

  constructor(private readonly parts: BlockParts) {
    this.hosts = new Hosts(parts);
    this.volumes = new Volumes(parts);
    this.publications = new Publications(parts);
    this.snapshots = new Snapshots(parts);
    this.volumeGroups = new VolumeGroups(parts);
    this.snapshotGroups = new SnapshotGroups(parts);
  }

  putHost(caller: BlockCaller, request: HostRequest): Promise<HostView> {
    return this.hosts.put(caller, request);
  }

  getHost(caller: BlockCaller, hostId: string): Promise<HostView> {
    return this.hosts.get(caller, hostId);
  }

  listHosts(caller: BlockCaller, filter: { uuid?: string }): Promise<HostView[]> {
    return this.hosts.list(caller, filter);
  }

  deleteHost(caller: TenantCaller, hostId: string): Promise<void> {
    return this.hosts.delete(caller, hostId);
  }

  getVolume(caller: BlockCaller, volumeId: string): Promise<VolumeView> {
    return this.volumes.get(caller, volumeId);
  }

  findVolume(caller: BlockCaller, name: string): Promise<VolumeView | undefined> {
    return this.volumes.find(caller, name);
  }

  listVolumes(caller: BlockCaller): AsyncIterable<VolumeView[]> {
    return this.volumes.list(caller);
  }

  createVolume(caller: BlockCaller, request: VolumeRequest): Promise<VolumeView> {
    return this.volumes.create(caller, request);
  }

  importVolume(caller: BlockCaller, imported: string, request: VolumeRequest): Promise<VolumeView> {
    return this.volumes.import(caller, imported, request);
  }

  updateVolume(caller: BlockCaller, volumeId: string, changes: VolumeChanges): Promise<VolumeView> {
    return this.volumes.update(caller, volumeId, changes);
  }

  deleteVolume(caller: BlockCaller, volumeId: string, options: { force: boolean }): Promise<void> {
    return this.volumes.delete(caller, volumeId, options);
  }

  purgeVolume(caller: BlockCaller, volumeId: string): Promise<void> {
    return purgeFromBin(this.parts, caller, volumeId);
  }

  restoreVolume(caller: TenantCaller, volumeId: string, name?: string): Promise<void> {
    return restoreFromBin(this.parts.database, caller.tenantId, volumeId, { name, witness: caller.witness });
  }

  publish(caller: BlockCaller, volumeId: string, request: PublishRequest): Promise<PublicationView> {
    return this.publications.publish(caller, volumeId, request);
  }

  unpublish(caller: BlockCaller, volumeId: string, host: string): Promise<void> {
    return this.publications.unpublish(caller, volumeId, host);
  }

  listSnapshots(
    caller: BlockCaller,
    filter: { volumeId?: string; name?: string; holding?: boolean },
  ): AsyncIterable<SnapshotView[]> {
    return this.snapshots.list(caller, filter);
  }

  getSnapshot(caller: BlockCaller, snapshotId: string): Promise<SnapshotView> {
    return this.snapshots.get(caller, snapshotId);
  }

  createSnapshot(caller: BlockCaller, request: SnapshotRequest): Promise<SnapshotView> {
    return this.snapshots.create(caller, request);
  }

  deleteSnapshot(caller: BlockCaller, snapshotId: string): Promise<void> {
    return this.snapshots.delete(caller, snapshotId);
  }

  listVolumeGroups(caller: BlockCaller, filter: { name?: string }): Promise<VolumeGroupView[]> {
    return this.volumeGroups.list(caller, filter);
  }

  getVolumeGroup(caller: BlockCaller, groupId: string): Promise<VolumeGroupView> {
    return this.volumeGroups.get(caller, groupId);
  }

  createVolumeGroup(caller: BlockCaller, request: VolumeGroupRequest): Promise<VolumeGroupView> {
    return this.volumeGroups.create(caller, request);
  }

  deleteVolumeGroup(caller: BlockCaller, groupId: string): Promise<void> {
    return this.volumeGroups.delete(caller, groupId);
  }

  listSnapshotGroups(caller: BlockCaller, filter: { volumeGroupId: string }): Promise<SnapshotGroupView[]> {
    return this.snapshotGroups.list(caller, filter);
  }

  getSnapshotGroup(caller: BlockCaller, groupId: string): Promise<SnapshotGroupView> {
    return this.snapshotGroups.get(caller, groupId);
  }

  createSnapshotGroup(caller: BlockCaller, request: SnapshotGroupRequest): Promise<SnapshotGroupView> {
    return this.snapshotGroups.create(caller, request);
  }

  deleteSnapshotGroup(caller: BlockCaller, groupId: string): Promise<void> {
    return this.snapshotGroups.delete(caller, groupId);
  }
}
