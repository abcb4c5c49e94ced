import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type EndReason, StreamEnd } from '#cbt/stream-end';
import { type ErrorKind, isStorageError, StorageError } from '#platform/errors';
import { TenantSuspended } from '#tenancy/shut-tenants';

/**
 * Error kinds to gRPC codes, alike on all faces. Backup software takes most errors for "do a full backup", so what passes
 * must be UNAVAILABLE, and FAILED_PRECONDITION only what never will.
 */
export const GRPC_CODES = {
  invalid_argument: status.INVALID_ARGUMENT,
  not_found: status.NOT_FOUND,
  already_exists: status.ALREADY_EXISTS,
  failed_precondition: status.FAILED_PRECONDITION,
  aborted: status.ABORTED,
  resource_exhausted: status.RESOURCE_EXHAUSTED,
  out_of_range: status.OUT_OF_RANGE,
  permission_denied: status.UNAVAILABLE, // the backend refuses us, not we the caller
  unauthenticated: status.UNAVAILABLE, // likewise; a caller's bad token is BadToken
  unavailable: status.UNAVAILABLE,
  timeout: status.UNAVAILABLE, // DEADLINE_EXCEEDED is for the caller's own deadline
  unimplemented: status.UNIMPLEMENTED,
  internal: status.INTERNAL,
} satisfies Record<ErrorKind, status>;

/** RESOURCE_EXHAUSTED is also what the reset of a stream says whose caller does not even take its status. */
export const END_CODES = {
  left: status.CANCELLED,
  deadline: status.DEADLINE_EXCEEDED,
  stalled: status.RESOURCE_EXHAUSTED,
  stopping: status.UNAVAILABLE,
  closed: status.UNAVAILABLE, // suspended now is not suspended for good; its next call is told more
} satisfies Record<EndReason, status>;

/** Unknown or expired: one answer, so that nobody learns which (invariant C8). */
export class BadToken extends StorageError {
  constructor(message = 'the session token is invalid or has expired') {
    super('unauthenticated', message, { retry: 'never' });
  }
}

export interface CbtStatus {
  code: status;
  details: string;
  /** Present when the caller learns nothing but this id; the cause is logged beside it. */
  errorId?: string;
}

/** grpc-js puts the text into an HTTP/2 header: bounded, and no half of a surrogate pair. */
const MAX_DETAILS = 1_024;
const bounded = (text: string): string =>
  (text.length > MAX_DETAILS ? `${text.slice(0, MAX_DETAILS - 1)}…` : text).toWellFormed();

export function toCbtStatus(error: unknown): CbtStatus {
  if (error instanceof StreamEnd) return { code: END_CODES[error.reason], details: bounded(error.message) };
  if (error instanceof TenantSuspended) return { code: status.PERMISSION_DENIED, details: error.message };
  if (error instanceof BadToken) return { code: status.UNAUTHENTICATED, details: error.message };
  if (isStorageError(error) && error.kind !== 'internal')
    return { code: GRPC_CODES[error.kind], details: bounded(error.message || error.kind) };
  const errorId = randomUUID();
  return { code: status.INTERNAL, details: `internal error, quote ${errorId}`, errorId };
}
