/** What a cluster answers, as StorageErrors. `doing` is for people, e.g. `grow volume 0190…`; nothing here is secret. */

import { UNOPENED } from '#backends/block-backend';
import { CephError, CephGone } from '#backends/rbd/ceph-process';
import { cephPoolsOf, type RbdPoolConfig } from '#backends/rbd/rbd-config';
import { type ErrorKind, isStorageError, StorageError } from '#platform/errors';

/** The CSP driver looks for these words (docs/callers.md#statuses). */
export const NO_SPACE = 'insufficient storage space';

export interface CephClient {
  user: string;
  /** Those that it is to be allowed. */
  pools: readonly Pick<RbdPoolConfig, 'cephPool' | 'dataPool'>[];
}

const KINDS: Readonly<Record<string, ErrorKind>> = {
  ENOSPC: 'resource_exhausted',
  EDQUOT: 'resource_exhausted',
  EPERM: 'permission_denied',
  EACCES: 'permission_denied',
  // A request that no monitor or disk answered may still be carried out.
  ETIMEDOUT: 'timeout',
  EBUSY: 'unavailable',
  EAGAIN: 'unavailable',
  EROFS: 'unavailable',
  EIO: 'unavailable',
  ENOTCONN: 'unavailable',
  ESHUTDOWN: 'unavailable',
  ENOMEM: 'unavailable',
};

const WORDS: Readonly<Record<string, string>> = {
  ENOSPC: `${NO_SPACE}: the cluster is full`,
  EDQUOT: `${NO_SPACE}: the quota of the pool is used up`,
  ETIMEDOUT: 'the cluster did not answer in time; whether it took effect is unknown',
  ESHUTDOWN: 'this client is on the blocklist of the cluster',
};

const osdCaps = (cephPools: readonly string[]): string =>
  `osd '${cephPools.map(pool => `profile rbd pool=${pool}`).join(', ')}'`;

/** All of them, as `ceph auth caps` takes them. */
const capsOf = ({ pools }: CephClient): string => `mon 'profile rbd' ${osdCaps(pools.flatMap(cephPoolsOf))}`;

/** An image's call may have been refused at its data pool; a call for keys goes to the pool that was asked. */
function lacking({ cephPool, syscall }: CephError, { pools }: CephClient): string {
  if (cephPool === undefined) return '';
  const asked = syscall.startsWith('rbd_') ? pools.find(pool => pool.cephPool === cephPool) : undefined;
  return ` and lacks ${osdCaps(asked ? cephPoolsOf(asked) : [cephPool])}`;
}

export function cephError(error: unknown, doing: string, client: CephClient): StorageError {
  if (isStorageError(error)) return error;
  if (error instanceof CephGone) return timedOut(doing, error);
  if (!(error instanceof CephError))
    return new StorageError('internal', `${doing}: unexpected error`, { cause: error });
  const { code } = error;
  if (error.isConnecting) return notConnected(error, client);
  if (code === 'ESHUT')
    return new StorageError(
      'failed_precondition',
      `${doing}: the image is there and cannot be opened; something of it, or of what it was cloned from, is missing`,
      { field: UNOPENED, retry: 'later', cause: error },
    );
  const kind = KINDS[code] ?? 'internal';
  if (kind === 'permission_denied')
    return new StorageError(
      kind,
      `${doing}: client.${client.user} may not${lacking(error, client)}; it needs the caps ${capsOf(client)}`,
      { cause: error },
    );
  return new StorageError(kind, `${doing}: ${WORDS[code] ?? `${code} (${error.syscall})`}`, { cause: error });
}

/** What has no connection has had no effect either. */
function notConnected(error: CephError, { user }: CephClient): StorageError {
  const options = { cause: error };
  switch (error.code) {
    case 'EPERM':
    case 'EACCES':
    case 'EINVAL':
      return new StorageError(
        'permission_denied',
        `the cluster does not let client.${user} in: the key is not that user's, or it lacks the caps mon 'profile rbd'`,
        options,
      );
    case 'ETIMEDOUT':
      return new StorageError('unavailable', 'no monitor of the cluster answers', options);
    case 'ELIBACC':
      return new StorageError('unavailable', 'librados2 and librbd1 are not installed on this host', options);
    default:
      return new StorageError('unavailable', `the cluster cannot be reached (${error.code})`, options);
  }
}

export const timedOut = (doing: string, cause?: unknown): StorageError =>
  new StorageError('timeout', `${doing}: not done in time; whether it took effect is unknown`, { cause });

export const codeOf = (error: unknown): string | undefined => (error instanceof CephError ? error.code : undefined);
