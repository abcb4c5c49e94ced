import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { ImageRef, PoolStatus } from '#backends/block-backend';
import { codeOf } from '#backends/reflink/file-errors';
import { describeImage, imagePath } from '#backends/reflink/layout';
import type { PoolRoot, Pools } from '#backends/reflink/pool-root';
import { StorageError } from '#platform/errors';

export interface OpenedImage {
  file: FileHandle;
  fd: number;
  /** Bytes. */
  size: number;
  device: bigint;
  /** Of its pool. */
  clone: PoolStatus['clone'];
}

/**
 * The images of one stream. They are closed at the stream's end, and as soon as the signal fires, whether anybody still
 * pulls or not; but never under a call that is on its way in the kernel, since the descriptor's number may be another
 * file's by then.
 */
export class OpenedImages {
  readonly #files: FileHandle[] = [];
  #busy: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;
  /** A call was given up and is in the kernel still. */
  #isStuck = false;
  readonly #leave = (): void => {
    this.#close().catch(() => {});
  };

  /** @param through what each call goes through */
  constructor(
    private readonly signal: AbortSignal,
    private readonly through: <T>(work: () => Promise<T>) => Promise<T> = work => work(),
  ) {
    signal.addEventListener('abort', this.#leave, { once: true });
  }

  /** One call at a time. Rejects with the signal's reason as soon as it fires; the call goes on by itself then. */
  call<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this;
    if (signal.aborted) return Promise.reject(signal.reason);
    let isBusy = false;
    const result = this.through(() => {
      isBusy = true;
      const done = work().finally(() => {
        isBusy = false;
      });
      this.#busy = done.catch(() => {});
      return done;
    });
    return new Promise((resolve, reject) => {
      const leave = () => reject(signal.reason);
      signal.addEventListener('abort', leave, { once: true });
      result
        .then(resolve, error => {
          if (isBusy) this.#isStuck = true;
          reject(error);
        })
        .finally(() => signal.removeEventListener('abort', leave));
    });
  }

  /** A missing one: `not_found`. One that may be written to, or is no plain file: `failed_precondition`. */
  async open(pools: Pools, image: ImageRef): Promise<OpenedImage> {
    return this.call(async () => {
      const root = await pools.open(image.pool);
      try {
        const file = await openFixed(root, image);
        this.#files.push(file);
        const { size, dev: device } = await file.stat({ bigint: true });
        return { file, fd: file.fd, size: Number(size), device, clone: root.clone };
      } finally {
        await root.close();
      }
    });
  }

  /** Waits for the files, unless a call was given up: then nothing is known about when it returns. */
  async close(): Promise<void> {
    const closed = this.#close();
    if (!this.signal.aborted && !this.#isStuck) await closed;
  }

  #close(): Promise<void> {
    this.signal.removeEventListener('abort', this.#leave);
    this.#closed ??= this.#busy.then(async () => {
      for (const file of this.#files) await file.close();
    });
    return this.#closed;
  }
}

async function openFixed(root: PoolRoot, image: ImageRef): Promise<FileHandle> {
  const path = imagePath(root.path, image);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(error => {
    const code = codeOf(error) ?? '';
    if (['ENOENT', 'ENOTDIR'].includes(code))
      throw new StorageError('not_found', `${describeImage(image)} is missing`, { cause: error });
    if (code === 'ELOOP') throw notPlain(image);
    throw error;
  });
  try {
    const found = await file.stat();
    if (!found.isFile()) throw notPlain(image);
    if ((found.mode & 0o222) !== 0)
      throw new StorageError(
        'failed_precondition',
        `${describeImage(image)} may be written to: only a snapshot's ranges are told`,
      );
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

const notPlain = (image: ImageRef): StorageError =>
  new StorageError('failed_precondition', `${describeImage(image)} is not a plain file`);
