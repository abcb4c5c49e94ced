import { throwUnlessSucceeded } from '#operations/operations';
import type { Tx } from '#platform/database';
import { invalid, StorageError } from '#platform/errors';
import { sql } from '#platform/sql';
import { uuidv7 } from '#platform/uuid';
import { type BlockParts, submit } from '#storage/block-parts';
import type { BlockCaller, VolumeChanges, VolumeRequest, VolumeView } from '#storage/block-storage';
import { desiredVolume, differences, fingerprint } from '#storage/desired-state';
import { reserve } from '#storage/pools/pool-room';
import { choosePool, readPools } from '#storage/pools/pool-store';
import { protect, protectByGroup } from '#storage/protection/protect';
import { checkCapabilities, checkCloneSize, checkSize } from '#storage/volumes/volume-checks';
import { checkDependants, deletionOf, UNPUBLISH_ALL } from '#storage/volumes/volume-deletion';
import { editVolume, requireGroup } from '#storage/volumes/volume-edit';
import { importVolume } from '#storage/volumes/volume-import';
import { cloneVolume, createVolume, deleteVolume, expandVolume } from '#storage/volumes/volume-operations';
import { changesByPolicy, requestByPolicy } from '#storage/volumes/volume-policy';
import { VolumeReader } from '#storage/volumes/volume-reader';
import { VOLUME_SLOTS } from '#storage/volumes/volume-slots';
import { requireSource, type VolumeSource } from '#storage/volumes/volume-source';
import {
  lockUsableVolume,
  lockVolume,
  setVolumeState,
  type VolumeRow,
  volumeNotFound,
  volumePage,
  volumeView,
} from '#storage/volumes/volume-store';
import { noting } from '#storage/witness';

const DEFAULT_BYTES = 10n * 1024n ** 3n;
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
const BUSY = sql(
  'volume_busy',
  'UPDATE trivet.volume SET active_operation = $3, updated_at = now() WHERE tenant_id = $1 AND id = $2',
);

/** Volumes from creation to deletion: what is accepted, and what is answered without an operation. */
export class Volumes {
  private readonly reader: VolumeReader;

