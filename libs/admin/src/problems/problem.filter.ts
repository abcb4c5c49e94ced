import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { newInstance, toProblem } from '#admin/problems/problems';
import { createLogger } from '#platform/logging/log';
import { sendProblem } from '#protocol/problem';

const log = createLogger('admin');

/** Answers of the library that are no success. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    answerProblem(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }
}

/** Of anything thrown, also what Fastify refuses before a handler runs. */
export function answerProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { problem, retryAfterSeconds } = toProblem(error, newInstance());
  const { method, routeOptions } = request;
  log.info(
    { method, route: routeOptions?.url, status: problem.status, code: problem.code, instance: problem.instance },
    'call refused',
  );
  secure(reply);
  sendProblem(reply, problem, { challenge: 'Bearer realm="trivet"', retryAfterSeconds });
}

/** Of every answer of the API: nobody keeps it, frames it, or takes it for something else. */
export function secure(reply: FastifyReply): void {
  reply
    .header('cache-control', 'no-store')
    .header('x-content-type-options', 'nosniff')
    .header('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
    .header('referrer-policy', 'no-referrer');
}
