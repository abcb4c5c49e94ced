import { FigureSource } from '#platform/metrics/figure-source';
import { registry } from '#platform/metrics/metrics';

/** Of all tenants: a label holds no name, so `trivet pool list` says which pool it is. */
export interface BlockFigures {
  poolsUp: number;
  poolsDown: number;
  /** Of the fullest pool that is up, as a part of 1. */
  fullestPool: number;
  /** Kind of finding to how many there are. */
  findings: Readonly<Record<string, number>>;
  binnedVolumes: number;
  /** Volumes that are published, of as many as the pool may have published; of the pool that is nearest to it, as a part of 1. */
  mostPublished: number;
}

const figures = new FigureSource<BlockFigures>(registry);

figures.gauges('trivet_pools', 'Pools of block volumes, by state.', 'state', f => ({
  up: f.poolsUp,
  down: f.poolsDown,
}));
figures.gauge('trivet_pool_used_ratio_max', 'Used part of the fullest pool that is up.', f => f.fullestPool);
figures.gauge(
  'trivet_pool_published_ratio_max',
  'Published volumes of the pool that is nearest to the most that its exporter serves, as a part of that.',
  f => f.mostPublished,
);
figures.gauges('trivet_findings', 'What the audit reports and does not touch.', 'kind', f => f.findings);
figures.gauge('trivet_volumes_binned', 'Deleted volumes that can still be restored.', f => f.binnedVolumes);

/** Of this process alone: what the kernel has not answered it. */
export interface FileCallFigures {
  inFlight: number;
  silent: number;
  oldestSeconds: number;
}

const calls = new FigureSource<FileCallFigures>(registry);

calls.gauge('trivet_file_calls', 'Calls of this process to pools that the kernel has not answered.', f => f.inFlight);
calls.gauge('trivet_file_call_oldest_seconds', 'How long the oldest of them has been there.', f => f.oldestSeconds);
calls.gauge('trivet_file_systems_silent', 'File systems of pools that do not answer this process.', f => f.silent);

export const bindFileCallFigures = (read: () => Promise<FileCallFigures>): void => calls.bind(read);
export const bindBlockFigures = (read: () => Promise<BlockFigures>): void => figures.bind(read);
