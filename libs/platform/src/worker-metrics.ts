import { FigureSource } from '#platform/figure-source';
import { registry } from '#platform/metrics';

/** Of all workers and queues, as any worker reads them in the database. */
export interface WorkerFigures {
  up: number;
  /** Silent, and not ended in order. */
  lost: number;
  pausedQueues: number;
}

const figures = new FigureSource<WorkerFigures>(registry);

figures.gauges('trivet_workers', 'Workers that said something within the last day, by state.', 'state', f => ({
  up: f.up,
  lost: f.lost,
}));
figures.gauge('trivet_queues_paused', 'Classes of operations that somebody paused.', f => f.pausedQueues);

export const bindWorkerFigures = (read: () => Promise<WorkerFigures>): void => figures.bind(read);
