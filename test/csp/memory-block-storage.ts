import { randomUUID } from 'node:crypto';
import type { BlockCapabilities } from '#backends/block-backend';
import type { Waited } from '#operations/accepting/operations';
import { invalid, StorageError } from '#platform/errors';
import type {
  BlockCaller,
  BlockStorage,
  HostRequest,
  HostView,
  PublicationView,
  PublishRequest,
  SnapshotGroupRequest,
  SnapshotGroupView,
  SnapshotRequest,
  SnapshotView,
  VolumeChanges,
  VolumeGroupRequest,
  VolumeGroupView,
  VolumeRequest,
  VolumeView,
} from '#storage/block/block-storage';
import { checkSize } from '#storage/block/volumes/volume-checks';

type Volume = VolumeView & { scope: string; hosts: Set<string>; serial: string; baseId?: string };
type Snapshot = SnapshotView & { scope: string; hidden: boolean; groupId?: string };
type Host = HostView & { tenantId: string; chap?: HostRequest['chap'] };

/** As the domain; but for sizes that no JavaScript number holds, of which it is only tested that none of their digits is lost. */
const requireBlocks = (sizeBytes: bigint): void => {
  if (sizeBytes < 2n ** 53n - 1n) checkSize(sizeBytes, { maxSizeBytes: 2n ** 63n } as BlockCapabilities);
};
const DEFAULT_SIZE = 10n * 1024n ** 3n;
const PAGE = 100;

/** What the domain means by each method, in a few maps: nothing durable, nothing running, no backend. */
export class MemoryBlockStorage {
  readonly storage: BlockStorage = {
    hosts: {
      put: (...given) => this.putHost(...given),
      add: () => Promise.reject(new Error('for administrators')),
      get: (...given) => this.getHost(...given),
      list: (...given) => this.listHosts(...given),
      delete: (caller, hostId) => this.deleteHost(caller as BlockCaller, hostId),
    },
    volumes: {
      get: (...given) => this.getVolume(...given),
      find: (...given) => this.findVolume(...given),
      list: (...given) => this.listVolumes(...given),
      create: async (...given) => ({ value: await this.createVolume(...given), operation: this.operation }),
      import: async (...given) => ({ value: await this.importVolume(...given) }),
      update: async (...given) => ({ value: await this.updateVolume(...given), operation: this.operation }),
      delete: async (...given) => ({ value: await this.deleteVolume(...given), operation: this.operation }),
    },
    publications: {
      publish: async (...given) => ({ value: await this.publish(...given), operation: this.operation }),
      unpublish: async (caller, volume, host) => ({
        value: await this.unpublish(caller, volume, host),
        operation: this.operation,
      }),
    },
    snapshots: {
      list: (...given) => this.listSnapshots(...given),
      get: (...given) => this.getSnapshot(...given),
      create: async (...given) => ({ value: await this.createSnapshot(...given), operation: this.operation }),
      delete: async (...given) => ({ value: await this.deleteSnapshot(...given), operation: this.operation }),
    },
    volumeGroups: {
      list: (...given) => this.listVolumeGroups(...given),
      get: (...given) => this.getVolumeGroup(...given),
      create: (...given) => this.createVolumeGroup(...given),
      delete: (...given) => this.deleteVolumeGroup(...given),
    },
    snapshotGroups: {
      list: (...given) => this.listSnapshotGroups(...given),
      get: (...given) => this.getSnapshotGroup(...given),
      create: async (...given) => ({ value: await this.createSnapshotGroup(...given), operation: this.operation }),
      delete: async (...given) => ({ value: await this.deleteSnapshotGroup(...given), operation: this.operation }),
    },
    recycleBin: {
      restore: () => Promise.reject(new Error('for administrators')),
    },
  };
  readonly volumes = new Map<string, Volume>();
  readonly snapshots = new Map<string, Snapshot>();
  readonly hosts = new Map<string, Host>();
  readonly groups = new Map<string, VolumeGroupView & { scope: string }>();
  readonly snapshotGroups = new Map<string, Omit<SnapshotGroupView, 'snapshots'> & { scope: string }>();
  /** Of all volumes together. */
  capacity = 2n ** 63n;
  accessProtocols: readonly string[] = ['iscsi'];
  /** What each change says that it waited for. */
  operation: Waited | undefined;
  /** Runs before each method, e.g. to hold it or to throw. */
  before: (method: string, caller: BlockCaller) => Promise<void> | void = () => {};

