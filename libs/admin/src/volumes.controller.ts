import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { Change, notFound } from '#admin/change';
import { type VolumeReply, volumeRoutes } from '#admin/contract/volumes';
import { answerPage } from '#admin/paging';
import { Refusal } from '#admin/problems';
import type { Resources } from '#admin/resources';
import { Serves } from '#admin/serves';
import type { Tx } from '#platform/database';
import { StorageError } from '#platform/errors';
import { lockRow } from '#storage/lock-row';
import { type ListedVolume, listVolumes, readVolume } from '#storage/volumes/volume-list';
import { chooseBackend } from '#tenancy/backend-choice';

type CreateCall = AdminCall<typeof volumeRoutes.create>;

/** Names of the domain for what a body calls otherwise. */
const FIELDS = {
  name: 'name',
  size: 'size',
  'config.pool': 'pool',
  'config.thick': 'thick',
  protection_template: 'protectionTemplate',
  base_snapshot_id: 'source',
};

@Controller()
export class VolumesController {
  private readonly resources: Resources;

  constructor(@Inject(ADMIN_OPTIONS) { resources }: AdminOptions) {
    this.resources = resources;
  }

  @Serves(volumeRoutes.list)
  list(@Call() call: AdminCall<typeof volumeRoutes.list>) {
    const { condition, ...filter } = call.query;
    const wanted = { ...filter, ...(condition === undefined ? {} : { condition: condition === 'true' }) };
    return answerPage(call, page => listVolumes(this.resources.database, call.tenant.id, wanted, page), shown);
  }

  @Serves(volumeRoutes.get)
  async get(@Call() call: AdminCall<typeof volumeRoutes.get>): Promise<VolumeReply> {
    return this.answer(call, await this.read(call, call.params.volume));
  }

  @Serves(volumeRoutes.create)
  async create(@Call() call: CreateCall): Promise<VolumeReply> {
    const { name, size, pool, thick, description, protectionTemplate, source } = call.body;
    const change = new Change(call, { action: 'volume.create', after: call.body, fields: FIELDS });
    const caller = change.caller(await this.place(call));
    await change.carryOut(caller, () =>
      this.resources.blockStorage.createVolume(caller, {
        name,
        description,
        folder: '',
        thick,
        encrypted: false,
        deduplication: false,
        limitIops: -1,
        limitMbps: -1,
        destroyOnDelete: false,
        config: {},
        ...(size === undefined ? {} : { sizeBytes: BigInt(size) }),
        ...(pool === undefined ? {} : { pool }),
        ...(protectionTemplate === undefined ? {} : { protectionTemplate }),
        ...(source === undefined ? {} : { source: sourceOf(source) }),
      }),
    );
    // The other legs find what is there; whoever makes one here is told that it was there.
    if (!change.noted) throw new StorageError('already_exists', `there is a volume ${name} already`, { field: 'name' });
    const made = await this.read(call, change.noted.resourceId);
    if (made.state !== 'creating') call.giveLocation(`/tenants/${call.tenant.name}/volumes/${made.id}`);
    return this.answer(call, made);
  }

  @Serves(volumeRoutes.change)
  async change(@Call() call: AdminCall<typeof volumeRoutes.change>): Promise<VolumeReply> {
    const { size, ...rest } = call.body;
    const volume = await this.read(call, call.params.volume);
    refuseBinned(volume);
    const change = this.witness(call, volume, 'volume.change', { after: call.body });
    const caller = change.caller(volume);
    await change.carryOut(caller, () =>
      this.resources.blockStorage.updateVolume(caller, volume.id, {
        ...rest,
        ...(size === undefined ? {} : { sizeBytes: BigInt(size) }),
      }),
    );
    return this.answer(call, await this.read(call, volume.id));
  }

