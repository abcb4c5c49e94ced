import { Histogram } from 'prom-client';
import { registry } from '#platform/metrics/metrics';

/** route: the pattern, e.g. `/containers/v1/volumes/:id`, or `unknown`. Its count is the count of calls. */
export const cspCallDuration = new Histogram({
  name: 'trivet_csp_call_duration_seconds',
  help: 'Duration of CSP calls, by method, route and HTTP status.',
  labelNames: ['method', 'route', 'code'] as const,
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50],
  registers: [registry],
});