  async putHost(caller: BlockCaller, request: HostRequest): Promise<HostView> {
    await this.before('putHost', caller);
    const { chap, ...rest } = request;
    const known = this.hostOf(caller, request.uuid);
    const host: Host = {
      ...rest,
      id: known?.id ?? randomUUID(),
      tenantId: caller.tenantId,
      chap,
      chapUser: chap?.user,
    };
    this.hosts.set(host.id, host);
    return host;
  }

  async getHost(caller: BlockCaller, hostId: string): Promise<HostView> {
    await this.before('getHost', caller);
    return this.hostOf(caller, hostId) ?? missing('host', hostId);
  }

  async listHosts(caller: BlockCaller, filter: { uuid?: string }): Promise<HostView[]> {
    await this.before('listHosts', caller);
    const mine = [...this.hosts.values()].filter(host => host.tenantId === caller.tenantId);
    return filter.uuid === undefined ? mine : mine.filter(host => host.uuid === filter.uuid);
  }

  async deleteHost(caller: BlockCaller, hostId: string): Promise<void> {
    await this.before('deleteHost', caller);
    const host = this.hostOf(caller, hostId) ?? missing('host', hostId);
    if ([...this.volumes.values()].some(volume => volume.hosts.has(host.id)))
      throw forbidden(`host ${host.name} has published volumes`, 'published');
    this.hosts.delete(host.id);
  }

  async getVolume(caller: BlockCaller, volumeId: string): Promise<VolumeView> {
    await this.before('getVolume', caller);
    return this.volumeOf(caller, volumeId);
  }

  async findVolume(caller: BlockCaller, name: string): Promise<VolumeView | undefined> {
    await this.before('findVolume', caller);
    return [...this.volumes.values()].find(volume => volume.scope === scopeOf(caller) && volume.name === name);
  }

  async *listVolumes(caller: BlockCaller): AsyncIterable<VolumeView[]> {
    await this.before('listVolumes', caller);
    const mine = [...this.volumes.values()].filter(({ scope }) => scope === scopeOf(caller));
    for (let at = 0; at < mine.length; at += PAGE) yield mine.slice(at, at + PAGE);
  }

  async createVolume(caller: BlockCaller, request: VolumeRequest): Promise<VolumeView> {
    await this.before('createVolume', caller);
    const found = (await this.findVolume(caller, request.name)) as Volume | undefined;
    if (found) {
      const { source } = request;
      const named = source && 'volumeName' in source && source.volumeName === found.cloneOf;
      const baseId = named ? found.baseId : source && Object.values(source)[0];
      const sameSize = (request.sizeBytes ?? found.sizeBytes) === found.sizeBytes;
      if (sameSize && found.baseId === baseId && found.thick === (request.thick ?? false)) return found;
      throw new StorageError('already_exists', `volume ${request.name} already exists with other parameters`);
    }
    const origin = this.originOf(caller, request);
    const sizeBytes = request.sizeBytes ?? origin?.sizeBytes ?? DEFAULT_SIZE;
    requireBlocks(sizeBytes);
    if (origin && sizeBytes < origin.sizeBytes) throw invalid('size', 'must not be smaller than the source');
    if (request.encrypted) throw invalid('encrypted', 'this backend cannot encrypt');
    const pool = request.pool ?? 'default';
    if (pool !== 'default') throw invalid('pool', `there is no pool ${pool}`);
    if (request.volumeGroupId !== undefined) this.groupOf(caller, request.volumeGroupId);
    this.reserve(sizeBytes);
    const snapshot = origin?.snapshot;
    const volume: Volume = {
      id: randomUUID(),
      scope: scopeOf(caller),
      name: request.name,
      sizeBytes,
      usedBytes: 0n,
      description: request.description,
      published: false,
      volumeGroupId: request.volumeGroupId ?? '',
      baseSnapshotId: snapshot?.id ?? '',
      parentVolumeId: origin?.volumeId ?? '',
      cloneOf: origin?.volumeName ?? '',
      pool,
      folder: request.folder ?? '',
      thick: request.thick ?? false,
      destroyOnDelete: request.destroyOnDelete ?? false,
      config: request.config,
      ready: true,
      createdAt: new Date(),
      hosts: new Set(),
      serial: randomUUID().replaceAll('-', ''),
      baseId: origin?.id,
    };
    this.volumes.set(volume.id, volume);
    return volume;
  }

