/**
 * How an image comes to its name (invariant F1). A killed clone leaves a file that looks whole and is not, so content
 * is written under a name that says so, flushed, renamed to its stage, and only then linked to the image's name, which
 * never replaces. Whoever begins again begins with nothing.
 */
import { constants } from 'node:fs';
import { chmod, type FileHandle, link, lstat, mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { ImageRef, StageContent, StageRef } from '#backends/block-backend';
import { isImmutable, setImmutable, setInPlace } from '#backends/linux/inode-flags';
import { type CutSpeed, countExtents } from '#backends/reflink/cut-speed';
import { canUnshare, cloneFile, copyData, reserve, SourceChanged, unshare } from '#backends/reflink/file-content';
import { codeOf } from '#backends/reflink/file-errors';
import {
  describeImage,
  folderPath,
  imagePath,
  parseTemporary,
  stagedPath,
  TMP,
  writingPath,
} from '#backends/reflink/layout';
import { syncFolder } from '#backends/reflink/pool-marker';
import type { PoolRoot } from '#backends/reflink/pool-root';
import { StorageError } from '#platform/errors';
import { failpoint } from '#platform/process/failpoint';

const MEASURED_EXTENTS = 1_000_000;

/** A missing image, and anything that is not a plain file, is `failed_precondition`: nothing here makes it anew (F2). */
export async function openImage(root: PoolRoot, image: ImageRef, flags: number): Promise<FileHandle> {
  try {
    return await open(imagePath(root.path, image), flags | constants.O_NOFOLLOW);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(codeOf(error) ?? ''))
      throw new StorageError('failed_precondition', `${describeImage(image)} is missing`, { cause: error });
    throw error;
  }
}

export async function writeStage(
  root: PoolRoot,
  stage: StageRef,
  content: StageContent,
  speed: CutSpeed,
  signal: AbortSignal,
): Promise<void> {
  await failpoint('reflink.staging');
  await removeStages(root, stage.imageId, stage.fence);
  const path = writingPath(root.path, stage);
  try {
    if (content.kind === 'copy') await copySource(root, content.source, path, speed, signal);
    const file = await open(path, content.kind === 'copy' ? 'r+' : 'wx+', 0o600);
    try {
      const sizeBytes = await sizeOf(file, content);
      const isShared = content.kind === 'copy' && root.clone === 'reflink';
      if (!content.thick) await file.truncate(Number(sizeBytes));
      else if (isShared && !(await canUnshare(file))) await replaceByCopy(root, stage, file, path, sizeBytes, signal);
      else await makeThick(file, sizeBytes, isShared, signal);
      await file.sync();
    } finally {
      await file.close();
    }
    signal.throwIfAborted();
    await failpoint('reflink.written');
    await rename(path, stagedPath(root.path, stage));
  } catch (error) {
    await removeFile(path);
    throw error;
  }
}

async function copySource(
  root: PoolRoot,
  image: ImageRef,
  path: string,
  speed: CutSpeed,
  signal: AbortSignal,
): Promise<void> {
  const source = await openImage(root, image, constants.O_RDONLY);
  try {
    // What is dirty goes out before the cut, and not while it holds up the writers.
    await source.datasync();
    signal.throwIfAborted();
    const begin = performance.now();
    if (root.clone === 'reflink') {
      await cloneFile(`/proc/self/fd/${source.fd}`, path);
      const ms = performance.now() - begin;
      const { extents, more } = await countExtents(source.fd, MEASURED_EXTENTS, signal);
      if (!more) speed.cloned(extents, ms);
      // The source may be a snapshot, and its mode comes along.
      await chmod(path, 0o600);
      return;
    }
    const target = await open(path, 'wx', 0o600);
    try {
      speed.copied(await copyData(source, target, signal), performance.now() - begin);
    } finally {
      await target.close();
    }
  } catch (error) {
    if (!(error instanceof SourceChanged)) throw error;
    throw new StorageError(
      'failed_precondition',
      `${describeImage(image)} was written while its data were copied: this pool cannot clone, so its writers must pause`,
      { retry: 'later', cause: error },
    );
  } finally {
    await source.close();
  }
}

async function sizeOf(file: FileHandle, content: StageContent): Promise<bigint> {
  const { size: copied } = await file.stat({ bigint: true });
  const size = content.sizeBytes ?? copied;
  if (size < copied)
    throw new StorageError('failed_precondition', `the source is larger (${copied} bytes) than the ${size} asked for`);
  return size;
}

