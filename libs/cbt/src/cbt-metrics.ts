import { Counter, Gauge, Histogram } from 'prom-client';
import { registry } from '#platform/metrics/metrics';

const registers = [registry];

/** draft, csi, sidecar (snapshotmetadata.SnapshotMetadata) or rest. */
export type ServiceName = 'draft' | 'csi' | 'sidecar' | 'rest';

export const cbtStreamsOpen = new Gauge({
  name: 'trivet_cbt_streams_open',
  help: 'Streams of changed blocks under way.',
  labelNames: ['face'] as const,
  registers,
});

export const cbtRangesTotal = new Counter({
  name: 'trivet_cbt_ranges_sent_total',
  help: 'Ranges sent in streams of changed blocks.',
  labelNames: ['face'] as const,
  registers,
});

export const cbtBytesTotal = new Counter({
  name: 'trivet_cbt_bytes_sent_total',
  help: 'Bytes of messages sent in streams of changed blocks.',
  labelNames: ['face'] as const,
  registers,
});

/** method: allocated | delta; code: the gRPC code, on rest as well. Its count is the count of streams. */
export const cbtStreamDuration = new Histogram({
  name: 'trivet_cbt_stream_duration_seconds',
  help: 'Duration of streams of changed blocks, by face, method and gRPC code.',
  labelNames: ['face', 'method', 'code'] as const,
  buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600],
  registers,
});
