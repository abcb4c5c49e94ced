import { dirname } from 'node:path';
import type { ImageRef } from '#backends/block-backend';
import { invalid, type StorageError } from '#platform/errors';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller } from '#storage/block/block-storage';
import { choosePool } from '#storage/block/pools/pool-store';
import type { VolumeSource } from '#storage/block/volumes/volume-source';

const LOOK_MS = 5_000;

/**
 * An image that somebody put into the pool's folder of imports: confined to the pool, and of a shared one to the tenant's
 * part. Or the refusal, where there is none of that name: whoever repeats what was done from it does not need it any more. It
 * is looked at before the transaction, which waits for no file system.
 */
export async function findImage(
  { database, blocks }: BlockDependencies,
  caller: BlockCaller,
  name: string,
  pool: string | undefined,
): Promise<VolumeSource | StorageError> {
  const { tenantId, backendId } = caller;
  const chosen = await database.withTenant(tenantId, tx => choosePool(tx, caller, pool));
  const image: ImageRef = { kind: 'import', pool: chosen, folder: '', id: name };
  const { volumes } = await blocks.open(tenantId, backendId);
  const found = await volumes.inspectImage(image, AbortSignal.timeout(LOOK_MS));
  if (found.state === 'present') return { image, sizeBytes: found.sizeBytes };
  const folder = dirname(volumes.pathOf(image));
  return invalid('image', `there is no image ${name} in the folder import of pool ${chosen} (${folder})`);
}
