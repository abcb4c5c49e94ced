/**
 * What things are called in a Ceph pool:
 *
 *   trivet-v-<uuid>[+folder+folder]            a volume; uuid: the incarnation
 *   trivet-s-<uuid>[+folder+folder]            a snapshot, with its content in its own snapshot `trivet-sealed`
 *   trivet-t-<uuid>-<operation>-<fence>.<hex>  staged, or being made: which of them, its record says
 *   …@trivet-cut-<uuid>.<hex>                  the snapshot of a volume that a clone was made from
 *   trivet_pool, trivet_records.<0 to f>       small objects: the pool's marker, and rbd-records.ts
 *
 * Everything else in there is somebody else's, and neither listed nor touched.
 */
import { randomBytes } from 'node:crypto';
import type { ImageRef, StageRef } from '#backends/block-backend';
import { checkFolder } from '#backends/reflink/layout';
import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';

export const SEALED = 'trivet-sealed';
export const MARKER_OBJECT = 'trivet_pool';
const CUT = 'trivet-cut-';
const LETTER = { volume: 'v', snapshot: 's' } as const;
const IMAGE = /^trivet-([vs])-([0-9a-f-]{36})((?:\+[A-Za-z0-9_][A-Za-z0-9._-]*)*)$/;
const STAGED = /^trivet-t-([0-9a-f-]{36})-([0-9a-f-]{36})-(\d{1,19})\.[0-9a-f]{12}$/;

export function imageName(image: ImageRef): string {
  if (image.kind === 'import')
    throw new StorageError('failed_precondition', `pool ${image.pool} takes no imports: it is one of Ceph`);
  if (!isUuid(image.id)) throw new StorageError('internal', `not an image id: ${image.id}`, { retry: 'never' });
  checkFolder(image.folder, 'folder');
  const folder = image.folder === '' ? '' : `+${image.folder.replaceAll('/', '+')}`;
  return `trivet-${LETTER[image.kind]}-${image.id}${folder}`;
}

export type ParsedName =
  | { kind: 'volume' | 'snapshot'; id: string; folder: string }
  | { kind: 'temporary'; id: string; folder: ''; fence: bigint };

export function parseName(name: string): ParsedName | undefined {
  const [, letter, id, path] = IMAGE.exec(name) ?? [];
  if (letter && id && isUuid(id))
    return { kind: letter === 'v' ? 'volume' : 'snapshot', id, folder: (path ?? '').slice(1).replaceAll('+', '/') };
  const [, imageId, operationId, fence] = STAGED.exec(name) ?? [];
  if (imageId && operationId && isUuid(imageId) && isUuid(operationId))
    return { kind: 'temporary', id: imageId, folder: '', fence: BigInt(fence!) };
  return undefined;
}

/** Names that no other attempt has, not even another call of this one. */
export function attemptNames(stage: StageRef): { name: string; cut: string } {
  const own = randomBytes(6).toString('hex');
  const name = `trivet-t-${stage.imageId}-${stage.operationId}-${stage.fence}.${own}`;
  if (!parseName(name)) throw new StorageError('internal', `not a stage: ${name}`, { retry: 'never' });
  return { name, cut: `${CUT}${stage.imageId}.${own}` };
}

/** Whether it is the snapshot that this image was cloned from, which goes with it. */
export const isCutOf = (snapshot: string, imageId: string): boolean => snapshot.startsWith(`${CUT}${imageId}.`);
export const isCut = (snapshot: string): boolean => snapshot.startsWith(CUT);

/** Snapshots are opened where nobody can write. */
export const pathIn = (cephPool: string, name: string, kind: ParsedName['kind']): string =>
  `${cephPool}/${name}${kind === 'snapshot' ? `@${SEALED}` : ''}`;

export const describeImage = (image: ImageRef): string => `${image.kind} ${image.id} in pool ${image.pool}`;
