import { STATUS_CODES } from 'node:http';
import { inCspWords } from '#csp/csp-words';
import { type ErrorKind, isStorageError, type StorageError } from '#platform/errors';
import { bounded, clientFault, defect } from '#protocol/refusal';
import { LoginThrottled } from '#tenancy/logins/session-directory';

/**
 * Error kinds to HTTP. Chosen so that the driver's coming mapping of statuses to gRPC codes (docs/callers.md#statuses) gives
 * what CSI wants. 401 is missing on purpose: the driver logs in again on it without end, so it means a bad token and
 * nothing else. 502 and 504 are missing because the driver does not read their bodies any more than that of 503.
 */
export const HTTP_STATUSES = {
  invalid_argument: 400,
  not_found: 404,
  already_exists: 409,
  failed_precondition: 409,
  aborted: 409,
  resource_exhausted: 507,
  out_of_range: 400,
  permission_denied: 403,
  unauthenticated: 503, // the backend refuses us, not we the caller
  unavailable: 503,
  timeout: 503,
  unimplemented: 501,
  internal: 500,
} satisfies Record<ErrorKind, number>;

/** A call that is busy beyond its deadline answers one of these, by route (invariant E8). */
export type BusyStatus = 409 | 500 | 503;

/** What the driver singles out in the text of a refusal for want of room. */
const NO_ROOM = 'insufficient storage space';
/** The specification's sentence before the reason of a conflict. */
const CONFLICT = 'The request could not be completed due to a conflict.';
const BUSY_RETRY_SECONDS = 2;
const MAX_MESSAGE = 2_048;

/** An answer other than success, worded by the library. */
export class CspRefusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly options: { retryAfter?: number; errorId?: string } = {},
  ) {
    super(message);
    this.name = 'CspRefusal';
  }
}

/** Answered by 401 without a body: with one, the driver calls its own successful repeat a failure (docs/callers.md#logins). */
export class BadToken extends CspRefusal {
  constructor() {
    super(401, '');
  }
}

/** The specification's answer to what cannot be changed or is not known. */
export const unexpectedArgument = (name: string): CspRefusal =>
  new CspRefusal(400, `The request could not be understood by the server. Unexpected argument '${name}'.`);

/**
 * For deletions whose callers repeat them until they succeed, without a look before: HPE's library takes 404 for a failure
 * there (common-host-libs, DeleteVolumeGroup and DeleteSnapshotGroup).
 */
export function unlessGone(error: unknown): void {
  if (!isStorageError(error) || error.kind !== 'not_found') throw error;
}

export interface ErrorBody {
  errors: { code: string; message: string }[];
}

export const errorBody = ({ status, message }: CspRefusal): ErrorBody => ({
  errors: [{ code: STATUS_CODES[status] ?? String(status), message }],
});

/** Any thrown thing as an answer. */
export function toRefusal(error: unknown, busy: BusyStatus = 409): CspRefusal {
  if (error instanceof CspRefusal) return error;
  if (isStorageError(error)) return fromStorage(inCspWords(error), busy);
  const status = clientFault(error);
  if (status !== undefined) return new CspRefusal(status, bounded((error as Error).message, MAX_MESSAGE));
  return ofDefect(error);
}

function fromStorage(error: StorageError, busy: BusyStatus): CspRefusal {
  const message = bounded(error.message || error.kind, MAX_MESSAGE);
  if (error instanceof LoginThrottled) return new CspRefusal(429, message, { retryAfter: error.retryAfterSeconds });
  switch (error.kind) {
    case 'aborted':
      return new CspRefusal(busy, message, { retryAfter: BUSY_RETRY_SECONDS });
    case 'failed_precondition':
      // Nothing new is made there: the driver takes 409 for a volume that exists, and reads no text of a 503.
      if (error.field === 'backend') return new CspRefusal(507, message);
      return new CspRefusal(
        409,
        error.field === 'clones' && !message.startsWith(CONFLICT) ? `${CONFLICT} ${message}` : message,
      );
    case 'resource_exhausted':
      // Too many operations under way is no want of room, and passes.
      if (error.retry === 'later') return new CspRefusal(507, message, { retryAfter: BUSY_RETRY_SECONDS });
      return new CspRefusal(507, message.includes(NO_ROOM) ? message : `${message} (${NO_ROOM})`);
    case 'internal':
      return ofDefect(error);
    default: {
      const status = HTTP_STATUSES[error.kind];
      return new CspRefusal(status, message, status === 503 ? { retryAfter: BUSY_RETRY_SECONDS } : {});
    }
  }
}

function ofDefect(error: unknown): CspRefusal {
  const { message, errorId } = defect(error);
  return new CspRefusal(500, bounded(message, MAX_MESSAGE), { errorId });
}