/** No later write finds the pool full, until a snapshot shares the blocks. */
async function makeThick(file: FileHandle, size: bigint, isShared: boolean, signal: AbortSignal): Promise<void> {
  if ((await file.stat()).size === 0) await setInPlace(file.fd, true);
  await reserve(file, 0n, size, signal);
  if (isShared) await unshare(file, size, signal);
  await file.truncate(Number(size));
}

/** btrfs: neither does it unshare, nor is a file overwritten in place that did not begin so. */
async function replaceByCopy(
  root: PoolRoot,
  stage: StageRef,
  shared: FileHandle,
  path: string,
  size: bigint,
  signal: AbortSignal,
): Promise<void> {
  const copyPath = writingPath(root.path, stage);
  const copy = await open(copyPath, 'wx+', 0o600);
  try {
    await setInPlace(copy.fd, true);
    await reserve(copy, 0n, size, signal);
    await copyData(shared, copy, signal);
    await copy.truncate(Number(size));
    await copy.sync();
    await rename(copyPath, path);
  } catch (error) {
    await removeFile(copyPath);
    throw error;
  } finally {
    await copy.close();
  }
}

export async function commitStage(
  root: PoolRoot,
  stage: StageRef,
  image: ImageRef,
  options: { readOnly: boolean },
  mayLink: () => Promise<void>,
): Promise<void> {
  const staged = stagedPath(root.path, stage);
  const path = imagePath(root.path, image);
  const isStaged = (await statOf(staged)) !== undefined;
  if (!isStaged && (await statOf(path)) === undefined)
    // The next attempt begins with staging.
    throw new StorageError('failed_precondition', `nothing is staged for ${describeImage(image)}`, { retry: 'later' });
  if (isStaged) {
    if (options.readOnly) await chmod(staged, 0o400);
    await makeFolder(root, image);
    await failpoint('reflink.linking');
    await mayLink();
    await failpoint('reflink.link:checked');
    await link(staged, path).catch(error => {
      // An earlier attempt's: it came first, and who wrote to it since must find it.
      if (codeOf(error) !== 'EEXIST') throw error;
    });
    await failpoint('reflink.linked');
  }
  await syncFolder(dirname(path));
  // Before the image becomes immutable: that would hold its other name as well.
  await removeStages(root, stage.imageId, stage.fence);
  if (options.readOnly) await protect(root, image);
}

async function protect(root: PoolRoot, image: ImageRef): Promise<void> {
  const file = await openImage(root, image, constants.O_RDONLY);
  try {
    if (await isImmutable(file.fd)) return;
    await file.chmod(0o400);
    await setImmutable(file.fd, true);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Takes the image away unless `mayRemove` rejects; one that is missing is fine. Returns whether it was there. */
export async function unlinkImage(root: PoolRoot, image: ImageRef, mayRemove: () => Promise<void>): Promise<boolean> {
  const path = imagePath(root.path, image);
  const found = await statOf(path);
  if (!found) return false;
  if (!found.isFile()) throw new StorageError('failed_precondition', `${describeImage(image)} is not a plain file`);
  const file = await openImage(root, image, constants.O_RDONLY);
  try {
    await failpoint('reflink.removing');
    await mayRemove();
    await failpoint('reflink.unlink:checked');
    await setImmutable(file.fd, false);
  } finally {
    await file.close();
  }
  const gone = await removeFile(path);
  await syncFolder(dirname(path));
  return gone;
}

/** Temporaries of this image, of whatever operation, with this fence or a lower one: a higher one is a successor's. */
export async function removeStages(root: PoolRoot, imageId: string, fence: string): Promise<void> {
  for (const name of await readdir(join(root.path, TMP))) {
    const found = parseTemporary(name);
    if (found?.imageId === imageId && found.fence <= BigInt(fence)) await removeFile(join(root.path, TMP, name));
  }
}

/** Each folder that is new is made durable in its parent. */
async function makeFolder(root: PoolRoot, image: ImageRef): Promise<void> {
  const folder = folderPath(root.path, image);
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  const made = relative(dirname(first), folder).split('/');
  for (let path = dirname(first); made.length > 0; path = join(path, made.shift()!)) await syncFolder(path);
}

async function statOf(path: string) {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}

export { statOf };

async function removeFile(path: string): Promise<boolean> {
  try {
    await unlink(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
