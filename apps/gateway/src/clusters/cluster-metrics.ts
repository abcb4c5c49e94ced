import { Counter, Gauge } from 'prom-client';
import { registry } from '#platform/metrics/metrics';

/** Why a connection of a cluster, or a join token, was refused. */
export type RefusalReason =
  | 'no_certificate'
  | 'foreign_certificate'
  | 'expired'
  | 'revoked'
  | 'other_tenant'
  | 'not_allowed'
  | 'not_open'
  | 'join_token';

export const clusterRefusalsTotal = new Counter({
  name: 'trivet_cluster_refusals_total',
  help: 'Connections of clusters and join tokens that were refused, by reason.',
  labelNames: ['reason'] as const,
  registers: [registry],
});

export const clusterConnections = new Gauge({
  name: 'trivet_cluster_connections',
  help: 'Connections of clusters that are open at this gateway.',
  registers: [registry],
});
