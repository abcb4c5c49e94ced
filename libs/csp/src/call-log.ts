import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { callOf, isRead } from '#csp/csp-call';
import type { CspRefusal } from '#csp/csp-errors';
import { cspCallDuration } from '#csp/csp-metrics';
import { CSP_OPTIONS, type CspOptions } from '#csp/csp-options';
import { CSP_PATHS } from '#csp/csp-paths';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { type CallLogger, logCall } from '#protocol/call-log';

/** How a call ended that was no success. */
export interface Outcome {
  refusal: CspRefusal;
  error: unknown;
}

const OUTCOME = Symbol('Outcome');
type WithOutcome = FastifyRequest & { [OUTCOME]?: Outcome };

export const setOutcome = (request: FastifyRequest, outcome: Outcome): void => {
  (request as WithOutcome)[OUTCOME] = outcome;
};

const MAX_LOGGED_ID = 100;

/**
 * One line and one measurement for each call. The line holds nothing of a body. Reads that went well are `debug`: the
 * driver repeats them all day.
 */
@Injectable()
export class CallLog implements OnModuleInit {
  private readonly log: CallLogger;

  constructor(
    @Inject(CSP_OPTIONS) { log }: CspOptions,
    @Inject(CSP_PATHS) private readonly isOurs: (url: string) => boolean,
    private readonly host: HttpAdapterHost,
  ) {
    this.log = log ?? createLogger('csp');
  }

  onModuleInit(): void {
    const fastify = this.host.httpAdapter.getInstance<FastifyInstance>();
    fastify.addHook('onResponse', (request, reply, done) => {
      if (this.isOurs(request.url)) this.write(request, reply);
      done();
    });
  }

  private write(request: FastifyRequest, reply: FastifyReply): void {
    const { method } = request;
    const route = request.routeOptions.url ?? 'unknown';
    const code = reply.statusCode;
    cspCallDuration.observe({ method, route, code: String(code) }, reply.elapsedTime / 1000);
    const outcome = (request as WithOutcome)[OUTCOME];
    const call = callOf(request);
    const { id } = (request.params ?? {}) as { id?: string };
    const fields = {
      method,
      route,
      code,
      id: id?.slice(0, MAX_LOGGED_ID),
      tenantId: call?.session.tenantId,
      username: call?.session.username,
      operationId: call?.operationId ?? (isStorageError(outcome?.error) ? outcome.error.operation?.id : undefined),
      durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
    };
    const refused = outcome && {
      reason: outcome.refusal.message || 'no valid token',
      errorId: outcome.refusal.options.errorId,
      cause: outcome.error,
      ours: outcome.refusal.status >= 500,
    };
    logCall(this.log, 'csp call', fields, { refused, quiet: isRead(method) });
  }
}
