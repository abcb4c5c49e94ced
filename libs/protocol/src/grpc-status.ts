import { status } from '@grpc/grpc-js';
import { type ErrorKind, isStorageError } from '#platform/errors';
import { bounded, defect } from '#protocol/refusal';

/**
 * Error kinds to gRPC codes. COSI's sidecars give up for good on INVALID_ARGUMENT, ALREADY_EXISTS, UNIMPLEMENTED and (on
 * Grant) OUT_OF_RANGE, and repeat everything else for ever: a fault that passes must never get one of those. Backup software
 * takes most errors for "do a full backup": what passes must be UNAVAILABLE for it, and FAILED_PRECONDITION only what never will.
 */
export const GRPC_CODES = {
  invalid_argument: status.INVALID_ARGUMENT,
  not_found: status.NOT_FOUND,
  already_exists: status.ALREADY_EXISTS,
  failed_precondition: status.FAILED_PRECONDITION,
  aborted: status.ABORTED,
  resource_exhausted: status.RESOURCE_EXHAUSTED,
  out_of_range: status.OUT_OF_RANGE,
  permission_denied: status.PERMISSION_DENIED,
  unauthenticated: status.UNAUTHENTICATED,
  unavailable: status.UNAVAILABLE,
  timeout: status.UNAVAILABLE, // unknown effect; DEADLINE_EXCEEDED is for the caller's own deadline
  unimplemented: status.UNIMPLEMENTED,
  internal: status.INTERNAL,
} satisfies Record<ErrorKind, status>;

export interface GrpcStatus {
  code: status;
  /** The status message. The status details of google.rpc stay empty. */
  details: string;
  /** Of a defect: the id that the caller is given to quote. The cause is logged beside it. */
  errorId?: string;
}

/** grpc-js puts the text into an HTTP/2 header. */
const MAX_DETAILS = 1_024;

/** Any thrown thing as a status. `codes`: where the callers of a service need another one; `tells`: what we say of a defect, too. */
export function grpcStatus(
  error: unknown,
  { codes = GRPC_CODES, tells = true }: { codes?: Record<ErrorKind, status>; tells?: boolean } = {},
): GrpcStatus {
  if (isStorageError(error) && error.kind !== 'internal')
    return statusOf(codes[error.kind], error.message || error.kind);
  const { message, errorId } = defect(tells ? error : undefined);
  return { ...statusOf(status.INTERNAL, message), errorId };
}

export const statusOf = (code: status, text: string): GrpcStatus => ({ code, details: bounded(text, MAX_DETAILS) });
