import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';

const LOCK_EX = 2;
const LOCK_NB = 4;
const EWOULDBLOCK = 11;
const POLL_MS = 5;

let flock: ((fd: number) => boolean) | undefined;

/** flock(2) without waiting, so short that it needs no thread. */
function tryLock(fd: number): boolean {
  if (!flock) {
    const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
    const call = koffi.load(null).func('int flock(int fd, int operation)');
    flock = locked => {
      if (call(locked, LOCK_EX | LOCK_NB) === 0) return true;
      if (koffi.errno() !== EWOULDBLOCK) throw new Error(`flock: errno ${koffi.errno()}`);
      return false;
    };
  }
  return flock(fd);
}

/**
 * One at a time among all processes of this host, and among all callers in this one. The kernel frees it with whoever
 * holds it, however that ends. Rejects with the signal's reason while another one holds it.
 */
export async function withFileLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const file: FileHandle = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    while (!tryLock(file.fd)) await delay(POLL_MS, undefined, { signal });
    signal.throwIfAborted();
    return await work();
  } finally {
    await file.close();
  }
}