  async importVolume(caller: BlockCaller, imported: string, request: VolumeRequest): Promise<VolumeView> {
    await this.before('importVolume', caller);
    const known = await this.findVolume(caller, request.name);
    if (known && known.config.import_volume_name !== imported)
      throw new StorageError('already_exists', `volume ${request.name} exists`);
    const found = (known ?? (await this.findVolume(caller, imported))) as Volume | undefined;
    if (!found) throw invalid('imported', `no volume is named "${imported}" here`);
    if (found.published) throw forbidden(`volume ${imported} is published`, 'published');
    if (request.sizeBytes !== undefined && request.sizeBytes !== found.sizeBytes)
      throw invalid('size', `volume ${imported} has ${found.sizeBytes} bytes`);
    Object.assign(found, { name: request.name, config: { ...found.config, ...request.config } });
    for (const snapshot of this.snapshots.values())
      if (snapshot.volumeId === found.id) snapshot.volumeName = found.name;
    return found;
  }

  async updateVolume(caller: BlockCaller, volumeId: string, changes: VolumeChanges): Promise<VolumeView> {
    await this.before('updateVolume', caller);
    const volume = this.volumeOf(caller, volumeId);
    if (changes.sizeBytes !== undefined) requireBlocks(changes.sizeBytes);
    if (changes.sizeBytes !== undefined && changes.sizeBytes < volume.sizeBytes)
      throw invalid('size', `must not be smaller than now, ${volume.sizeBytes}`);
    if (changes.volumeGroupId) this.groupOf(caller, changes.volumeGroupId);
    if (changes.limitIops !== undefined && changes.limitIops !== -1)
      throw invalid('limitIops', 'this backend cannot limit');
    if (changes.sizeBytes !== undefined) this.reserve(changes.sizeBytes - volume.sizeBytes);
    volume.sizeBytes = changes.sizeBytes ?? volume.sizeBytes;
    volume.description = changes.description ?? volume.description;
    volume.destroyOnDelete = changes.destroyOnDelete ?? volume.destroyOnDelete;
    if (changes.volumeGroupId !== undefined) volume.volumeGroupId = changes.volumeGroupId ?? '';
    volume.config = { ...volume.config, ...changes.config };
    return volume;
  }

  async deleteVolume(caller: BlockCaller, volumeId: string, { force }: { force: boolean }): Promise<void> {
    await this.before('deleteVolume', caller);
    const volume = this.volumeOf(caller, volumeId);
    if (!force && volume.published) throw forbidden(`volume ${volume.name} is published`, 'published');
    const snapshots = [...this.snapshots.values()].filter(snapshot => snapshot.volumeId === volumeId);
    if (!force && snapshots.some(({ hidden }) => !hidden))
      throw forbidden(`volume ${volume.name} has snapshots; delete them first`, 'snapshots');
    for (const { id } of snapshots) this.snapshots.delete(id);
    this.volumes.delete(volumeId);
    for (const snapshot of this.snapshots.values()) snapshot.inUse = this.clonesOf(snapshot.id) > 0;
  }

  async publish(caller: BlockCaller, volumeId: string, request: PublishRequest): Promise<PublicationView> {
    await this.before('publish', caller);
    const volume = this.volumeOf(caller, volumeId);
    const host = this.hostOf(caller, request.host) ?? missing('host', request.host);
    if (!this.accessProtocols.includes(request.accessProtocol))
      throw invalid('accessProtocol', `this backend has no ${request.accessProtocol} port`);
    if (!volume.ready) throw forbidden(`volume ${volume.name} is not complete yet`, 'ready');
    const another = [...volume.hosts].some(id => id !== host.id);
    if (another && String(volume.config.multi_initiator) === 'false')
      throw forbidden(`volume ${volume.name} is of one host at a time (multi_initiator: false)`, 'published');
    volume.hosts.add(host.id);
    volume.published = true;
    return {
      accessProtocol: request.accessProtocol,
      lun: 0,
      serialNumber: volume.serial,
      targetName: `iqn.2026-01.example.test:${volume.id}`,
      discoveryIps: ['127.0.0.1'],
      chap: host.chap,
    };
  }

  async unpublish(caller: BlockCaller, volumeId: string, host: string): Promise<void> {
    await this.before('unpublish', caller);
    const volume = this.volumeOf(caller, volumeId);
    volume.hosts.delete(this.hostOf(caller, host)?.id ?? '');
    volume.published = volume.hosts.size > 0;
  }

