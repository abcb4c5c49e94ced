import { BadRequestException, NotFoundException } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import { answerProblem } from '#admin/problems/problem.filter';
import { isOfAdmin } from '#admin/requests/early-refusals';
import { listenError } from '#platform/health/health-http';
import { NestLogger } from '#platform/logging/nest-logger';
import type { ProcessContext } from '#platform/process/boot';
import { CONNECTION_LIMITS, refuseConnection, serverOptions } from './connection-limits.js';
import { gatewayModule, type HttpParts } from './gateway.module.js';
import { GatewayTasks } from './gateway-tasks.js';
import { traceRequests } from './http-tracing.js';
import { listenHttps } from './https.js';

/** Volumes and buckets are described in a few lines; nobody needs a large body here. */
const BODY_LIMIT = 1024 * 1024;

const HAS_LONG_NUMBER = /\d{16}/;

/**
 * Of drivers whole numbers beyond 2^53 come as text, because sizes are kept to the byte. The admin API has text for those, and
 * a number where it wants text is none.
 */
function parseJson(text: string, url: string): unknown {
  if (isOfAdmin(url) || !HAS_LONG_NUMBER.test(text)) return JSON.parse(text);
  const exact = (_key: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')
      ? context?.source
      : value;
  return JSON.parse(text, exact);
}

/**
 * Clients send `content-type: application/json` with an empty body on DELETE and GET, and Fastify's own parser answers
 * that with 400. Other types have no parser: 415.
 */
function parseJsonBodies(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body.length === 0) return done(null, undefined);
    try {
      return done(null, parseJson(body.toString(), request.url));
    } catch {
      return done(new BadRequestException('the body is not valid JSON'), undefined);
    }
  });
}

/** Any id that fits into a request line is looked up, and not found. */
const MAX_PARAMETER = 16 * 1024;

const errors = (code: string, message: string) => ({ errors: [{ code, message }] });

/** A path that cannot be decoded names nothing. */
const refuseUrl: FastifyServerOptions['frameworkErrors'] = (_error, request, reply) => {
  const error = new NotFoundException('there is no such path');
  if (isOfAdmin(request.url)) return answerProblem(error, request as FastifyRequest, reply as FastifyReply);
  (reply as FastifyReply).status(404).send(errors('Not Found', 'there is no such path'));
};

/** The application without a socket, as the boot test uses it too. */
export async function createHttp(parts: HttpParts, limits = CONNECTION_LIMITS): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT,
    forceCloseConnections: 'idle',
    http: serverOptions(limits),
    requestTimeout: limits.requestMs,
    // Contexts are pasted before paths as they stand, with and without a slash at their end.
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: MAX_PARAMETER },
    frameworkErrors: refuseUrl,
    clientErrorHandler: refuseConnection,
  });
  const app = await NestFactory.create<NestFastifyApplication>(gatewayModule(parts), adapter, {
    logger: new NestLogger(),
    abortOnError: false,
  });
  traceRequests(app.getHttpAdapter().getInstance() as unknown as FastifyInstance);
  await app.init();
  parseJsonBodies(app.getHttpAdapter().getInstance() as unknown as FastifyInstance);
  return app;
}

export async function listenHttp(
  app: NestFastifyApplication,
  { config, log, shutdown }: Pick<ProcessContext, 'config' | 'log' | 'shutdown'>,
): Promise<void> {
  shutdown.add('http', () => app.close());
  const listen = config.TRIVET_HTTP_LISTEN;
  try {
    await app.listen(listen.port, listen.host);
  } catch (error) {
    throw listenError('TRIVET_HTTP_LISTEN', listen, error);
  }
  log.info({ address: `${listen.host}:${listen.port}` }, 'HTTP is served');
  const { routing } = app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
  await listenHttps(routing, { config, log, shutdown }, app.get(GatewayTasks));
}
