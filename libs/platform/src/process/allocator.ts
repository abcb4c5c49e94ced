import { createRequire } from 'node:module';

/** Of glibc's malloc.h. */
const M_MMAP_THRESHOLD = -3;
const ONE_MIB = 1024 ** 2;

/**
 * Makes glibc map what is larger than a MiB by itself and give it back when it is freed. Else, after the first password
 * was hashed (19 MiB), its threshold rises above that, and each thread of libuv's pool keeps such a piece or two in an
 * arena of its own, for good. Call it before the first hash; other C libraries have no such arenas.
 */
export function returnLargeMemory(): void {
  let mallopt: (option: number, value: number) => number;
  try {
    const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
    mallopt = koffi.load(null).func('int mallopt(int param, int value)');
  } catch {
    return;
  }
  mallopt(M_MMAP_THRESHOLD, ONE_MIB);
}
