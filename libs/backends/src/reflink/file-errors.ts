/** What the kernel answers about files, as StorageErrors. A path is for people and says nothing secret. */
import { aboutPool, type ErrorKind, isStorageError, StorageError } from '#platform/errors';

/** The CSP driver looks for these words (docs/callers.md#statuses). */
export const NO_SPACE = 'insufficient storage space';

const BY_CODE: Readonly<Record<string, ErrorKind>> = {
  ENOSPC: 'resource_exhausted',
  EDQUOT: 'resource_exhausted',
  EFBIG: 'invalid_argument',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  ENOENT: 'failed_precondition',
  // The disk, or whoever mounts it, must come back first.
  EIO: 'unavailable',
  EROFS: 'unavailable',
  ESTALE: 'unavailable',
  ENODEV: 'unavailable',
  ENXIO: 'unavailable',
  ESHUTDOWN: 'unavailable',
  EUCLEAN: 'unavailable',
  ENOTCONN: 'unavailable',
  EMFILE: 'unavailable',
  ENFILE: 'unavailable',
  ENOMEM: 'unavailable',
  EBUSY: 'unavailable',
  EINTR: 'unavailable',
  EAGAIN: 'unavailable',
};

const WORDS: Readonly<Record<string, string>> = {
  ENOSPC: NO_SPACE,
  EDQUOT: `${NO_SPACE} within the quota`,
  EFBIG: 'this file system keeps no file so large',
};

export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | null)?.code;

/** `doing`: for people, e.g. `grow volume 0190…`. */
export function fileError(error: unknown, doing: string): StorageError {
  if (isStorageError(error)) return error;
  const code = codeOf(error);
  const kind = (code === undefined ? undefined : BY_CODE[code]) ?? 'internal';
  const why = (code === undefined ? undefined : WORDS[code]) ?? code ?? 'unexpected error';
  return new StorageError(kind, `${doing}: ${why}`, { cause: error });
}

export const timedOut = (doing: string, pool?: string): StorageError =>
  new StorageError('timeout', `${doing}: not done in time; whether it took effect is unknown`, {
    ...(pool === undefined ? {} : aboutPool(pool)),
  });
