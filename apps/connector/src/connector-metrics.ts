import { Counter, Gauge } from 'prom-client';
import { registry } from '#platform/metrics/metrics';

const registers = [registry];

export const connectorConnections = new Gauge({
  name: 'trivet_connector_connections',
  help: 'Connections of sidecars that this connector carries.',
  registers,
});

/** no_gateway: none of them took it. too_many: more than a socket carries. */
export const connectorRefusalsTotal = new Counter({
  name: 'trivet_connector_refusals_total',
  help: 'Connections of sidecars that were not carried, by reason.',
  labelNames: ['reason'] as const,
  registers,
});

/** health: ready, unknown or not_ready. */
export const connectorGateways = new Gauge({
  name: 'trivet_connector_gateways',
  help: 'Gateways of this connector, by health.',
  labelNames: ['health'] as const,
  registers,
});

export const connectorCertificateEnd = new Gauge({
  name: 'trivet_connector_certificate_end_timestamp_seconds',
  help: 'When the certificate of this connector ends.',
  registers,
});

export const connectorMetadataRefusalsTotal = new Counter({
  name: 'trivet_connector_metadata_refusals_total',
  help: 'Calls with tokens of Kubernetes for changed blocks that this connector refused, by gRPC code.',
  labelNames: ['code'] as const,
  registers,
});
