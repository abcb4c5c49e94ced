/**
 * The system calls that Node lacks, through koffi (no compiler, no helper program). The library is loaded at the first
 * call: a process without block volumes never pays for it. Calls run in libuv's pool, which everything else of the process
 * uses too, and cannot be called back; so only bounded ones go through here, and long work is cut into portions.
 */
import { createRequire } from 'node:module';
import { getSystemErrorMap } from 'node:util';

type Call = (...values: unknown[]) => void;

interface Libc {
  ioctl: Call;
  fallocate: Call;
  lseek: Call;
  errno(): number;
}

let loaded: Libc | undefined;

function libc(): Libc {
  if (loaded) return loaded;
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
  const library = koffi.load(null);
  const define = (prototype: string): Call => library.func(prototype).async as Call;
  loaded = {
    ioctl: define('int ioctl(int fd, unsigned long request, void *argument)'),
    fallocate: define('int fallocate(int fd, int mode, int64_t offset, int64_t length)'),
    lseek: define('int64_t lseek(int fd, int64_t offset, int whence)'),
    errno: () => koffi.errno(),
  };
  return loaded;
}

/** As Node's own: `code` is the name, e.g. ENOSPC. */
function systemError(call: string, errno: number): NodeJS.ErrnoException {
  const [code = `E${errno}`, description = 'unknown error'] = getSystemErrorMap().get(-errno) ?? [];
  return Object.assign(new Error(`${code}: ${description}, ${call}`), { code, errno: -errno, syscall: call });
}

function run(call: Exclude<keyof Libc, 'errno'>, name: string, ...values: unknown[]): Promise<number | bigint> {
  return new Promise((resolve, reject) => {
    const { [call]: method, errno } = libc();
    method(...values, (error: Error | null, result: number | bigint) => {
      if (error) reject(error);
      // koffi hands the errno of its thread over to this callback.
      else if (result < 0) reject(systemError(name, errno()));
      else resolve(result);
    });
  });
}

/** `argument` is read and written in place, and must stay untouched meanwhile. Rejects with a system error. */
export async function ioctl(name: string, fd: number, request: number, argument: Buffer): Promise<void> {
  await run('ioctl', name, fd, request, argument);
}

/** fallocate(2): what `FALLOC_FL_*` in `mode` says. */
export async function fallocate(fd: number, mode: number, offset: bigint, length: bigint): Promise<void> {
  await run('fallocate', 'fallocate', fd, mode, offset, length);
}

export const FALLOC_FL_KEEP_SIZE = 0x01;
/** Gives blocks that are shared with other files copies of their own. XFS has it, others answer EOPNOTSUPP. */
export const FALLOC_FL_UNSHARE_RANGE = 0x40;

/**
 * The next range of data at or after `offset`, with dirty pages and without holes; undefined beyond the last. Moves the
 * position of this fd, which nobody else may rely on. A file system that cannot tell calls everything data.
 */
export async function nextData(fd: number, offset: bigint): Promise<{ start: bigint; end: bigint } | undefined> {
  const SEEK_DATA = 3;
  const SEEK_HOLE = 4;
  try {
    const start = BigInt(await run('lseek', 'lseek', fd, offset, SEEK_DATA));
    return { start, end: BigInt(await run('lseek', 'lseek', fd, start, SEEK_HOLE)) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return undefined;
    throw error;
  }
}
