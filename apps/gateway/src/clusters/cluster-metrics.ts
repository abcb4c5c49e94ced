import { Counter, Gauge } from 'prom-client';
import { FigureSource } from '#platform/metrics/figure-source';
import { registry } from '#platform/metrics/metrics';
import type { ClusterFigures } from '#tenancy/clusters/clusters';

/** Why a connection of a cluster, or a join token, was refused. */
export type RefusalReason =
  | 'no_certificate'
  | 'foreign_certificate'
  | 'not_yet_valid'
  | 'expired'
  | 'rotated'
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

const figures = new FigureSource<ClusterFigures>(registry);

figures.gauges(
  'trivet_clusters',
  'Clusters that were not revoked, by state: up; silent.',
  'state',
  ({ up, silent }) => ({
    up,
    silent,
  }),
);
figures.gauge(
  'trivet_clusters_ending',
  'Clusters whose certificates end within ten days, so that renewals have failed for as long.',
  ({ ending }) => ending,
);

/** Of all tenants, as any gateway that serves clusters reads them in the database. */
export const bindClusterFigures = (read: () => Promise<ClusterFigures>): void => figures.bind(read);
