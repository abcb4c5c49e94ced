import { setTimeout as delay } from 'node:timers/promises';
import { counted } from '#platform/counted';
import { type BackendState, type PoolState, reach, registeredBackends } from '../backend-states.js';
import { adminUrl, cbtDoors, cspDoors, describeDoors } from '../doors.js';
import { Home } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { isAlive } from '../processes/process.js';
import { readState, type State } from '../state.js';
import { whyNotReady } from '../supervisor/apps.js';
import { tgtFolders, tgtProcesses } from '../tgt-processes.js';
import { VERSION } from '../version.js';

/** What scripts read; a key is absent while its interface or part is. */
export interface StatusReport {
  /** unsupervised: the supervisor was killed, and what it started runs on. */
  state: 'ready' | 'degraded' | 'unsupervised' | 'starting' | 'stopping' | 'stopped' | 'failed';
  /** Why it is degraded, a line each. */
  doubts?: string[];
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

const PATIENCE_MS = 10_000;
const LOOK_AGAIN_MS = 500;
const UNSUPERVISED =
  'the supervisor was killed, and nothing starts these again when they end; ./trivet up ends them and begins anew, ./trivet down ends them';

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
  const left = living ? undefined : await stillRunning(home, state);
  if (left?.length === 0) {
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
  const [unready, processes, { backends, unread }] = await Promise.all([
    living ? doubtsOf(state) : [],
    left ?? processesOf(home, state),
    backendsOf(home, state),
  ]);
  const doubts = [...unready, ...(unread === undefined ? [] : [`backends and pools: ${unread}`])];
  return {
    ...base,
    state: !living ? 'unsupervised' : state.state === 'ready' && doubts.length > 0 ? 'degraded' : state.state,
    failure: living ? state.failure : UNSUPERVISED,
    ...(doubts.length > 0 ? { doubts } : {}),
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

/** Of a process that the supervisor starts again its own words, of another one why it is not ready after a second look. */
async function doubtsOf({ state, processes, partsOnly, env }: State): Promise<string[]> {
  if (state !== 'ready') return [];
  const doors = { gateway: env.TRIVET_HTTP_LISTEN, worker: env.TRIVET_WORKER_METRICS_LISTEN };
  const told = await Promise.all(
    processes.map(async ({ name, pid, state: how, reason }) => {
      if (how !== 'running') return `${name}: ${how}${reason === undefined ? '' : `, ${reason.split('\n')[0]}`}`;
      if (partsOnly || !(name === 'gateway' || name === 'worker')) return undefined;
      const why = await lookAgain(ms => whyNotReady(doors[name], pid, ms));
      return why === undefined ? undefined : `${name}: ${why}`;
    }),
  );
  return told.filter(doubt => doubt !== undefined);
}

/** A process that is only slow, as all are on a busy machine, is not in doubt. */
export async function lookAgain(
  look: (ms: number) => Promise<string | undefined>,
  patienceMs = PATIENCE_MS,
): Promise<string | undefined> {
  for (const end = Date.now() + patienceMs; ; await delay(LOOK_AGAIN_MS)) {
    const why = await look(Math.max(LOOK_AGAIN_MS, end - Date.now()));
    if (why === undefined || Date.now() + LOOK_AGAIN_MS >= end) return why;
  }
}

/** What a killed supervisor left, and workers' tgtd. */
async function stillRunning(home: Home, state: State): Promise<StatusReport['processes']> {
  const alive = state.processes.filter(({ pid, startTime }) => pid !== null && isAlive({ pid, startTime: startTime! }));
  const shown = await processesOf(home, { ...state, processes: alive });
  return shown.filter(({ pid }) => pid !== null);
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
async function backendsOf(
  home: Home,
  { partsOnly, env, skipped }: State,
): Promise<{ backends: BackendState[]; unread?: string }> {
  const registered = partsOnly ? undefined : await registeredBackends(home);
  if (Array.isArray(registered)) return { backends: registered.map(backend => withoutItsPart(backend, skipped)) };
  const endpoint = env.TRIVET_RGW_ENDPOINT;
  const found = endpoint && { name: 'rgw', kind: 'rgw', state: await reach(endpoint), capabilities: ['object'] };
  return { backends: found ? [found] : [], ...(registered === undefined ? {} : { unread: registered }) };
}

/** The registry has what was last seen of a store that is not started today, and at its address may be another's. */
export function withoutItsPart(backend: BackendState, skipped: State['skipped']): BackendState {
  const part = skipped.find(
    ({ part }) => part === backend.name && backend.kind === part && backend.tenant === undefined,
  );
  if (part === undefined) return backend;
  const { since: _since, ...rest } = backend;
  return { ...rest, state: 'down', reason: `it is not started: ${part.reason.split('\n')[0]}` };
}

function describe(report: StatusReport, home: Home | undefined, state: State | undefined): string {
  const lines = [`trivet ${report.version}: ${report.state}`, `  home  ${report.home}`];
  if (report.dataOutside !== undefined) lines.push(`  PostgreSQL's data  ${report.dataOutside}`);
  if (report.failure !== undefined) lines.push(`  ${report.failure}`);
  for (const doubt of report.doubts ?? []) lines.push(`  ${doubt}`);
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
