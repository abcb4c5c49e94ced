import { type ArgumentsHost, Catch, Inject, Optional } from '@nestjs/common';
import { BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setOutcome } from '#csp/call-log';
import { callOf } from '#csp/csp-call';
import { errorBody, toRefusal } from '#csp/csp-errors';
import { CSP_PATHS } from '#csp/csp-paths';

/**
 * Every answer of the library that is not a success, what Fastify refuses before any handler included. It is the whole
 * application's filter for that reason, and leaves the paths of others to Nest.
 */
@Catch()
export class CspErrorFilter extends BaseExceptionFilter {
  constructor(
    @Inject(CSP_PATHS) private readonly isOurs: (url: string) => boolean,
    @Optional() host?: HttpAdapterHost,
  ) {
    super(host?.httpAdapter);
  }

  override catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    if (host.getType() !== 'http' || !this.isOurs(request.url)) {
      super.catch(error, host);
      return;
    }
    const reply = http.getResponse<FastifyReply>();
    const refusal = toRefusal(error, callOf(request)?.rules.busy);
    setOutcome(request, { refusal, error });
    reply.status(refusal.status);
    if (refusal.options.retryAfter !== undefined) reply.header('retry-after', String(refusal.options.retryAfter));
    if (refusal.message === '') reply.send();
    else reply.type('application/json; charset=utf-8').send(errorBody(refusal));
  }
}
