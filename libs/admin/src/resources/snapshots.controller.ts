import { Controller, Inject } from '@nestjs/common';
import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { type SnapshotReply, snapshotRoutes } from '#admin/contract/snapshots';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { OfAllTenants } from '#admin/requests/of-all-tenants';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { foldChanges } from '#admin/resources/change-map';
import { ChangedBlocksService } from '#changes/changed-blocks-service';
import { Database, type Tx } from '#platform/database/database';
import { isStorageError, StorageError } from '#platform/errors';
import { BLOCK_STORAGE } from '#storage/block/block.module';
import type { BlockStorage } from '#storage/block/block-storage';
import { type ListedSnapshot, listSnapshots, readSnapshot } from '#storage/block/snapshots/snapshot-list';
import { readVolume, tenantOfVolume } from '#storage/block/volumes/volume-list';
import { lockRow } from '#storage/shared/lock-row';

/** Where the index says nothing yet, images are compared. */
const MAP_MS = 60_000;

@Controller()
export class SnapshotsController {
  constructor(
    private readonly changes: ChangedBlocksService,
    private readonly database: Database,
    @Inject(BLOCK_STORAGE) private readonly blockStorage: BlockStorage,
    private readonly ofAllTenants: OfAllTenants,
  ) {}

  @Serves(snapshotRoutes.list)
  list(@Call() call: AdminCall<typeof snapshotRoutes.list>) {
    const wanted = wantedOf(call.query);
    return answerPage(call, page => listSnapshots(this.database, call.tenant.id, wanted, page), shown);
  }

  @Serves(allTenantsRoutes.snapshots)
  async listAll(@Call() call: AdminCall<typeof allTenantsRoutes.snapshots>) {
    const { database } = this;
    const wanted = wantedOf(call.query);
    const { volumeId } = wanted;
    // A volume is of one tenant, whose snapshots alone are to be gone through.
    const owner = volumeId === undefined ? undefined : await tenantOfVolume(database, volumeId);
    return this.ofAllTenants.answer(
      call,
      async (tenant, page) => {
        if (volumeId !== undefined && (owner === undefined || (tenant ?? owner) !== owner))
          return { rows: [], next: undefined };
        return listSnapshots(database, tenant ?? owner, wanted, page);
      },
      shown,
    );
  }

  @Serves(snapshotRoutes.get)
  async get(@Call() call: AdminCall<typeof snapshotRoutes.get>): Promise<SnapshotReply> {
    return this.answer(call, await this.read(call, call.params.snapshot));
  }

  @Serves(snapshotRoutes.create)
  async create(@Call() call: AdminCall<typeof snapshotRoutes.create>): Promise<SnapshotReply> {
    const { volume: volumeId, name, description } = call.body;
    const { id: tenantId } = call.tenant;
    const volume = await this.database.withTenant(tenantId, tx => readVolume(tx, tenantId, volumeId));
    if (!volume || volume.state === 'binned' || volume.state === 'deleting')
      throw new StorageError('not_found', `there is no volume ${volumeId}`, { field: 'volume' });
    const change = new Change(call, { action: 'snapshot.create', after: call.body });
    const caller = change.caller(volume);
    await change.carryOut(() =>
      this.blockStorage.snapshots.create(caller, { name, volumeId: volume.id, description, config: {} }),
    );
    if (!change.noted)
      throw new StorageError('already_exists', `volume ${volume.name} has a snapshot ${name} already`, {
        field: 'name',
      });
    const made = await this.read(call, change.noted.resourceId);
    if (made.state !== 'creating') call.giveLocation(`/tenants/${call.tenant.name}/snapshots/${made.id}`);
    return this.answer(call, made);
  }

  @Serves(snapshotRoutes.delete)
  async delete(@Call() call: AdminCall<typeof snapshotRoutes.delete>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const snapshot = await this.read(call, call.params.snapshot);
    const read = async (tx: Tx) => {
      await lockRow(tx, 'snapshot', tenantId, snapshot.id);
      const row = await readSnapshot(tx, tenantId, snapshot.id);
      return row && { id: row.id, version: versionOf(row), view: shown(row) };
    };
    const change = new Change(call, { action: 'snapshot.delete', read, joins: true });
    const caller = change.caller(snapshot);
    await change.carryOut(() => this.blockStorage.snapshots.delete(caller, snapshot.id));
  }

  @Serves(snapshotRoutes.changeMap)
  async changeMap(@Call() call: AdminCall<typeof snapshotRoutes.changeMap>) {
    const { base, cells } = call.query;
    const query = {
      tenantId: call.tenant.id,
      target: { id: call.params.snapshot },
      from: 0,
      signal: call.patience(MAP_MS),
    };
    const { changes } = this;
    try {
      const found = base === undefined ? changes.allocated(query) : changes.delta({ ...query, base: { id: base } });
      const map = await foldChanges(await found, cells);
      return {
        capacity: `${map.capacity}`,
        cellSize: `${map.cellSize}`,
        cells: map.cells,
        ranges: map.ranges,
        bytes: `${map.bytes}`,
      };
    } catch (error) {
      if (!isStorageError(error) || error.field !== 'base') throw error;
      const message = error.message.replace(/^base: /, '');
      throw new Refusal('invalid_argument', `/query/base: ${message}`, [{ pointer: '/query/base', message }]);
    }
  }

  private async read(call: AdminCall, id: string): Promise<ListedSnapshot> {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => readSnapshot(tx, tenantId, id));
    if (!row) throw notFound(call);
    return row;
  }

  private answer(call: AdminCall, row: ListedSnapshot): SnapshotReply {
    call.giveEtag({ id: row.id, version: versionOf(row) });
    return shown(row);
  }
}

function wantedOf({ sort, volume, search }: AdminCall<typeof snapshotRoutes.list>['query']) {
  if (volume === undefined && sort.endsWith('cut')) {
    const message = 'cuts have an order within one volume: say which, by `volume`';
    throw new Refusal('invalid_argument', `/query/sort: ${message}`, [{ pointer: '/query/sort', message }]);
  }
  return {
    sort,
    ...(volume === undefined ? {} : { volumeId: volume }),
    ...(search === undefined ? {} : { search }),
  };
}

/** A snapshot does not change; what its deletion would lose is itself. */
const versionOf = ({ version, state }: ListedSnapshot): string => `${version}/${state}`;

const shown = (row: ListedSnapshot): SnapshotReply => ({
  id: row.id,
  name: row.name,
  volume: { id: row.volumeId, name: row.volumeName },
  backend: row.backend,
  state: row.state,
  size: row.sizeBytes,
  cut: row.cut,
  cutAt: row.cutAt?.toISOString() ?? null,
  index: row.indexState,
  changedBytes: row.changedBytes,
  template: row.template,
  group: row.groupId,
  condition: row.condition,
  operation: row.activeOperation,
  createdAt: row.createdAt.toISOString(),
});
