import { noting } from '#operations/accepting/change-observer';
import { isUniqueViolation, type Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller, VolumeChanges, VolumeRequest } from '#storage/block/block-storage';
import { importedFrom } from '#storage/block/volumes/stored-config';
import { checkCapabilities } from '#storage/block/volumes/volume-checks';
import { editVolume } from '#storage/block/volumes/volume-edit';
import { changesByPolicy } from '#storage/block/volumes/volume-policy';
import { lockUsableVolume, lockVolume, type VolumeRow } from '#storage/block/volumes/volume-store';
import { desiredVolume, fingerprint } from '#storage/shared/desired-state';

const RENAME = sql(
  'volume_rename',
  `UPDATE trivet.volume SET name = $3, desired = $4, fingerprint = $5, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);

/**
 * Gives a volume that nobody uses to a caller who knows it by another name from now on. Nothing changes at the backend,
 * whose names are incarnations, so it is one transaction. The volume's id.
 */
export async function importVolume(
  parts: BlockDependencies,
  caller: BlockCaller,
  imported: string,
  request: VolumeRequest,
): Promise<string> {
  const { capabilities } = parts.kindOf(caller);
  checkCapabilities(request, capabilities);
  return parts.database.withTenant(caller.tenantId, async tx => {
    await caller.observer?.before?.(tx);
    const known = await lockVolume(tx, caller, { name: request.name });
    if (known) return sameOrRefused(known, imported, request);
    const found = await lockVolume(tx, caller, { name: imported });
    if (!found) {
      // The same call, a moment earlier, held it.
      const made = await lockVolume(tx, caller, { name: request.name });
      if (made) return sameOrRefused(made, imported, request);
      throw invalid(
        'imported',
        `neither a volume here nor an image in the folder import of the pool is named "${imported}"`,
      );
    }
    // Once more, by a statement of its own: the one before may have waited for a publication, and has not seen it.
    const row = await lockUsableVolume(tx, caller, found.id);
    checkImported(row, request);
    await rename(tx, caller, row, request.name);
    const changes = await changesByPolicy(tx, caller.tenantId, row, changesOf(request), request);
    await editVolume(tx, caller, capabilities, row, changes);
    const change = { kind: 'volume.import', resourceId: row.id, resourceName: request.name, after: { imported } };
    await tx.commit(...noting(caller.observer, change));
    return row.id;
  });
}

function sameOrRefused(row: VolumeRow, imported: string, request: VolumeRequest): string {
  const same = importedFrom(row.config) === imported && row.state === 'ready';
  if (same && (request.sizeBytes ?? BigInt(row.sizeBytes)) === BigInt(row.sizeBytes)) return row.id;
  const resource = `volume ${row.name}`;
  throw new StorageError('already_exists', `${resource} exists, and is not the imported ${imported}`, { resource });
}

/** The caller is answered with the size that it asked for, or its orchestrator deletes the volume as too small. */
function checkImported(row: VolumeRow, { sizeBytes, ...asked }: VolumeRequest): void {
  const resource = `volume ${row.name}`;
  if (row.activeOperation) throw new StorageError('aborted', `${resource} is being changed; try again`, { resource });
  if (row.published)
    throw new StorageError('failed_precondition', `${resource} is published: unpublish it, then import it`, {
      resource,
      field: 'published',
    });
  if (sizeBytes !== undefined && sizeBytes !== BigInt(row.sizeBytes))
    throw invalid('size', `${resource} has ${row.sizeBytes} bytes: ask for exactly as many, and expand it afterwards`);
  for (const key of ['pool', 'folder', 'thick'] as const)
    if (asked[key] !== undefined && asked[key] !== row[key])
      throw invalid(key, `${resource} has ${key} "${row[key]}", and an import moves nothing`);
}

async function rename(tx: Tx, { tenantId }: BlockCaller, row: VolumeRow, name: string): Promise<void> {
  const { pool, folder, thick } = row;
  const desired = desiredVolume({ sizeBytes: BigInt(row.sizeBytes), pool, folder, thick });
  await tx.query(RENAME, [tenantId, row.id, name, JSON.stringify(desired), fingerprint(desired)]).catch(error => {
    if (!isUniqueViolation(error)) throw error;
    throw new StorageError('aborted', `volume ${name} is being made at this moment; try again`);
  });
}

const changesOf = (request: VolumeRequest): VolumeChanges => ({
  config: request.config,
  description: request.description || undefined,
  destroyOnDelete: request.destroyOnDelete,
  volumeGroupId: request.volumeGroupId || undefined,
  performancePolicy: request.performancePolicy,
  protectionTemplate: request.protectionTemplate,
  limitIops: request.limitIops,
  limitMbps: request.limitMbps,
});
