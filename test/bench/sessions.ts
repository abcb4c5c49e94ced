import { type BenchOptions, type Figure, median } from '#test/bench/measure';
import { residentMiB } from '#test/bench/resident';
import { SessionAppliance } from '#test/clusters/session-connector';
import { SessionCluster } from '#test/support/kube/session-cluster';
import { loadSessions } from '#test/support/kube/session-load';
import { until } from '#test/support/parts';

const SESSIONS = 1_000;
const SNAPSHOTS = 10_000;
const CREATORS = 8;
/** A thousand in a minute. */
const EVERY_MS = 60;
const READY_MS = 300;
const CALLS = 6;

/** A thousand session requests in a minute among 10,000 VolumeSnapshots: what a connector makes of them, as a process. */
export async function sessionFigures({ quick }: BenchOptions): Promise<Figure[]> {
  const sessions = quick ? SESSIONS / 20 : SESSIONS;
  const count = quick ? SNAPSHOTS / 20 : SNAPSHOTS;
  const appliance = await SessionAppliance.open({ logLevel: 'warn' });
  const cluster = await SessionCluster.standIn({ hasCommunity: true });
  try {
    // All of one snapshot of the gateway's: it is the cluster that has many.
    const handle = appliance.snapshots[0]!.id;
    const volume = appliance.volume.id;
    for (let n = 0; n < count; n++)
      await cluster.snapshot('apps', `s-${n}`, { handle, volume, content: `content-${n}` });
    const { process } = await appliance.connector({ cluster, name: 'bench', env: { TRIVET_LOG_LEVEL: 'warn' } });
    await until('it watches', () => cluster.api.calls.some(({ verb }) => verb === 'watch'));
    const before = residentMiB(process.pid);
    const calls = () =>
      cluster.api.calls.filter(({ user, resource }) => user.endsWith(':trivet-connector') && resource !== 'leases')
        .length;
    const callsBefore = calls();
    const snapshotOf = (n: number): string => `s-${(n * 7) % count}`;
    const { times } = await loadSessions(cluster, { sessions, creators: CREATORS, everyMs: EVERY_MS, snapshotOf });
    const each = (calls() - callsBefore) / sessions;
    const after = residentMiB(process.pid);
    const most = residentMiB(process.pid, 'VmHWM');
    const p99 = times[Math.floor(times.length * 0.99)]!;
    return [
      {
        name: `from a session request to Ready, ${sessions} of them, one each ${EVERY_MS} ms`,
        value: `median ${median(times).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
        limit: `median < ${READY_MS} ms`,
        baseline: '',
        ok: median(times) < READY_MS,
      },
      {
        name: 'calls to the API server for each request, the webhook included',
        value: each.toFixed(2),
        limit: `< ${CALLS}`,
        baseline: '',
        ok: each < CALLS,
      },
      {
        name: `memory of the connector with sessions, ${count} VolumeSnapshots in its cluster`,
        value: `${after.toFixed(0)} MiB after them, ${most.toFixed(0)} MiB at most`,
        limit: '',
        baseline: `${before.toFixed(0)} MiB before`,
      },
    ];
  } finally {
    await appliance.close();
    await cluster.close();
  }
}
