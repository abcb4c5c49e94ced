import { open } from 'node:fs/promises';
import { FALLOC_FL_KEEP_SIZE, fallocate } from '#backends/linux/libc';
import { placeOf, type TestCluster } from '#test/block-backend/rbd-harness';

const FALLOC_FL_PUNCH_HOLE = 0x02;
const soon = () => AbortSignal.timeout(60_000);

/** Images by their paths, written to as hosts would. */
export interface Disk {
  read(path: string, offset: number, bytes: number): Promise<Buffer>;
  write(path: string, offset: number, data: Buffer): Promise<void>;
  punch(path: string, offset: number, bytes: number): Promise<void>;
  /** Gives a clone data of its own, as an administrator may; absent where there is nothing of the kind. */
  flatten?(path: string): Promise<void>;
}

type Opened = Awaited<ReturnType<typeof open>>;

async function onFile<T>(path: string, flags: string, work: (file: Opened) => Promise<T>): Promise<T> {
  const file = await open(path, flags);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

export const FILES: Disk = {
  read: (path, offset, bytes) =>
    onFile(path, 'r', async file => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, offset);
      return buffer.subarray(0, bytesRead);
    }),
  write: (path, offset, data) =>
    onFile(path, 'r+', async file => void (await file.write(data, 0, data.length, offset))),
  punch: (path, offset, bytes) =>
    onFile(path, 'r+', file =>
      fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BigInt(offset), BigInt(bytes)),
    ),
};

export function cephDisk({ admin }: TestCluster): Disk {
  return {
    async read(path, offset, bytes) {
      const { cephPool, at } = placeOf(path);
      return Buffer.from(await admin.call(soon(), 'read', cephPool, at, offset, bytes));
    },
    async write(path, offset, data) {
      const { cephPool, at } = placeOf(path);
      await admin.call(soon(), 'write', cephPool, at, offset, data);
    },
    async punch(path, offset, bytes) {
      const { cephPool, at } = placeOf(path);
      await admin.call(soon(), 'discard', cephPool, at, offset, bytes);
    },
    async flatten(path) {
      const { cephPool, at } = placeOf(path);
      // What has no parent has all of it already.
      const found = await admin.call(soon(), 'look', cephPool, at);
      if (found?.parent) await admin.call(soon(), 'flatten', cephPool, at.name);
    },
  };
}
