import { describe, expect, it } from 'vitest';
import '#admin/requests/call-metrics';
import '#cbt/cbt-metrics';
import '#cosi/cosi-metrics';
import '#csp/csp-metrics';
import '#platform/metrics/block-metrics';
import '#platform/metrics/takeover-metrics';
import '#platform/metrics/worker-metrics';
import { StorageError } from '#platform/errors';
import {
  bindEngineFigures,
  countBackendCall,
  operationsTotal,
  registry,
  startProcessMetrics,
} from '#platform/metrics/metrics';

const value = (text: string, line: string) =>
  text
    .split('\n')
    .find(candidate => candidate.startsWith(`${line} `))
    ?.slice(line.length + 1);

describe('the registry', () => {
  it('has every metric that alerts and dashboards use', async () => {
    startProcessMetrics('test', '1.2.3');
    startProcessMetrics('test', '1.2.3');
    operationsTotal.inc({ kind: 'bucket.create', result: 'succeeded' });
    const metrics = await registry.getMetricsAsJSON();
    const names = metrics.map(metric => metric.name);
    for (const name of [
      'trivet_operations_total',
      'trivet_operation_duration_seconds',
      'trivet_operations_inflight',
      'trivet_oldest_pending_seconds',
      'trivet_operations_pending',
      'trivet_operations_needs_attention',
      'trivet_lease_lost_total',
      'trivet_redispatch_total',
      'trivet_backend_calls_total',
      'trivet_backend_call_duration_seconds',
      'trivet_ready',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
    ]) {
      expect(names).toContain(name);
    }
    expect(value(await registry.metrics(), 'trivet_build_info{app="test",version="1.2.3"}')).toBe('1');
  });

  it('labels by nothing whose number is not ours to choose, in any room', () => {
    const ours = (registry.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[]).filter(
      ({ name }) => name.startsWith('trivet_'),
    );
    for (const room of ['admin', 'cbt', 'cosi', 'csp'])
      expect(ours.some(({ name }) => name.startsWith(`trivet_${room}_`))).toBe(true);
    expect([...new Set(ours.flatMap(({ labelNames }) => labelNames))].sort()).toEqual([
      'app',
      'backend_kind',
      'check',
      'code',
      'face',
      'figure',
      'kind',
      'method',
      'reason',
      'result',
      'route',
      'state',
      'task',
      'version',
    ]);
  });

  it('reads the engine figures once a scrape, and leaves them out when that fails', async () => {
    let reads = 0;
    bindEngineFigures(async () => {
      reads++;
      const circuits = { closed: 4, half_open: 0, open: 1 };
      return { oldestPendingSeconds: 12.5, pending: 3, needsAttention: 1, waitingForBackend: 2, circuits };
    });
    const text = await registry.metrics();
    expect(value(text, 'trivet_oldest_pending_seconds')).toBe('12.5');
    expect(value(text, 'trivet_operations_pending')).toBe('3');
    expect(value(text, 'trivet_operations_waiting_for_backend')).toBe('2');
    expect(value(text, 'trivet_backend_circuits{state="open"}')).toBe('1');
    expect(value(text, 'trivet_backend_circuits{state="half_open"}')).toBe('0');
    expect(value(text, 'trivet_operations_needs_attention')).toBe('1');
    expect(reads).toBe(1);
    bindEngineFigures(() => Promise.reject(new Error('database down')));
    const without = await registry.metrics();
    expect(value(without, 'trivet_operations_pending')).toBeUndefined();
    expect(without).toContain('trivet_operations_total');
  });
});

describe('countBackendCall', () => {
  it('counts by result and passes value and error through', async () => {
    const classify = (error: unknown) => (error as StorageError).kind;
    await expect(countBackendCall('fake', 'health', classify, async () => 7)).resolves.toBe(7);
    const down = new StorageError('unavailable', 'down');
    await expect(countBackendCall('fake', 'health', classify, () => Promise.reject(down))).rejects.toBe(down);
    const text = await registry.metrics();
    expect(value(text, 'trivet_backend_calls_total{backend_kind="fake",method="health",result="ok"}')).toBe('1');
    expect(value(text, 'trivet_backend_calls_total{backend_kind="fake",method="health",result="unavailable"}')).toBe(
      '1',
    );
    expect(value(text, 'trivet_backend_call_duration_seconds_count{backend_kind="fake",method="health"}')).toBe('2');
  });
});
