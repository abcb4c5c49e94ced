import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorKind, isStorageError } from '#platform/errors';
import { createLogger } from '#platform/log';

const log = createLogger('cbt-rest');

/** Error kinds to HTTP, for the room's REST side. */
export const PROBLEM_STATUSES = {
  invalid_argument: 422,
  not_found: 404,
  already_exists: 409,
  failed_precondition: 409,
  aborted: 409,
  resource_exhausted: 429,
  out_of_range: 416,
  permission_denied: 403,
  unauthenticated: 401,
  unavailable: 503,
  timeout: 503,
  unimplemented: 501,
  internal: 500,
} satisfies Record<ErrorKind, number>;

/** RFC 9457. */
export interface Problem {
  type: 'about:blank';
  title: string;
  status: number;
  detail: string;
  /** The field of the request that is wrong. */
  field?: string;
}

const RETRY_SECONDS = 2;
const MAX_DETAIL = 2_048;

const problem = (status: number, detail: string, field?: string): Problem => ({
  type: 'about:blank',
  title: STATUS_CODES[status] ?? 'Error',
  status,
  detail: detail.length > MAX_DETAIL ? `${detail.slice(0, MAX_DETAIL - 1).toWellFormed()}…` : detail,
  ...(field === undefined ? {} : { field }),
});

/** Any thrown thing as an answer; a defect is logged with the id that the answer quotes. */
export function toProblem(error: unknown): Problem {
  if (isStorageError(error) && error.kind !== 'internal')
    return problem(PROBLEM_STATUSES[error.kind], error.message, error.field);
  const { status, statusCode } = (error ?? {}) as { status?: unknown; statusCode?: unknown };
  const said = typeof status === 'number' ? status : statusCode;
  if (error instanceof Error && typeof said === 'number' && said >= 400 && said < 500)
    return problem(said, error.message);
  const errorId = randomUUID();
  log.error({ errorId, err: error }, 'a call failed');
  return problem(500, `internal error, quote ${errorId}`);
}

/** Answers of the room's REST controllers that are no success. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    const found = toProblem(error);
    const { method, routeOptions } = http.getRequest<FastifyRequest>();
    log.info({ method, route: routeOptions.url, code: found.status, reason: found.detail }, 'call refused');
    if (found.status === 401) reply.header('www-authenticate', 'Bearer');
    if (found.status === 503 || (isStorageError(error) && error.kind === 'aborted'))
      reply.header('retry-after', String(RETRY_SECONDS));
    reply.status(found.status).type('application/problem+json; charset=utf-8').send(found);
  }
}
