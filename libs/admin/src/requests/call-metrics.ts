import { Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { Histogram } from 'prom-client';
import { ROOT } from '#admin/requests/serves';
import { registry } from '#platform/metrics/metrics';

/** route: the pattern, e.g. `/api/v1/tenants/:tenant`. Its count is the count of calls. */
export const adminCallDuration = new Histogram({
  name: 'trivet_admin_call_duration_seconds',
  help: 'Duration of calls of the admin API, by method, route and HTTP status.',
  labelNames: ['method', 'route', 'code'] as const,
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 125],
  registers: [registry],
});

/** Measures each call of the library; streams, which last as long as somebody listens, are none. */
@Injectable()
export class CallMetrics implements OnModuleInit {
  constructor(private readonly host: HttpAdapterHost) {}

  onModuleInit(): void {
    const fastify = this.host.httpAdapter.getInstance<FastifyInstance>();
    fastify.addHook('onResponse', (request, reply, done) => {
      const route = request.routeOptions.url;
      const streams = String(reply.getHeader('content-type') ?? '').startsWith('text/event-stream');
      if (route?.startsWith(`/${ROOT}/`) && !streams) {
        const labels = { method: request.method, route, code: String(reply.statusCode) };
        adminCallDuration.observe(labels, reply.elapsedTime / 1_000);
      }
      done();
    });
  }
}
