import { counted } from '#platform/counted';
import { type BackendState, type PoolState, reach, registeredBackends } from '../backend-states.js';
import { adminUrl, cbtDoors, cspDoors, describeDoors } from '../doors.js';
import { Home } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { isAlive } from '../processes/process.js';
import { readState, type State } from '../state.js';
import { isReady } from '../supervisor/apps.js';
import { tgtFolders, tgtProcesses } from '../tgt-processes.js';
import { VERSION } from '../version.js';

/** What scripts read; a key is absent while its interface or part is. */
export interface StatusReport {
  state: 'ready' | 'degraded' | 'starting' | 'stopping' | 'stopped' | 'failed';
  version: string;
  home: string;
  dataOutside?: string;
  failure?: string;
  cosi?: { endpoint: string };
  csp?: { url: string; tlsUrl?: string };
  csi?: { endpoint: string };
  cbt?: { address: string; caFile: string };
  /** The API below /api/v1, and the dashboard. */
  admin?: { url: string };
  objectStore?: { endpoint: string; region: string };
  http?: { url: string };
  credentialsFile?: string;
  processes: { name: string; pid: number | null; restarts: number; state: string; reason?: string }[];
  backends: BackendState[];
  skipped: { part: string; reason: string; remedy: string }[];
}

export async function status({ json }: { json?: boolean }): Promise<void> {
  const home = Home.find();
  const state = home && readState(home);
  const report = await makeReport(home, state);
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : describe(report, home, state));
  // As service managers have it: 3 is "not running".
  process.exitCode = report.state === 'ready' ? 0 : 3;
}

async function makeReport(home: Home | undefined, state: State | undefined): Promise<StatusReport> {
  const nothing = { version: VERSION, home: home?.path ?? Home.locate(), processes: [], backends: [], skipped: [] };
  if (home === undefined || state === undefined) return { state: 'stopped', ...nothing };
  const living = isAlive(state.supervisor);
  const base = { version: state.version, home: home.path, dataOutside: state.dataOutside };
  if (!living) {
    const how = state.state === 'failed' ? 'failed' : 'stopped';
    const killed = ['ready', 'starting', 'stopping'].includes(state.state);
    const failure =
      state.failure ?? (killed ? 'the supervisor was killed; ./trivet up clears what it left' : undefined);
    return { ...nothing, ...base, state: how, failure };
  }
  const { env } = state;
  const endpoint = env.TRIVET_RGW_ENDPOINT;
  const csp = cspDoors(state);
  const cbt = cbtDoors(home, state);
  const [health, processes, backends] = await Promise.all([
    stateOf(state),
    processesOf(home, state),
    backendsOf(home, state),
  ]);
  return {
    ...base,
    state: health,
    failure: state.failure,
    ...(state.partsOnly || !env.COSI_ENDPOINT ? {} : { cosi: { endpoint: env.COSI_ENDPOINT } }),
    ...(csp ? { csp } : {}),
    ...(csp && env.TRIVET_CSI_ENDPOINT ? { csi: { endpoint: env.TRIVET_CSI_ENDPOINT } } : {}),
    ...(cbt ? { cbt } : {}),
    ...(endpoint ? { objectStore: { endpoint, region: env.TRIVET_RGW_REGION ?? 'default' } } : {}),
    ...(state.partsOnly ? {} : { admin: { url: adminUrl(state) } }),
    ...(state.partsOnly ? {} : { http: { url: `http://${env.TRIVET_HTTP_LISTEN}` } }),
    credentialsFile: home.credentialsFile,
    processes,
    backends,
    skipped: state.skipped,
  };
}

async function stateOf(state: State): Promise<StatusReport['state']> {
  if (state.state !== 'ready') return state.state;
  if (state.processes.some(row => row.state !== 'running')) return 'degraded';
  if (state.partsOnly) return 'ready';
  const pidOf = (wanted: string) => state.processes.find(({ name }) => name === wanted)?.pid;
  const ready = await Promise.all([
    isReady(state.env.TRIVET_HTTP_LISTEN, pidOf('gateway')),
    isReady(state.env.TRIVET_WORKER_METRICS_LISTEN, pidOf('worker')),
  ]);
  return ready.every(Boolean) ? 'ready' : 'degraded';
}

/** What the supervisor keeps running, and the tgtd that workers do. */
async function processesOf(home: Home, state: State): Promise<StatusReport['processes']> {
  const kept = state.processes.map(({ startTime: _startTime, ...row }) => row);
  const daemons = await tgtProcesses(tgtFolders(home, state.env));
  const shown = daemons.map(({ name, id, restarts, state: how }) => ({
    name,
    pid: how === 'gone' ? null : id.pid,
    restarts,
    state: how,
  }));
  return [...kept, ...shown];
}

/** Parts alone have no registry that anybody keeps. */
async function backendsOf(home: Home, { partsOnly, env }: State): Promise<BackendState[]> {
  const registered = partsOnly ? undefined : await registeredBackends(home);
  if (registered) return registered;
  const endpoint = env.TRIVET_RGW_ENDPOINT;
  return endpoint ? [{ name: 'rgw', kind: 'rgw', state: await reach(endpoint), capabilities: ['object'] }] : [];
}

function describe(report: StatusReport, home: Home | undefined, state: State | undefined): string {
  const lines = [`trivet ${report.version}: ${report.state}`, `  home  ${report.home}`];
  if (report.dataOutside !== undefined) lines.push(`  PostgreSQL's data  ${report.dataOutside}`);
  if (report.failure !== undefined) lines.push(`  ${report.failure}`);
  for (const { name, pid, restarts, state: how, reason } of report.processes) {
    const why = reason === undefined ? '' : `; ${reason.split('\n')[0]}`;
    lines.push(`  ${name.padEnd(12)} ${how}${pid === null ? '' : `, pid ${pid}`}, ${restarts} restarts${why}`);
  }
  for (const backend of report.backends) lines.push(...describeBackend(backend));
  if (home !== undefined && state !== undefined && report.processes.length > 0) lines.push(describeDoors(home, state));
  return `${lines.join('\n')}\n`;
}

/** Its health as page and API say it, and what waits for it. */
export function describeBackend({ name, state, reason, since, waiting, pools = [] }: BackendState): string[] {
  const seen = since === undefined ? '' : state === 'up' ? `, seen ${since}` : `, since ${since}`;
  const held = waiting ? `, ${counted(waiting, 'operation')} wait${waiting === 1 ? 's' : ''} for it` : '';
  return [
    `  backend ${name}  ${state}${seen}${held}${reason === undefined ? '' : `: ${reason}`}`,
    ...pools.map(pool => `    pool ${pool.name}  ${describePool(pool)}`),
  ];
}

function describePool({ state, reason, totalBytes, usedBytes }: PoolState): string {
  if (state === 'down') return `down: ${reason ?? 'no reason known'}`;
  const used = totalBytes === 0 ? 0 : (usedBytes / totalBytes) * 100;
  return `up, ${used.toFixed(1)} % of ${humanBytes(totalBytes)} used`;
}
