import { randomUUID } from 'node:crypto';
import type { Problem } from '#admin/contract/common';
import { type ErrorKind, isStorageError, type StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { detailOf, RETRY_SECONDS } from '#protocol/problem';
import { clientFault } from '#protocol/refusal';
import { CodeNeeded } from '#tenancy/logins/password-logins';
import { LoginThrottled } from '#tenancy/logins/session-directory';

const log = createLogger('admin');

interface ProblemKind {
  status: number;
  title: string;
}

/** Each code has a page in docs/problems.md. */
export const PROBLEMS = {
  invalid_argument: { status: 400, title: 'The request is wrong' },
  unauthenticated: { status: 401, title: 'Not logged in' },
  second_factor_required: { status: 401, title: 'A code is needed' },
  permission_denied: { status: 403, title: 'Not allowed' },
  not_found: { status: 404, title: 'There is no such object' },
  method_not_allowed: { status: 405, title: 'The path has no such method' },
  already_exists: { status: 409, title: 'There is such an object already' },
  failed_precondition: { status: 409, title: 'Its state forbids it' },
  aborted: { status: 409, title: 'Another operation is under way' },
  idempotency_key_reused: { status: 409, title: 'The Idempotency-Key belongs to another request' },
  precondition_failed: { status: 412, title: 'It was changed meanwhile' },
  request_timeout: { status: 408, title: 'The request did not come to its end' },
  payload_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The body is not JSON' },
  out_of_range: { status: 400, title: 'Out of range' },
  precondition_required: { status: 428, title: 'If-Match is missing' },
  too_many_logins: { status: 429, title: 'Too many failed logins' },
  too_many_streams: { status: 429, title: 'Too many event streams' },
  headers_too_large: { status: 431, title: 'The address or the headers are too long' },
  resource_exhausted: { status: 507, title: 'A quota or the capacity is used up' },
  internal: { status: 500, title: 'A defect' },
  unimplemented: { status: 501, title: 'The backend cannot do it' },
  unavailable: { status: 503, title: 'Not now' },
  timeout: { status: 503, title: 'No answer in time' },
} as const satisfies Record<ErrorKind, ProblemKind> & Record<string, ProblemKind>;
export type ProblemCode = keyof typeof PROBLEMS;

export interface FieldError {
  /** JSON pointer: `/body/name`, `/query/limit`, `/path/tenant`, `/header/if-match`. */
  pointer: string;
  message: string;
}

/** A refusal of the library itself, where no kind of StorageError says enough. */
export class Refusal extends Error {
  constructor(
    readonly code: ProblemCode,
    message: string,
    readonly errors?: readonly FieldError[],
    readonly operationId?: string,
  ) {
    super(message);
  }
}

/** What Fastify and Nest refuse before a handler runs. */
const BY_STATUS: Readonly<Record<number, ProblemCode>> = {
  400: 'invalid_argument',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
};
/** Where Fastify's own words do not say what to do. */
const INSTEAD: Partial<Record<ProblemCode, string>> = {
  unsupported_media_type: 'the body must be JSON, sent with the header content-type: application/json',
};

export interface Answer {
  problem: Problem;
  retryAfterSeconds?: number;
}

export const problemOf = (code: ProblemCode, detail: string, instance: string): Problem => ({
  type: `/docs/problems#${code}`,
  title: PROBLEMS[code].title,
  status: PROBLEMS[code].status,
  detail: detailOf(detail),
  instance,
  code,
  retryable: false,
  operation: null,
});

/** Any thrown thing as an answer; a defect is logged with the id that the answer quotes. */
export function toProblem(error: unknown, instance: string): Answer {
  const made = (code: ProblemCode, detail: string, more: Partial<Problem> = {}): Problem => ({
    ...problemOf(code, detail, instance),
    ...more,
  });
  if (error instanceof LoginThrottled)
    return {
      problem: made('too_many_logins', error.message, { retryable: true }),
      retryAfterSeconds: error.retryAfterSeconds,
    };
  if (error instanceof CodeNeeded) return { problem: made('second_factor_required', error.message) };
  if (error instanceof Refusal)
    return {
      problem: made(error.code, error.message, {
        ...(error.errors ? { errors: [...error.errors] } : {}),
        ...(error.operationId ? { operation: operationPath(error.operationId) } : {}),
      }),
    };
  if (isStorageError(error) && error.kind !== 'internal') {
    const retryable = error.retry === 'later';
    const problem = made(error.kind, error.message, { retryable, ...fieldOf(error), ...operationOf(error) });
    return retryable ? { problem, retryAfterSeconds: RETRY_SECONDS } : { problem };
  }
  const said = BY_STATUS[clientFault(error) ?? 0];
  if (said) return { problem: made(said, INSTEAD[said] ?? (error as Error).message) };
  log.error({ instance, err: error }, 'a call failed');
  const about = isStorageError(error) ? operationOf(error) : {};
  return { problem: made('internal', `internal error; quote ${instance}`, { retryable: true, ...about }) };
}

const operationOf = ({ operation }: StorageError): Partial<Problem> =>
  operation ? { operation: operationPath(operation.id) } : {};
const fieldOf = ({ field, message }: StorageError): Partial<Problem> =>
  field === undefined ? {} : { errors: [{ pointer: `/body/${field}`, message }] };

export const newInstance = (): string => `urn:uuid:${randomUUID()}`;
export const operationPath = (id: string): string => `/api/v1/operations/${id}`;
