import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ListedImage } from '#backends/block-backend';
import { type ImageShare, isInShare } from '#backends/image-share';
import { codeOf } from '#backends/reflink/file-errors';
import { folderPath, parseTemporary, TMP } from '#backends/reflink/layout';
import type { PoolRoot } from '#backends/reflink/pool-root';
import { isUuid } from '#platform/uuid';

/** Every file of ours, or of the share, a folder at a time: memory follows the depth of folders, not their content. */
export async function* listPool(root: PoolRoot, share?: ImageShare): AsyncGenerator<ListedImage> {
  for (const kind of ['volume', 'snapshot'] as const) yield* imagesBelow(root, kind, '', share);
  for await (const { name } of await opendir(join(root.path, TMP))) {
    const found = parseTemporary(name);
    if (found && isInShare(found.imageId, share))
      yield* listed(root, join(TMP, name), { kind: 'temporary', id: found.imageId, folder: '' });
  }
}

async function* imagesBelow(
  root: PoolRoot,
  kind: 'volume' | 'snapshot',
  folder: string,
  share: ImageShare | undefined,
): AsyncGenerator<ListedImage> {
  const relative = folderPath('', { kind, folder });
  for await (const entry of await opendir(join(root.path, relative))) {
    if (entry.isDirectory())
      yield* imagesBelow(root, kind, folder === '' ? entry.name : `${folder}/${entry.name}`, share);
    else if (entry.isFile() && isUuid(entry.name) && isInShare(entry.name, share))
      yield* listed(root, join(relative, entry.name), { kind, id: entry.name, folder });
  }
}

/** One, or none when it went away meanwhile. */
async function* listed(
  root: PoolRoot,
  path: string,
  what: Pick<ListedImage, 'kind' | 'id' | 'folder'>,
): AsyncGenerator<ListedImage> {
  try {
    const { size, mtime } = await lstat(join(root.path, path), { bigint: true });
    yield { ...what, path: join(root.publicPath, path), sizeBytes: size, modifiedAt: mtime };
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}
