import { STATUS_CODES } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorKind, isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { detailOf, type ProblemDocument, RETRY_SECONDS, sendProblem } from '#protocol/problem';
import { clientFault, defect } from '#protocol/refusal';

const log = createLogger('cbt-rest');

/** Error kinds to HTTP, for the library's REST side. */
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

export interface Problem extends ProblemDocument {
  /** The field of the request that is wrong. */
  field?: string;
}

const problem = (status: number, detail: string, field?: string): Problem => ({
  type: 'about:blank',
  title: STATUS_CODES[status] ?? 'Error',
  status,
  detail: detailOf(detail),
  ...(field === undefined ? {} : { field }),
});

/** Any thrown thing as an answer; a defect is logged with the id that the answer quotes. */
export function toProblem(error: unknown): Problem {
  if (isStorageError(error) && error.kind !== 'internal')
    return problem(PROBLEM_STATUSES[error.kind], error.message, error.field);
  const fault = clientFault(error);
  if (fault !== undefined) return problem(fault, (error as Error).message);
  const { message, errorId } = defect(undefined);
  log.error({ errorId, err: error }, 'a call failed');
  return problem(500, message);
}

/** Answers of the library's REST controllers that are no success. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const found = toProblem(error);
    const { method, routeOptions } = http.getRequest<FastifyRequest>();
    log.info({ method, route: routeOptions.url, code: found.status, reason: found.detail }, 'call refused');
    const passes = found.status === 503 || (isStorageError(error) && error.kind === 'aborted');
    sendProblem(http.getResponse<FastifyReply>(), found, {
      challenge: 'Bearer',
      retryAfterSeconds: passes ? RETRY_SECONDS : undefined,
    });
  }
}
