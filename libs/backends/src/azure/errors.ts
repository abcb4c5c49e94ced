/**
 * What the Blob service, its SDK and the network answer, as StorageErrors. A call whose connection broke after it was sent
 * may have taken effect: that is `timeout`, and not `unavailable`, unless it only read. The SDK's own error has the request
 * with its headers in it, and goes no further than this file.
 */
import { type ErrorKind, isStorageError, StorageError } from '#platform/errors';

export interface CallContext {
  /** For people: what we were doing, e.g. `create container photos`. */
  doing: string;
  resource: string;
  /** The call cannot have changed anything. */
  readOnly: boolean;
  signal: AbortSignal;
}

const BY_CODE: Readonly<Record<string, ErrorKind>> = {
  AuthenticationFailed: 'unauthenticated',
  InvalidAuthenticationInfo: 'unauthenticated',
  NoAuthenticationInformation: 'unauthenticated',
  AuthorizationFailure: 'permission_denied',
  KeyBasedAuthenticationNotPermitted: 'permission_denied',
  AccountIsDisabled: 'permission_denied',
  ContainerNotFound: 'not_found',
  ContainerAlreadyExists: 'already_exists',
  ContainerBeingDeleted: 'unavailable',
  InvalidResourceName: 'invalid_argument',
  OutOfRangeInput: 'invalid_argument',
  InvalidMetadata: 'invalid_argument',
  AccountBeingCreated: 'unavailable',
  ServerBusy: 'unavailable',
  OperationTimedOut: 'timeout',
};

const HINTS: Readonly<Record<string, string>> = {
  AuthenticationFailed: 'check the account’s name and key, and the clocks: Azure refuses beyond 15 minutes',
  AuthorizationFailure: 'a network rule of the storage account keeps this machine out',
  KeyBasedAuthenticationNotPermitted: 'the storage account forbids its keys: allow "storage account key access"',
  ContainerBeingDeleted: 'a container of this name is still being deleted, which takes half a minute and more',
};

/** The connection was never made, so nothing can have happened. */
const NOT_REACHED = new Set([
  ...[
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'EHOSTDOWN',
    'ENETUNREACH',
    'EADDRNOTAVAIL',
    'ETIMEDOUT',
  ],
  ...['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'],
  ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID'],
]);

export function translate(error: unknown, call: CallContext): StorageError {
  if (isStorageError(error)) return error;
  const status = httpStatus(error);
  const code = errorCode(error);
  const options = { resource: call.resource, cause: new Error(`${status ?? 'no answer'} ${code}`) };
  if (call.signal.aborted)
    return new StorageError('timeout', `${call.doing}: no answer from the object store in time`, options);
  if (status === undefined) return networkError(code, call, options);
  const kind = BY_CODE[code] ?? byStatus(status);
  const hint = HINTS[code] === undefined ? '' : `; ${HINTS[code]}`;
  return new StorageError(kind, `${call.doing}: the object store answered ${status} ${code}${hint}`, options);
}

/** The service's own code, or the network's. */
export function errorCode(error: unknown): string {
  const { details, code, name, message } = (error ?? {}) as {
    details?: { errorCode?: string };
    code?: string;
    name?: string;
    message?: string;
  };
  // Azurite's code for a wrong key is Azure's for a network rule; the words are those of Azure.
  if (code === 'AuthorizationFailure' && message?.startsWith('Server failed to authenticate'))
    return 'AuthenticationFailed';
  return details?.errorCode ?? code ?? name ?? 'UnknownError';
}

export function httpStatus(error: unknown): number | undefined {
  return (error as { statusCode?: number } | null)?.statusCode;
}

function byStatus(status: number): ErrorKind {
  if (status >= 500 || status === 429) return 'unavailable';
  if (status === 403) return 'permission_denied';
  if (status === 401) return 'unauthenticated';
  if (status === 404) return 'not_found';
  if (status === 409 || status === 412) return 'failed_precondition';
  return 'internal';
}

function networkError(code: string, call: CallContext, options: { resource: string; cause: Error }): StorageError {
  if (NOT_REACHED.has(code) || code === 'TimeoutError')
    return new StorageError('unavailable', `${call.doing}: the object store cannot be reached (${code})`, options);
  if (['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'REQUEST_SEND_ERROR'].includes(code)) {
    const kind = call.readOnly ? 'unavailable' : 'timeout';
    return new StorageError(kind, `${call.doing}: the connection broke before the answer (${code})`, options);
  }
  return new StorageError('internal', `${call.doing}: an answer that cannot be understood (${code})`, options);
}