  constructor(private readonly parts: BlockParts) {
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

  async create(caller: BlockCaller, asked: VolumeRequest): Promise<VolumeView> {
    const kind = this.parts.kindOf(caller);
    checkCapabilities(asked, kind.capabilities);
    kind.checkFolder(asked.folder, 'config.folder');
    const resource = `volume ${asked.name}`;
    const submitted = await submit(this.parts, caller, async (tx, begin, operationId) => {
      const row = await lockVolume(tx, caller, { name: asked.name });
      if (row) return sameOrRefused(row, asked);
      const request = await requestByPolicy(tx, caller.tenantId, asked);
      checkCapabilities(request, kind.capabilities);
      const source = request.source && (await requireSource(tx, caller, request.source));
      const pool = await choosePool(tx, caller, request.pool ?? source?.image.pool);
      const sizeBytes = request.sizeBytes ?? source?.sizeBytes ?? DEFAULT_BYTES;
      // What is cloned as it is keeps its size, also one from before sizes were whole blocks.
      if (sizeBytes !== source?.sizeBytes) checkSize(sizeBytes, kind.capabilities);
      if (source) checkCloneSize(source, sizeBytes, pool);
      const still = source && (await requireStill(tx, caller, source));
      const { folder, thick } = request;
      const desired = desiredVolume({ sizeBytes, source: request.source, pool, folder, thick });
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
        source?.volumeId ?? null,
        source?.volumeName ?? '',
        operationId,
      ]);
      if (inserted.length === 0) {
        const winner = await lockVolume(tx, caller, { name: request.name });
        if (winner) return sameOrRefused(winner, request);
        throw new StorageError('aborted', `${resource} changed meanwhile; try again`, { resource });
      }
      if (request.protectionTemplate) await protect(tx, caller.tenantId, id, request.protectionTemplate);
      else if (request.volumeGroupId) await protectByGroup(tx, caller.tenantId, id);
      const made = { resourceId: id, resourceName: request.name, after: desired };
      if (source)
        await begin(cloneVolume, {
          ...made,
          request: { source: { ...source.image }, resources: [source.volumeId] },
          moreSlots: still ? [{ resource: source.volumeId, slot: VOLUME_SLOTS.exports, own: false }] : [],
        });
      else await begin(createVolume, { ...made, request: {}, class: thick ? 'copy' : 'fast' });
      return { value: id };
    });
    if (submitted.outcome && submitted.outcome.state !== 'unfinished')
      throwUnlessSucceeded(submitted.outcome, submitted.operationId!, resource);
    const row = await this.reader.find(caller, { id: submitted.value });
    if (!row || row.state === 'deleting')
      throw new StorageError('aborted', `${resource} was deleted meanwhile`, { resource });
    return volumeView(row);
  }

  async update(caller: BlockCaller, volumeId: string, changes: VolumeChanges): Promise<VolumeView> {
    const { capabilities } = this.parts.kindOf(caller);
    const resource = `volume ${volumeId}`;
    const submitted = await submit(this.parts, caller, async (tx, begin, operationId) => {
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
        if (edited) await tx.commit(...noting(caller.witness, change));
        return { value: undefined };
      }
      await tx.query(BUSY, [caller.tenantId, row.id, operationId]);
      await begin(expandVolume, {
        after,
        class: row.thick ? 'copy' : 'fast',
        resourceId: row.id,
        resourceName: row.name,
        request: { sizeBytes: `${changes.sizeBytes}` },
      });
      return { value: undefined };
    });
    const { outcome } = submitted;
    // What it waited for was another change, however that ended.
    const over = outcome && ['succeeded', 'failed', 'cancelled'].includes(outcome.state);
    if (submitted.value === 'again' && over) return this.update(caller, volumeId, changes);
    if (outcome) throwUnlessSucceeded(outcome, submitted.operationId!, resource);
    return this.get(caller, volumeId);
  }

  async import(caller: BlockCaller, imported: string, request: VolumeRequest): Promise<VolumeView> {
    return this.get(caller, await importVolume(this.parts, caller, imported, request));
  }

  /** The image goes to the recycle bin unless it shall be destroyed; what never became ready is always removed. */
  async delete(caller: BlockCaller, volumeId: string, { force }: { force: boolean }): Promise<void> {
    const submitted = await submit(this.parts, caller, async (tx, begin, operationId) => {
      const row = await lockVolume(tx, caller, { id: volumeId });
      if (!row) throw volumeNotFound(volumeId);
      if (row.state === 'deleting') return { value: undefined, join: row.activeOperation ?? undefined };
      await checkDependants(tx, caller.tenantId, row, force);
      const bin = row.state === 'ready' && !row.destroyOnDelete && row.condition?.type !== 'lost';
      await tx.query(UNPUBLISH_ALL, [caller.tenantId, row.id]);
      await setVolumeState(tx, caller.tenantId, row.id, 'deleting', operationId);
      await begin(deleteVolume, deletionOf(row, bin));
      return { value: undefined };
    });
    if (submitted.outcome) throwUnlessSucceeded(submitted.outcome, submitted.operationId!, `volume ${volumeId}`);
  }
}

/** What the repeat leaves open is as it was chosen then. */
function sameOrRefused(row: VolumeRow, request: VolumeRequest): { value: string; join?: string } {
  const resource = `volume ${row.name}`;
  if (row.state === 'deleting')
    throw new StorageError('aborted', `${resource} is being deleted; try again when it is gone`, { resource });
  const desired = desiredVolume({
    sizeBytes: request.sizeBytes ?? BigInt(row.desired.sizeBytes),
    source: request.source,
    pool: request.pool ?? row.pool,
    folder: 'folder' in request.config ? request.folder : row.folder,
    thick: 'thick' in request.config ? request.thick : row.thick,
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
  if (source.snapshotId !== undefined) return false;
  const pools = await readPools(tx, caller.tenantId, caller.backendId);
  if (pools.find(({ name }) => name === source.image.pool)?.clone !== 'copy') return false;
  // After the lock: a publication may have come while it was waited for.
  const [publication] = await tx.query(PUBLICATION, [caller.tenantId, source.volumeId]);
  if (publication)
    throw new StorageError(
      'failed_precondition',
      `volume ${source.volumeName} is published, and its pool copies data: take a snapshot and clone that, or unpublish it`,
      { field: 'published' },
    );
  return true;
}
