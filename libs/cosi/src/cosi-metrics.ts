import { Histogram } from 'prom-client';
import { registry } from '#platform/metrics/metrics';

/** method: `v1alpha2.DriverCreateBucket`; code: the gRPC code's name. Its count is the count of calls. */
export const cosiCallDuration = new Histogram({
  name: 'trivet_cosi_call_duration_seconds',
  help: 'Duration of COSI calls, by method and gRPC code.',
  labelNames: ['method', 'code'] as const,
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25],
  registers: [registry],
});
