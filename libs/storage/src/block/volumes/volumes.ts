import { noting } from '#operations/accepting/change-observer';
import { requireSuccess, type Submitted, shownAfter } from '#operations/accepting/operations';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, isStorageError, StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller, VolumeChanges, VolumeRequest, VolumeView } from '#storage/block/block-storage';
import { reserve } from '#storage/block/pools/pool-capacity';
import { choosePool, readPools } from '#storage/block/pools/pool-store';
import { protect, protectByGroup } from '#storage/block/protection/protect';
import { cloneVolume } from '#storage/block/volumes/clone-volume';
import { createVolume } from '#storage/block/volumes/create-volume';
import { deleteVolume } from '#storage/block/volumes/delete-volume';
import { expandVolume } from '#storage/block/volumes/expand-volume';
import { findImage } from '#storage/block/volumes/image-source';
import { leaveBin, leavesBin } from '#storage/block/volumes/recycle-bin';
import { checkCapabilities, checkCloneSize, checkSize } from '#storage/block/volumes/volume-checks';
import { checkDependants, deletionOf, UNPUBLISH_ALL } from '#storage/block/volumes/volume-deletion';
import { editVolume, requireGroup } from '#storage/block/volumes/volume-edit';
import { importVolume } from '#storage/block/volumes/volume-import';
import { changesByPolicy, settledRequest } from '#storage/block/volumes/volume-policy';
import { VolumeReader } from '#storage/block/volumes/volume-reader';
import { VOLUME_SLOTS } from '#storage/block/volumes/volume-slots';
import { keptOrigin, repeatedOrigin, requireSource, type VolumeSource } from '#storage/block/volumes/volume-source';
import {
  lockUsableVolume,
  lockVolume,
  setVolumeState,
  type VolumeRow,
  volumeNotFound,
  volumePage,
  volumeView,
} from '#storage/block/volumes/volume-store';
import { desiredVolume, differences, fingerprint } from '#storage/shared/desired-state';

const DEFAULT_VOLUME_BYTES = 10n * 1024n ** 3n;
const PAGE = 500;