  @Serves(volumeRoutes.delete)
  async delete(@Call() call: AdminCall<typeof volumeRoutes.delete>): Promise<void> {
    const volume = await this.read(call, call.params.volume);
    const binned = volume.state === 'binned';
    const change = this.witness(call, volume, binned ? 'volume.purge' : 'volume.delete', { joins: true });
    const caller = change.caller(volume);
    const { blockStorage } = this.resources;
    await change.carryOut(caller, () =>
      binned
        ? blockStorage.purgeVolume(caller, volume.id)
        : blockStorage.deleteVolume(caller, volume.id, { force: call.query.force === 'true' }),
    );
  }

  @Serves(volumeRoutes.restore)
  async restore(@Call() call: AdminCall<typeof volumeRoutes.restore>): Promise<VolumeReply> {
    const volume = await this.read(call, call.params.volume);
    if (volume.state !== 'binned')
      throw new StorageError('failed_precondition', `volume ${volume.name} is not in the recycle bin`);
    const change = this.witness(call, volume, 'volume.restore', { after: call.body });
    const caller = change.caller(volume);
    await change.carryOut(caller, () => this.resources.blockStorage.restoreVolume(caller, volume.id, call.body.name));
    return this.answer(call, await this.read(call, volume.id));
  }

  private async read(call: AdminCall, id: string): Promise<ListedVolume> {
    const { id: tenantId } = call.tenant;
    const row = await this.resources.database.withTenant(tenantId, tx => readVolume(tx, tenantId, id));
    if (!row) throw notFound(call);
    return row;
  }

  private witness(
    call: AdminCall,
    { id }: ListedVolume,
    action: string,
    options: { after?: unknown; joins?: boolean },
  ): Change {
    const { id: tenantId } = call.tenant;
    const read = async (tx: Tx) => {
      await lockRow(tx, 'volume', tenantId, id);
      const row = await readVolume(tx, tenantId, id);
      return row && { id: row.id, version: versionOf(row), view: shown(row) };
    };
    return new Change(call, { action, read, fields: FIELDS, ...options });
  }

  /** That is named, or that the source is on; else the usual one of the tenant. */
  private async place({ tenant, body }: CreateCall): Promise<{ backendId: string; backendKind: string }> {
    const backends = await this.resources.blockBackends(tenant.id);
    const chosen =
      body.backend === undefined ? chooseBackend(backends, '') : backends.find(({ name }) => name === body.backend);
    if (chosen) return { backendId: chosen.id, backendKind: chosen.kind };
    const field = 'backend';
    if (backends.length === 0)
      throw new StorageError(
        'failed_precondition',
        `tenant ${tenant.name} has no backend of block volumes: register one`,
      );
    const names = backends.map(({ name }) => name).join(', ');
    throw new StorageError(
      'invalid_argument',
      `backend: none of block volumes is named ${body.backend}; there are ${names}`,
      {
        field,
      },
    );
  }

  private answer(call: AdminCall, row: ListedVolume): VolumeReply {
    call.giveEtag({ id: row.id, version: versionOf(row) });
    return shown(row);
  }
}

/** What a forced deletion takes along counts: who saw no snapshot must not lose one that was taken since. */
const versionOf = ({ version, publications, snapshots }: ListedVolume): string =>
  `${version}/${publications}/${snapshots}`;

const sourceOf = (source: { snapshot: string } | { volume: string }) =>
  'snapshot' in source ? { snapshotId: source.snapshot } : { volumeId: source.volume };

function refuseBinned({ state, name }: ListedVolume): void {
  if (state === 'binned')
    throw new Refusal('failed_precondition', `volume ${name} is in the recycle bin: restore it first`);
}

const shown = (row: ListedVolume): VolumeReply => ({
  id: row.id,
  name: row.name,
  backend: row.backend,
  pool: row.pool,
  folder: row.folder,
  state: row.state,
  size: row.sizeBytes,
  thick: row.thick,
  description: row.description,
  publications: row.publications,
  snapshots: row.snapshots,
  cloneOf: row.cloneOf || null,
  serialNumber: row.serialNumber,
  protectionTemplate: row.protectionTemplate,
  condition: row.condition,
  binnedUntil: row.binnedUntil?.toISOString() ?? null,
  operation: row.activeOperation,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});
