/**
 * Where things are inside a pool:
 *
 *   trivet-pool.json
 *   volumes/<folder>/<uuid>      snapshots/<folder>/<uuid>      uuid: the incarnation
 *   import/<name>                                               put there by people, to be made volumes of
 *   tmp/<uuid>-<operation>-<fence>                              staged, not yet named
 *   tmp/<uuid>-<operation>-<fence>.<hex>                        being written: never complete
 *   fences/                                                     libs/backends/src/host-fence.ts
 *
 * Everything else in there is somebody else's, and neither listed nor touched.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { ImageRef, StageRef } from '#backends/block-backend';
import { invalid, StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';

const FOLDER_OF = { volume: 'volumes', snapshot: 'snapshots', import: 'import' } as const;
export const TMP = 'tmp';
export const FENCES = 'fences';
export const FOLDERS = [...Object.values(FOLDER_OF), TMP, FENCES] as const;

const MAX_FOLDER_BYTES = 200;
const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$/;
const IMPORT = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/;
const STAGED = /^([0-9a-f-]{36})-([0-9a-f-]{36})-(\d{1,19})(\.[0-9a-f]{12})?$/;

/** Throws `invalid_argument` unless it is '' or names like `team/db-1`, none of which could be taken for an image. */
export function checkFolder(folder: string, field: string): void {
  if (folder === '') return;
  if (Buffer.byteLength(folder) > MAX_FOLDER_BYTES)
    throw invalid(field, `expected at most ${MAX_FOLDER_BYTES} bytes, got ${Buffer.byteLength(folder)}`);
  for (const segment of folder.split('/')) {
    if (!SEGMENT.test(segment))
      throw invalid(
        field,
        'expected names of letters, digits, dots, dashes and underscores, separated by single slashes',
      );
    if (isUuid(segment.toLowerCase())) throw invalid(field, 'a folder cannot be named like a uuid');
  }
}

/** The folder that holds an image, below `root`. */
export function folderPath(root: string, image: Pick<ImageRef, 'kind' | 'folder'>): string {
  return image.folder === '' ? join(root, FOLDER_OF[image.kind]) : join(root, FOLDER_OF[image.kind], image.folder);
}

export function imagePath(root: string, image: ImageRef): string {
  if (image.kind === 'import') {
    if (!IMPORT.test(image.id) || image.folder !== '')
      throw invalid('image', 'expected the name of a file: letters, digits, dots, dashes and underscores');
    return join(folderPath(root, image), image.id);
  }
  if (!isUuid(image.id)) throw new StorageError('internal', `not an image id: ${image.id}`, { retry: 'never' });
  checkFolder(image.folder, 'folder');
  return join(folderPath(root, image), image.id);
}

/** The complete staged content. */
export function stagedPath(root: string, stage: StageRef): string {
  const name = `${stage.imageId}-${stage.operationId}-${stage.fence}`;
  if (!parseTemporary(name)) throw new StorageError('internal', `not a stage: ${name}`, { retry: 'never' });
  return join(root, TMP, name);
}

/** A name that no other attempt has, not even another call of this one. */
export const writingPath = (root: string, stage: StageRef): string =>
  `${stagedPath(root, stage)}.${randomBytes(6).toString('hex')}`;

export interface TemporaryName {
  imageId: string;
  fence: bigint;
}

export function parseTemporary(name: string): TemporaryName | undefined {
  const [, imageId, operationId, fence] = STAGED.exec(name) ?? [];
  if (!imageId || !isUuid(imageId) || !operationId || !isUuid(operationId)) return undefined;
  return { imageId, fence: BigInt(fence!) };
}

export const describeImage = (image: ImageRef): string => `${image.kind} ${image.id} in pool ${image.pool}`;
