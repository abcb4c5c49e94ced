import { Controller, Inject } from '@nestjs/common';
import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { type VolumeReply, volumeRoutes } from '#admin/contract/volumes';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { OfAllTenants } from '#admin/requests/of-all-tenants';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { BLOCK_CHOICES, BLOCK_STORAGE, type BlockChoices } from '#storage/block/block.module';
import type { BlockStorage } from '#storage/block/block-storage';
import { type ListedVolume, listVolumes, readVolume } from '#storage/block/volumes/volume-list';
import { lockRow } from '#storage/shared/lock-row';
import { chooseBackend } from '#tenancy/logins/backend-choice';

type CreateCall = AdminCall<typeof volumeRoutes.create>;

/** The domain's fields, by those of a body that say them. */
const FIELDS = {
  name: 'name',
  size: 'size',
  pool: 'pool',
  thick: 'thick',
  protectionTemplate: 'protectionTemplate',
  'source.snapshotId': 'source',
  image: 'source',
};

@Controller()
export class VolumesController {
  constructor(
    @Inject(BLOCK_STORAGE) private readonly blockStorage: BlockStorage,
    private readonly database: Database,
    @Inject(BLOCK_CHOICES) private readonly blockBackends: BlockChoices,
    private readonly ofAllTenants: OfAllTenants,
  ) {}

  @Serves(volumeRoutes.list)
  list(@Call() call: AdminCall<typeof volumeRoutes.list>) {
    return answerPage(call, page => listVolumes(this.database, call.tenant.id, wantedOf(call.query), page), shown);
  }

  @Serves(allTenantsRoutes.volumes)
  listAll(@Call() call: AdminCall<typeof allTenantsRoutes.volumes>) {
    const wanted = wantedOf(call.query);
    return this.ofAllTenants.answer(call, (tenant, page) => listVolumes(this.database, tenant, wanted, page), shown);
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
    await change.carryOut(() =>
      this.blockStorage.volumes.create(caller, {
        name,
        description,
        pool,
        thick,
        protectionTemplate,
        config: {},
        sizeBytes: size === undefined ? undefined : BigInt(size),
        source: source && sourceOf(source),
      }),
    );
    // The other interfaces find what is there; whoever makes one here is told that it was there.
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
    const change = this.observer(call, volume, 'volume.change', { after: call.body });
    const caller = change.caller(volume);
    await change.carryOut(() =>
      this.blockStorage.volumes.update(caller, volume.id, {
        ...rest,
        ...(size === undefined ? {} : { sizeBytes: BigInt(size) }),
      }),
    );
    return this.answer(call, await this.read(call, volume.id));
  }

  @Serves(volumeRoutes.delete)
  async delete(@Call() call: AdminCall<typeof volumeRoutes.delete>): Promise<void> {
    const volume = await this.read(call, call.params.volume);
    const action = volume.state === 'binned' ? 'volume.purge' : 'volume.delete';
    const change = this.observer(call, volume, action, { joins: true });
    const caller = change.caller(volume);
    const options = { force: call.query.force === 'true', binned: true };
    await change.carryOut(() => this.blockStorage.volumes.delete(caller, volume.id, options));
  }

  @Serves(volumeRoutes.restore)
  async restore(@Call() call: AdminCall<typeof volumeRoutes.restore>): Promise<VolumeReply> {
    const volume = await this.read(call, call.params.volume);
    if (volume.state !== 'binned')
      throw new StorageError('failed_precondition', `volume ${volume.name} is not in the recycle bin`);
    const change = this.observer(call, volume, 'volume.restore', { after: call.body });
    const caller = change.caller(volume);
    await change.carryOut(() => this.blockStorage.recycleBin.restore(caller, volume.id, call.body.name));
    return this.answer(call, await this.read(call, volume.id));
  }

  private async read(call: AdminCall, id: string): Promise<ListedVolume> {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => readVolume(tx, tenantId, id));
    if (!row) throw notFound(call);
    return row;
  }

  private observer(
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

  /** That is named, else the usual one of the tenant. */
  private async place({ tenant, body }: CreateCall): Promise<{ backendId: string; backendKind: string }> {
    const backends = await this.blockBackends(tenant.id);
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

const wantedOf = ({ condition, ...filter }: AdminCall<typeof volumeRoutes.list>['query']) => ({
  ...filter,
  ...(condition === undefined ? {} : { condition: condition === 'true' }),
});

/** What a forced deletion takes along counts: who saw no snapshot must not lose one that was taken since. */
const versionOf = ({ version, publications, snapshots }: ListedVolume): string =>
  `${version}/${publications}/${snapshots}`;

const sourceOf = (source: NonNullable<CreateCall['body']['source']>) => {
  if ('image' in source) return { image: source.image };
  return 'snapshot' in source ? { snapshotId: source.snapshot } : { volumeId: source.volume };
};

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
