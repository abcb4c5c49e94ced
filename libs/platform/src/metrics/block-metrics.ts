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
}

const figures = new FigureSource<BlockFigures>(registry);

figures.gauges('trivet_pools', 'Pools of block volumes, by state.', 'state', f => ({
  up: f.poolsUp,
  down: f.poolsDown,
}));
figures.gauge('trivet_pool_used_ratio_max', 'Used part of the fullest pool that is up.', f => f.fullestPool);
figures.gauges('trivet_findings', 'What the audit reports and does not touch.', 'kind', f => f.findings);
figures.gauge('trivet_volumes_binned', 'Deleted volumes that can still be restored.', f => f.binnedVolumes);

export const bindBlockFigures = (read: () => Promise<BlockFigures>): void => figures.bind(read);