const INSERT = sql(
  'volume_insert',
  `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                              destroy_on_delete, description, config, volume_group_id, base_snapshot_id,
                              parent_volume_id, clone_of, active_operation)
   VALUES ($1, $2, $3, $4, 'creating', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
   ON CONFLICT (tenant_id, backend_id, name) WHERE state NOT IN ('binned', 'gone') DO NOTHING
   RETURNING id`,
);
const PUBLICATION = sql(
  'volume_publication',
  'SELECT FROM trivet.publication WHERE tenant_id = $1 AND volume_id = $2 LIMIT 1',
);
const GROWS = sql(
  'volume_grows',
  `UPDATE trivet.volume SET growing_to = $4, active_operation = $3, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);

/** Volumes from creation to deletion: what is accepted, and what is answered without an operation. */
export class Volumes {
  private readonly reader: VolumeReader;

  constructor(private readonly parts: BlockDependencies) {
    this.reader = new VolumeReader(parts.database);
  }

  async get(caller: BlockCaller, id: string): Promise<VolumeView> {
    const row = await this.reader.find(caller, { id });
    if (!row || row.state === 'deleting') throw volumeNotFound(id);
    return volumeView(row);
  }

  async find(caller: BlockCaller, name: string): Promise<VolumeView | undefined> {
    const row = await this.reader.find(caller, { name });
    return row && row.state !== 'deleting' ? volumeView(row) : undefined;
  }

  async *list(caller: BlockCaller): AsyncIterable<VolumeView[]> {
    for (let after = ''; ; ) {
      const rows = await volumePage(this.parts.database, caller, after, PAGE);
      if (rows.length > 0) yield rows.map(volumeView);
      if (rows.length < PAGE) return;
      after = rows.at(-1)!.name;
    }
  }

  async create(caller: BlockCaller, asked: VolumeRequest): Promise<Submitted<VolumeView>> {
    const kind = this.parts.kindOf(caller);
    checkCapabilities(asked, kind.capabilities);
    kind.checkFolder(asked.folder ?? '', 'folder');
    const resource = `volume ${asked.name}`;
    const { source: asks } = asked;
    const image = asks && 'image' in asks ? await findImage(this.parts, caller, asks.image, asked.pool) : undefined;
    const { value: id, operation } = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const row = await lockVolume(tx, caller, { name: asked.name });
      if (row) return sameOrRefused(row, asked);
      const request = await settledRequest(tx, caller.tenantId, asked);
      checkCapabilities(request, kind.capabilities);
      const source = await requireSource(tx, caller, request.source, image);
      const pool = await choosePool(tx, caller, request.pool ?? source?.image.pool);
      const sizeBytes = request.sizeBytes ?? source?.sizeBytes ?? DEFAULT_VOLUME_BYTES;
      // What is cloned as it is keeps its size, also one from before sizes were whole blocks.
      if (image || sizeBytes !== source?.sizeBytes) checkSize(sizeBytes, kind.capabilities);
      if (source) checkCloneSize(source, sizeBytes, pool);
      const still = source && (await requireStill(tx, caller, source));
      const { folder, thick } = request;
      const origin = keptOrigin(request.source, source?.volume?.id);
      const desired = desiredVolume({ sizeBytes, source: origin, pool, folder, thick });
      try {
        await reserve(tx, caller, pool, sizeBytes, 'new');
      } catch (error) {
        // The same call, a moment earlier, may have taken the last room.
        const twin = await lockVolume(tx, caller, { name: asked.name });
        if (twin) return sameOrRefused(twin, asked);
        throw error;
      }
      if (request.volumeGroupId) await requireGroup(tx, caller, request.volumeGroupId);
      const id = uuidv7();
      const inserted = await tx.query(INSERT, [
        caller.tenantId,
        id,
        caller.backendId,
        request.name,
        JSON.stringify(desired),
        fingerprint(desired),
        pool,
        folder,
        sizeBytes,
        thick,
        request.destroyOnDelete,
        request.description,
        JSON.stringify(request.config),
        request.volumeGroupId || null,
        source?.snapshotId ?? null,
        source?.volume?.id ?? null,
        source?.volume?.name ?? '',
        operationId,
      ]);
      if (inserted.length === 0) {
        const winner = await lockVolume(tx, caller, { name: request.name });
        if (winner) return sameOrRefused(winner, asked);
        throw new StorageError('aborted', `${resource} changed meanwhile; try again`, { resource });
      }
      if (request.protectionTemplate) await protect(tx, caller.tenantId, id, request.protectionTemplate);
      else if (request.volumeGroupId) await protectByGroup(tx, caller.tenantId, id);
      const made = { resourceId: id, resourceName: request.name, after: desired };
      if (source)
        await begin(cloneVolume, {
          ...made,
          request: { source: { ...source.image }, resources: source.volume ? [source.volume.id] : [] },
          moreSlots: still ? [{ resource: source.volume!.id, slot: VOLUME_SLOTS.exports, own: false }] : [],
        });
      else await begin(createVolume, { ...made, request: {}, class: thick ? 'copy' : 'fast' });
      return { value: id };
    });
    if (operation?.outcome.state !== 'unfinished') requireSuccess(operation, resource);
    return shownAfter(operation, async () => {
      const row = await this.reader.find(caller, { id });
      if (!row || row.state === 'deleting')
        throw new StorageError('aborted', `${resource} was deleted meanwhile`, { resource });
      return volumeView(row);
    });
  }

  async update(caller: BlockCaller, volumeId: string, changes: VolumeChanges): Promise<Submitted<VolumeView>> {
    const { capabilities } = this.parts.kindOf(caller);
    const resource = `volume ${volumeId}`;
    const { value: waited, operation } = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const row = await lockUsableVolume(tx, caller, volumeId);
      const grows = changes.sizeBytes !== undefined && changes.sizeBytes !== BigInt(row.sizeBytes);
      if (grows && row.activeOperation) return { value: 'again', join: row.activeOperation };
      if (grows) {
        checkSize(changes.sizeBytes!, capabilities);
        if (changes.sizeBytes! < BigInt(row.sizeBytes))
          throw invalid('size', `${changes.sizeBytes} is below the current ${row.sizeBytes} bytes; volumes only grow`);
        await reserve(tx, caller, row.pool, changes.sizeBytes! - BigInt(row.sizeBytes), 'more');
      }
      const edited = await editVolume(
        tx,
        caller,
        capabilities,
        row,
        await changesByPolicy(tx, caller.tenantId, row, changes),
      );
      const after = shownChanges(changes);
      if (!grows) {
        const change = { kind: 'volume.change', resourceId: row.id, resourceName: row.name, after };
        if (edited) await tx.commit(...noting(caller.observer, change));
        return { value: undefined };
      }
      await tx.query(GROWS, [caller.tenantId, row.id, operationId, changes.sizeBytes]);
      await begin(expandVolume, {
        after,
        class: row.thick ? 'copy' : 'fast',
        resourceId: row.id,
        resourceName: row.name,
        request: { sizeBytes: `${changes.sizeBytes}` },
      });
      return { value: undefined };
    });
    // What it waited for was another change, however that ended.
    const over = operation && ['succeeded', 'failed', 'cancelled'].includes(operation.outcome.state);
    if (waited === 'again' && over) return this.update(caller, volumeId, changes);
    requireSuccess(operation, resource);
    return shownAfter(operation, () => this.get(caller, volumeId));
  }

  async import(caller: BlockCaller, imported: string, request: VolumeRequest): Promise<Submitted<VolumeView>> {
    const isVolume = (await this.reader.find(caller, { name: imported })) !== undefined;
    // What can be no name of an image is none.
    const image = isVolume
      ? undefined
      : await findImage(this.parts, caller, imported, request.pool).catch(unlessNoName);
    if (image && !isStorageError(image)) return this.create(caller, { ...request, source: { image: imported } });
    return { value: await this.get(caller, await importVolume(this.parts, caller, imported, request)) };
  }

  /** The image goes to the recycle bin unless it shall be destroyed; what never became ready is always removed. */
  async delete(
    caller: BlockCaller,
    volumeId: string,
    { force, binned = false }: { force: boolean; binned?: boolean | 'only' },
  ): Promise<Submitted<void>> {
    const { tenantId } = caller;
    const submitted = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const row = await lockVolume(tx, caller, { id: volumeId });
      if (!row && binned && (await leaveBin(tx, begin, { tenantId, operationId }, volumeId)))
        return { value: undefined };
      if (!row) throw volumeNotFound(volumeId);
      // What is on its way into the bin is not out of it when it has come there.
      if (row.state === 'deleting' && binned === 'only' && !(await leavesBin(tx, tenantId, row.id)))
        throw new StorageError('aborted', `volume ${row.name} is being deleted; try again when it is in the bin`, {
          resource: `volume ${row.name}`,
        });
      if (row.state === 'deleting') return { value: undefined, join: row.activeOperation ?? undefined };
      if (binned === 'only')
        throw new StorageError('failed_precondition', `volume ${row.name} is not in the recycle bin`);
      await checkDependants(tx, tenantId, row, force);
      const bin = row.state === 'ready' && !row.destroyOnDelete && row.condition?.type !== 'lost';
      await tx.query(UNPUBLISH_ALL, [tenantId, row.id]);
      await setVolumeState(tx, tenantId, row.id, 'deleting', operationId);
      await begin(deleteVolume, deletionOf(row, bin));
      return { value: undefined };
    });
    requireSuccess(submitted.operation, `volume ${volumeId}`);
    return submitted;
  }
}

const unlessNoName = (error: unknown): undefined => {
  if (!isStorageError(error) || error.kind !== 'invalid_argument' || error.field !== 'image') throw error;
};

/** What the repeat leaves open is as it was chosen then. */
function sameOrRefused(row: VolumeRow, request: VolumeRequest): { value: string; join?: string } {
  const resource = `volume ${row.name}`;
  if (row.state === 'deleting')
    throw new StorageError('aborted', `${resource} is being deleted; try again when it is gone`, { resource });
  const desired = desiredVolume({
    sizeBytes: request.sizeBytes ?? BigInt(row.desired.sizeBytes),
    source: repeatedOrigin(request.source, row),
    pool: request.pool ?? row.pool,
    folder: request.folder ?? row.folder,
    thick: request.thick ?? row.thick,
  });
  if (!row.fingerprint.equals(fingerprint(desired)))
    throw new StorageError(
      'already_exists',
      `${resource} exists with another ${differences(row.desired, desired).map(nameOfField).join(', ')}`,
      { resource },
    );
  if (row.condition)
    throw new StorageError('failed_precondition', `${resource}: ${row.condition.message}`, { resource });
  return { value: row.id, join: row.state === 'creating' ? (row.activeOperation ?? undefined) : undefined };
}

const shownChanges = ({ sizeBytes, ...changes }: VolumeChanges) => ({
  ...changes,
  ...(sizeBytes === undefined ? {} : { sizeBytes: String(sizeBytes) }),
});

const nameOfField = (place: string): string =>
  place.startsWith('source') ? 'source' : place.replace('sizeBytes', 'size');

/**
 * Where blocks are not shared a clone takes as long as its data are large: nobody may write to its source meanwhile, or it
 * would hold no instant of it. True: it must keep publications away until it is made.
 */
async function requireStill(tx: Tx, caller: BlockCaller, source: VolumeSource): Promise<boolean> {
  if (!source.volume || source.snapshotId !== undefined) return false;
  const pools = await readPools(tx, caller.tenantId, caller.backendId);
  if (pools.find(({ name }) => name === source.image.pool)?.clone !== 'copy') return false;
  // After the lock: a publication may have come while it was waited for.
  const [publication] = await tx.query(PUBLICATION, [caller.tenantId, source.volume.id]);
  if (publication)
    throw new StorageError(
      'failed_precondition',
      `volume ${source.volume.name} is published, and its pool copies data: take a snapshot and clone that, or unpublish it`,
      { field: 'published' },
    );
  return true;
}
