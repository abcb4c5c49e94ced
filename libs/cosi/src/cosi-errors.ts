import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type ErrorKind, isStorageError } from '#platform/errors';

/**
 * Error kinds to gRPC codes. The sidecars give up for good on INVALID_ARGUMENT, ALREADY_EXISTS, UNIMPLEMENTED and (on
 * Grant) OUT_OF_RANGE, and repeat everything else for ever: a fault that passes must never get one of those.
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

export interface CosiStatus {
  code: status;
  /** The status message. The status details of the specification stay empty: no google.rpc message is attached. */
  message: string;
  /** Present when the caller learns nothing but this id; the cause is logged beside it. */
  errorId?: string;
}

/** grpc-js puts the message into an HTTP/2 header: bounded, so that no echoed input can exceed it. */
const MAX_MESSAGE = 1024;

export function toCosiStatus(error: unknown): CosiStatus {
  if (!isStorageError(error)) {
    const errorId = randomUUID();
    return { code: status.INTERNAL, message: `internal error, quote ${errorId}`, errorId };
  }
  const text = error.message === '' ? error.kind : error.message;
  const cut = text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE - 1)}…` : text;
  // grpc-js percent-encodes it, which throws at half a character.
  const message = cut.toWellFormed();
  if (error.kind !== 'internal') return { code: GRPC_CODES[error.kind], message };
  const errorId = randomUUID();
  return { code: status.INTERNAL, message: `${message} (quote ${errorId})`, errorId };
}