  async *listSnapshots(
    caller: BlockCaller,
    filter: { volumeId?: string; name?: string; holding?: boolean },
  ): AsyncIterable<SnapshotView[]> {
    await this.before('listSnapshots', caller);
    const mine = [...this.snapshots.values()].filter(({ scope }) => scope === scopeOf(caller));
    const of = (volumeId?: string) => (snapshot: Snapshot) => volumeId === undefined || snapshot.volumeId === volumeId;
    const named = mine.filter(({ name }) => filter.name === undefined || name === filter.name);
    let found = named.filter(of(filter.volumeId));
    if (filter.name === undefined) found = found.filter(({ hidden }) => !hidden);
    else if (found.length === 0) found = named;
    for (let at = 0; at < found.length; at += PAGE)
      yield found.slice(at, at + PAGE).slice(0, filter.holding ? 1 : undefined);
  }

  async getSnapshot(caller: BlockCaller, snapshotId: string): Promise<SnapshotView> {
    await this.before('getSnapshot', caller);
    const snapshot = this.snapshots.get(snapshotId);
    return snapshot?.scope === scopeOf(caller) ? snapshot : missing('snapshot', snapshotId);
  }

  async createSnapshot(caller: BlockCaller, request: SnapshotRequest): Promise<SnapshotView> {
    await this.before('createSnapshot', caller);
    const volume = this.volumeOf(caller, request.volumeId);
    const found = [...this.snapshots.values()].find(
      ({ volumeId, name }) => volumeId === request.volumeId && name === request.name,
    );
    return found ?? this.cut(caller, volume, request);
  }

  async deleteSnapshot(caller: BlockCaller, snapshotId: string): Promise<void> {
    await this.before('deleteSnapshot', caller);
    const { name, volumeName, inUse } = await this.getSnapshot(caller, snapshotId);
    if (inUse) throw forbidden(`Snapshot ${name} for volume ${volumeName} has a clone.`, 'clones');
    this.snapshots.delete(snapshotId);
  }

  async listVolumeGroups(caller: BlockCaller, { name }: { name?: string }): Promise<VolumeGroupView[]> {
    await this.before('listVolumeGroups', caller);
    return [...this.groups.values()]
      .filter(group => group.scope === scopeOf(caller) && (name === undefined || group.name === name))
      .map(group => this.groupOf(caller, group.id));
  }

  async getVolumeGroup(caller: BlockCaller, groupId: string): Promise<VolumeGroupView> {
    await this.before('getVolumeGroup', caller);
    return this.groupOf(caller, groupId);
  }

  async createVolumeGroup(caller: BlockCaller, request: VolumeGroupRequest): Promise<VolumeGroupView> {
    const [found] = await this.listVolumeGroups(caller, { name: request.name });
    if (found) return found;
    const group = { ...request, id: randomUUID(), createdAt: new Date(), volumes: [], scope: scopeOf(caller) };
    if (request.protectionTemplate === 'no-such-template')
      throw invalid('protectionTemplate', 'no protection template is named so');
    this.groups.set(group.id, group);
    return group;
  }

  async deleteVolumeGroup(caller: BlockCaller, groupId: string): Promise<void> {
    const group = await this.getVolumeGroup(caller, groupId);
    if (group.volumes.length > 0) throw forbidden(`group ${group.name} has members`, 'members');
    if ((await this.listSnapshotGroups(caller, { volumeGroupId: groupId })).length > 0)
      throw forbidden(`group ${group.name} has snapshot groups`, 'snapshotGroups');
    this.groups.delete(groupId);
  }

  async listSnapshotGroups(caller: BlockCaller, filter: { volumeGroupId: string }): Promise<SnapshotGroupView[]> {
    await this.before('listSnapshotGroups', caller);
    const found = [...this.snapshotGroups.values()].filter(
      ({ volumeGroupId }) => volumeGroupId === filter.volumeGroupId,
    );
    return Promise.all(found.map(({ id }) => this.getSnapshotGroup(caller, id)));
  }

  async getSnapshotGroup(caller: BlockCaller, groupId: string): Promise<SnapshotGroupView> {
    await this.before('getSnapshotGroup', caller);
    const group = this.snapshotGroups.get(groupId);
    if (group?.scope !== scopeOf(caller)) return missing('snapshot group', groupId);
    return { ...group, snapshots: [...this.snapshots.values()].filter(snapshot => snapshot.groupId === groupId) };
  }

