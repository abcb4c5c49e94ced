import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { FigureSource } from '#platform/metrics/figure-source';
import { inSpan, isTraced } from '#platform/tracing/tracing';

/**
 * What the appliance counts, for Prometheus. No label holds a tenant or the name of anything: their number is not ours
 * to choose. `kind` is an operation kind, `backend_kind` an adapter, `method` a method of its port.
 */
export const registry = new Registry();

const registers = [registry];

/** result: succeeded | failed | cancelled | needs_attention. Counted once, where the operation ends. */
export const operationsTotal = new Counter({
  name: 'trivet_operations_total',
  help: 'Operations that ended, by kind and result.',
  labelNames: ['kind', 'result'] as const,
  registers,
});

/** From acceptance to the end, waiting included: what a caller feels. */
export const operationDuration = new Histogram({
  name: 'trivet_operation_duration_seconds',
  help: 'Time from acceptance to the end of an operation.',
  labelNames: ['kind'] as const,
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200],
  registers,
});

export const operationsInflight = new Gauge({
  name: 'trivet_operations_inflight',
  help: 'Operations this worker runs now.',
  labelNames: ['kind'] as const,
  registers,
});

export const leaseLostTotal = new Counter({
  name: 'trivet_lease_lost_total',
  help: 'Operations this worker had to leave because its lease was gone.',
  registers,
});

export const redispatchTotal = new Counter({
  name: 'trivet_redispatch_total',
  help: 'Operations rung again by the reconciler: lost doorbell, expired lease, retry time come.',
  registers,
});

export const lostOperationsTotal = new Counter({
  name: 'trivet_operations_lost_total',
  help: 'Operations that this gateway acknowledged, and that the database does not have any more.',
  registers,
});

/** result: ok, or the StorageError kind. */
export const backendCallsTotal = new Counter({
  name: 'trivet_backend_calls_total',
  help: 'Calls to backends, by adapter, method and result.',
  labelNames: ['backend_kind', 'method', 'result'] as const,
  registers,
});

export const backendCallDuration = new Histogram({
  name: 'trivet_backend_call_duration_seconds',
  help: 'Duration of calls to backends.',
  labelNames: ['backend_kind', 'method'] as const,
  buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  registers,
});

/** figure: predicted (before the cut, from the extents) or measured. Of reflink pools: the stall of the writers. */
export const cutSeconds = new Histogram({
  name: 'trivet_snapshot_cut_seconds',
  help: 'Time that the cut of a snapshot takes, predicted and measured.',
  labelNames: ['figure'] as const,
  buckets: [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 120],
  registers,
});

export const volumeExtents = new Histogram({
  name: 'trivet_volume_extents',
  help: 'Extents of volumes, counted when a snapshot of them is taken.',
  buckets: [10, 100, 1_000, 10_000, 50_000, 100_000, 300_000, 1_000_000],
  registers,
});

/** 1 or 0 for each readiness check, as /readyz last saw it. */
export const readyCheck = new Gauge({
  name: 'trivet_ready',
  help: 'Readiness checks: 1 passes, 0 fails.',
  labelNames: ['check'] as const,
  registers,
});

const buildInfo = new Gauge({
  name: 'trivet_build_info',
  help: 'Always 1; says which process and version this is.',
  labelNames: ['app', 'version'] as const,
  registers,
});

/** What only the database knows; read when Prometheus asks. */
export interface EngineFigures {
  /** Age of the oldest operation that is due and has not ended; 0 when there is none. */
  oldestPendingSeconds: number;
  pending: number;
  needsAttention: number;
  /** That no worker has, because their backend does not answer. */
  waitingForBackend: number;
  /** Backends that somebody has heard from, by the state of their circuit. */
  circuits: { closed: number; half_open: number; open: number };
}

const engineFigures = new FigureSource<EngineFigures>(registry);
engineFigures.gauge(
  'trivet_oldest_pending_seconds',
  'Age of the oldest operation that has not ended.',
  f => f.oldestPendingSeconds,
);
engineFigures.gauge('trivet_operations_pending', 'Operations that have not ended.', f => f.pending);
engineFigures.gauge('trivet_operations_needs_attention', 'Operations that wait for a person.', f => f.needsAttention);
engineFigures.gauge(
  'trivet_operations_waiting_for_backend',
  'Operations that wait for a backend which does not answer.',
  f => f.waitingForBackend,
);
engineFigures.gauges(
  'trivet_backend_circuits',
  'Backends by the state of their circuit: closed, they answer; open, they do not; half_open, neither, and nobody asks them.',
  'state',
  f => f.circuits,
);

/** Gives the engine's gauges their source. */
export const bindEngineFigures = (read: () => Promise<EngineFigures>): void => engineFigures.bind(read);

/**
 * Of the event loop's lag, in ms. By default it is looked at a hundred times a second, whether anything happens or not; the alert is
 * about a second, which nobody misses who looks twice in it.
 */
const LAG_EVERY_MS = 500;

let processMetrics = false;

/** Starts what has a cost (event-loop and garbage-collector observers), so not at import. */
export function startProcessMetrics(app: string, version: string): void {
  buildInfo.set({ app, version }, 1);
  if (processMetrics) return;
  processMetrics = true;
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS });
}

/** Of a backend call's span. */
export const backendCallSpan = (backendKind: string, method: string) =>
  ({
    kind: 'client',
    attributes: { 'trivet.backend.kind': backendKind, 'trivet.backend.method': method },
  }) as const;

/**
 * Runs one backend call and counts it; inside an operation it is a span of its trace, too. `classify` turns its error into
 * a result.
 */
export async function countBackendCall<T>(
  backendKind: string,
  method: string,
  classify: (error: unknown) => string,
  call: () => Promise<T>,
): Promise<T> {
  const stop = backendCallDuration.startTimer({ backend_kind: backendKind, method });
  let result = 'ok';
  try {
    if (!isTraced()) return await call();
    return await inSpan(`${backendKind} ${method}`, () => backendCallSpan(backendKind, method), classify, call);
  } catch (error) {
    result = classify(error);
    throw error;
  } finally {
    stop();
    backendCallsTotal.inc({ backend_kind: backendKind, method, result });
  }
}
