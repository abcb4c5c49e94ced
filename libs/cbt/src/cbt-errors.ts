import { status } from '@grpc/grpc-js';
import { type EndReason, StreamEnd } from '#cbt/stream-end';
import { StorageError } from '#platform/errors';
import { GRPC_CODES, type GrpcStatus, grpcStatus, statusOf } from '#protocol/grpc-status';
import { TenantSuspended } from '#tenancy/tenants/suspended-tenants';

/** As COSI's, but that a backend which refuses us has not refused the caller: its bad token is BadToken. */
const CODES = { ...GRPC_CODES, permission_denied: status.UNAVAILABLE, unauthenticated: status.UNAVAILABLE };

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

export function toCbtStatus(error: unknown): GrpcStatus {
  if (error instanceof StreamEnd) return statusOf(END_CODES[error.reason], error.message);
  if (error instanceof TenantSuspended) return statusOf(status.PERMISSION_DENIED, error.message);
  if (error instanceof BadToken) return statusOf(status.UNAUTHENTICATED, error.message);
  return grpcStatus(error, { codes: CODES, tells: false });
}