  async createSnapshotGroup(caller: BlockCaller, request: SnapshotGroupRequest): Promise<SnapshotGroupView> {
    await this.before('createSnapshotGroup', caller);
    const { volumes, name } = this.groupOf(caller, request.volumeGroupId);
    const same = await this.listSnapshotGroups(caller, request);
    const found = same.find(({ name }) => name === request.name);
    if (found) return found;
    const group = {
      ...request,
      id: randomUUID(),
      volumeGroupName: name,
      createdAt: new Date(),
      scope: scopeOf(caller),
    };
    this.snapshotGroups.set(group.id, group);
    for (const { id: volumeId } of volumes) {
      const volume = this.volumeOf(caller, volumeId);
      const wish = { name: `${request.name}-${volume.name}`, volumeId, description: request.description, config: {} };
      this.cut(caller, volume, wish).groupId = group.id;
    }
    return this.getSnapshotGroup(caller, group.id);
  }

  async deleteSnapshotGroup(caller: BlockCaller, groupId: string): Promise<void> {
    const { snapshots } = await this.getSnapshotGroup(caller, groupId);
    if (snapshots.some(({ inUse }) => inUse)) throw forbidden('a snapshot of the group has a clone', 'clones');
    for (const { id } of snapshots) this.snapshots.delete(id);
    this.snapshotGroups.delete(groupId);
  }

  private cut(caller: BlockCaller, volume: Volume, request: SnapshotRequest): Snapshot {
    const snapshot: Snapshot = {
      ...request,
      id: randomUUID(),
      scope: scopeOf(caller),
      volumeName: volume.name,
      sizeBytes: volume.sizeBytes,
      createdAt: new Date(),
      ready: true,
      inUse: false,
      hidden: request.hidden ?? false,
    };
    this.snapshots.set(snapshot.id, snapshot);
    return snapshot;
  }

  private originOf(caller: BlockCaller, { source }: VolumeRequest) {
    if (!source) return undefined;
    if ('image' in source) return missing('image', source.image);
    if (!('snapshotId' in source)) {
      const { id, name, sizeBytes } =
        'volumeId' in source ? this.volumeOf(caller, source.volumeId) : this.volumeNamed(caller, source.volumeName);
      return { id, sizeBytes, volumeId: id, volumeName: name };
    }
    const snapshot = this.snapshots.get(source.snapshotId);
    if (snapshot?.scope !== scopeOf(caller)) return missing('snapshot', source.snapshotId);
    if (source.volumeId !== undefined && source.volumeId !== snapshot.volumeId)
      throw invalid('source.volumeId', `snapshot ${snapshot.name} is of another volume`);
    snapshot.inUse = true;
    const { id, sizeBytes, volumeId, volumeName } = snapshot;
    return { id, sizeBytes, volumeId, volumeName, snapshot };
  }

  private clonesOf = (snapshotId: string): number =>
    [...this.volumes.values()].filter(({ baseId }) => baseId === snapshotId).length;

  private volumeOf(caller: BlockCaller, id: string): Volume {
    const volume = this.volumes.get(id);
    return volume?.scope === scopeOf(caller) ? volume : missing('volume', id);
  }

  private volumeNamed(caller: BlockCaller, name: string): Volume {
    const found = [...this.volumes.values()].find(volume => volume.scope === scopeOf(caller) && volume.name === name);
    if (!found) throw invalid('source.volumeName', `no volume is named "${name}" here`);
    return found;
  }

  private hostOf = (caller: BlockCaller, given: string): Host | undefined =>
    [...this.hosts.values()].find(
      ({ tenantId, id, uuid }) => tenantId === caller.tenantId && (id === given || uuid === given),
    );

  private groupOf(caller: BlockCaller, id: string): VolumeGroupView {
    const group = this.groups.get(id);
    if (group?.scope !== scopeOf(caller)) return missing('volume group', id);
    const members = [...this.volumes.values()].filter(({ volumeGroupId }) => volumeGroupId === id);
    return { ...group, volumes: members.map(({ id, name }) => ({ id, name })) };
  }

  private reserve(bytes: bigint): void {
    const used = [...this.volumes.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
    if (used + bytes > this.capacity)
      throw new StorageError('resource_exhausted', 'pool default: insufficient storage space');
  }
}

const scopeOf = ({ tenantId, backendId }: BlockCaller): string => `${tenantId}/${backendId}`;

function missing(what: string, id: string): never {
  throw new StorageError('not_found', `there is no ${what} ${id}`);
}

const forbidden = (message: string, field: string): StorageError =>
  new StorageError('failed_precondition', message, { field });
