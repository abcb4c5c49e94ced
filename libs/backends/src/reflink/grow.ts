import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { ImageRef } from '#backends/block-backend';
import { fallocate } from '#backends/linux/libc';
import { requireFree, reserve } from '#backends/reflink/file-content';
import { codeOf } from '#backends/reflink/file-errors';
import { describeImage } from '#backends/reflink/layout';
import type { PoolRoot } from '#backends/reflink/pool-root';
import { openImage } from '#backends/reflink/staging';
import { StorageError } from '#platform/errors';
import { failpoint } from '#platform/process/failpoint';

/** To exactly that size, under whoever writes to it: blocks are reserved beyond the end first, then the end moves. */
export async function growFile(
  root: PoolRoot,
  image: ImageRef,
  { sizeBytes, thick }: { sizeBytes: bigint; thick: boolean },
  mayGrow: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const file = await openImage(root, image, constants.O_RDWR).catch(error => {
    // An immutable file is refused even to root.
    if (['EPERM', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) throw refused(image);
    throw error;
  });
  try {
    const { size, mode } = await file.stat({ bigint: true });
    if ((mode & 0o222n) === 0n) throw refused(image);
    if (size > sizeBytes)
      throw new StorageError(
        'failed_precondition',
        `${describeImage(image)} has ${size} bytes, more than the ${sizeBytes} asked for; it is never made smaller`,
      );
    if (thick) {
      await requireFree(file, sizeBytes);
      try {
        await reserve(file, size, sizeBytes, signal);
      } catch (error) {
        // Gives back what was reserved beyond the end before the pool was full; unless the end may be a successor's by now.
        await mayGrow();
        if ((await file.stat({ bigint: true })).size === size) await file.truncate(Number(size));
        throw error;
      }
    }
    await failpoint('reflink.growing');
    await mayGrow();
    await failpoint('reflink.grow:checked');
    await moveEnd(file, size, sizeBytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

const NOT_HERE = ['EOPNOTSUPP', 'ENOTSUP', 'ENOSYS'];

/**
 * By allocating the last byte, which moves the end outwards only: truncate(2) of a worker that was stopped here would cut
 * off what successors have grown it to since. It costs one block.
 */
async function moveEnd(file: FileHandle, size: bigint, sizeBytes: bigint): Promise<void> {
  if (size === sizeBytes) return;
  try {
    await fallocate(file.fd, 0, sizeBytes - 1n, 1n);
  } catch (error) {
    if (!NOT_HERE.includes(codeOf(error) ?? '')) throw error;
    await file.truncate(Number(sizeBytes));
  }
}

const refused = (image: ImageRef): StorageError =>
  new StorageError('failed_precondition', `${describeImage(image)} is read-only`);
