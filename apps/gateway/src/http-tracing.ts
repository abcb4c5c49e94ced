import type { FastifyInstance } from 'fastify';
import { isTracing, readTraceparent, startSpan } from '#platform/tracing/tracing';

/** Asked every few seconds by machines, and about no work. */
const UNTRACED = new Set(['/livez', '/readyz', '/metrics']);

/**
 * A span for each request that a route takes. The header that the libraries read says from then on that they were called
 * from here, so none of them needs to know about spans.
 */
export function traceRequests(fastify: FastifyInstance): void {
  if (!isTracing()) return;
  fastify.addHook('onRequest', (request, reply, done) => {
    const { method, headers, routeOptions } = request;
    const route = routeOptions.url;
    if (route === undefined || UNTRACED.has(route)) return done();
    const span = startSpan(`${method} ${route}`, {
      kind: 'server',
      parent: readTraceparent(headers.traceparent),
      attributes: { 'http.request.method': method, 'http.route': route },
    });
    if (span) {
      headers.traceparent = span.traceparent;
      // Also when the client leaves before it has its answer.
      reply.raw.once('close', () => {
        const { statusCode, writableFinished } = reply.raw;
        span.attribute('http.response.status_code', statusCode);
        span.end(writableFinished ? (statusCode >= 500 ? String(statusCode) : undefined) : 'client_left');
      });
    }
    done();
  });
}
