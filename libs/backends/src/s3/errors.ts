/**
 * What a store that speaks S3, its administration, the AWS SDK and the network answer, as StorageErrors. A call whose
 * connection broke after it was sent may have taken effect: that is `timeout`, and not `unavailable`, unless it only read.
 */
import { type ErrorKind, isStorageError, StorageError } from '#platform/errors';

export interface CallContext {
  /** For people: what we were doing, e.g. `create bucket photos`. */
  doing: string;
  resource: string;
  /** The call cannot have changed anything. */
  readOnly: boolean;
  signal: AbortSignal;
}

/** What one kind of store says of its own. */
export interface StoreWords {
  /** Beside, or instead of, those that all have. */
  codes?: Readonly<Record<string, ErrorKind>>;
  /** What to do, after the message. */
  hint(kind: ErrorKind, code: string, error: unknown): string | undefined;
}

/** The store's own error, from S3 or an administration that no SDK speaks to. */
export class RefusedRequest extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message = '',
  ) {
    super(message || code);
    this.name = code;
  }
}

const BY_CODE: Readonly<Record<string, ErrorKind>> = {
  InvalidAccessKeyId: 'unauthenticated',
  SignatureDoesNotMatch: 'unauthenticated',
  RequestTimeTooSkewed: 'unauthenticated',
  AccessDenied: 'permission_denied',
  UserSuspended: 'permission_denied',
  NoSuchBucket: 'not_found',
  NoSuchUser: 'not_found',
  BucketAlreadyExists: 'already_exists',
  BucketNotEmpty: 'failed_precondition',
  InvalidLocationConstraint: 'invalid_argument',
  TooManyBuckets: 'resource_exhausted',
  QuotaExceeded: 'resource_exhausted',
  OperationAborted: 'aborted',
  ConcurrentModification: 'aborted',
  SlowDown: 'unavailable',
  ServiceUnavailable: 'unavailable',
};

/** The connection was never made, so nothing can have happened. */
const NOT_REACHED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ENOENT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

export function translate(error: unknown, call: CallContext, words: StoreWords): StorageError {
  if (isStorageError(error)) return error;
  const options = { resource: call.resource, cause: error };
  if (call.signal.aborted)
    return new StorageError('timeout', `${call.doing}: no answer from the object store in time`, options);
  const status = httpStatus(error);
  const code = errorCode(error);
  if (status === undefined) return networkError(code, call, options);
  const kind = words.codes?.[code] ?? BY_CODE[code] ?? byStatus(status);
  const hint = words.hint(kind, code, error);
  const message = `${call.doing}: the object store answered ${status} ${code}${hint === undefined ? '' : `; ${hint}`}`;
  return new StorageError(kind, message, options);
}

/** The store's error code, or the network's. */
export function errorCode(error: unknown): string {
  const { name, code, Code } = (error ?? {}) as { name?: string; code?: string; Code?: string };
  if (httpStatus(error) !== undefined) return Code ?? name ?? 'UnknownError';
  return code ?? name ?? 'UnknownError';
}

export function httpStatus(error: unknown): number | undefined {
  if (error instanceof RefusedRequest) return error.status;
  return (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;
}

function byStatus(status: number): ErrorKind {
  if (status >= 500) return 'unavailable';
  if (status === 403) return 'permission_denied';
  if (status === 401) return 'unauthenticated';
  return 'internal';
}

function networkError(code: string, call: CallContext, options: { resource: string; cause: unknown }): StorageError {
  // TimeoutError is the HTTP handler's own bound on connecting.
  if (NOT_REACHED.has(code) || code === 'TimeoutError' || code === 'ETIMEDOUT')
    return new StorageError('unavailable', `${call.doing}: the object store cannot be reached (${code})`, options);
  const message = (options.cause as { message?: string } | null)?.message ?? '';
  if (['ECONNRESET', 'EPIPE', 'ECONNABORTED'].includes(code) || /socket hang up|aborted/.test(message)) {
    const kind = call.readOnly ? 'unavailable' : 'timeout';
    return new StorageError(kind, `${call.doing}: the connection broke before the answer (${code})`, options);
  }
  return new StorageError('internal', `${call.doing}: an answer that cannot be understood (${code})`, options);
}
