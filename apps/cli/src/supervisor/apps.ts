import { spawn } from 'node:child_process';
import { closeSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { EXIT_CONFIG, HOME_MARK } from '#platform/config/config';
import { programFile } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import { surroundings } from '../environment.js';
import { type Home, LauncherError } from '../home.js';
import { explainEnd } from '../processes/log-file.js';
import type { ProcessSpec } from '../processes/supervised-process.js';

const STOP_MARGIN_MS = 5_000;
type Settings = Readonly<Record<string, string | undefined>>;

/** Variables that carry a password; only files of mode 0600 hold them. */
export const isSecret = (name: string): boolean => /^TRIVET_(DATABASE\w*|REDIS)_URL$/.test(name);

/** Migrations alone are the owner. */
const withoutOwner = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([variable]) => variable !== 'TRIVET_DATABASE_OWNER_URL'));

/** @param given of the caller, which `env` has as well */
export function appSpec(
  name: 'gateway' | 'worker',
  home: Home,
  env: Readonly<Record<string, string>>,
  given: Settings,
): ProcessSpec {
  const listen = name === 'gateway' ? env.TRIVET_HTTP_LISTEN : env.TRIVET_WORKER_METRICS_LISTEN;
  return {
    name,
    command: process.execPath,
    args: [...NODE_FLAGS, programFile(name)],
    env: { ...surroundings(), ...withoutOwner(env), [HOME_MARK]: home.path },
    cwd: home.path,
    logFile: home.log(name),
    stopSignal: 'SIGTERM',
    stopGraceMs: Number(env.TRIVET_SHUTDOWN_MS ?? 10_000) + STOP_MARGIN_MS,
    readyMs: 60_000,
    ports: chosenPorts(name, env, given),
    ready: pid => isReady(listen, pid),
  };
}

const DOORS = {
  gateway: ['TRIVET_HTTP_LISTEN', 'TRIVET_HTTPS_LISTEN', 'TRIVET_CBT_LISTEN'],
  worker: ['TRIVET_WORKER_METRICS_LISTEN'],
} as const;

/** Those that were chosen for it: what the caller gave stays, whoever sits there. */
function chosenPorts(name: keyof typeof DOORS, env: Settings, given: Settings): number[] {
  const chosen = DOORS[name].filter(variable => !given[variable]).map(variable => env[variable]);
  return chosen.flatMap(door => (door === undefined ? [] : [Number(door.slice(door.lastIndexOf(':') + 1))]));
}

export const isReady = async (listen: string | undefined, pid: number | null | undefined): Promise<boolean> =>
  (await whyNotReady(listen, pid)) === undefined;

/** At an address that was taken another appliance may answer, and be ready. Undefined: it is that process, and ready. */
export async function whyNotReady(
  listen: string | undefined,
  pid: number | null | undefined,
  ms = 2_000,
): Promise<string | undefined> {
  const ask = (path: string) => fetch(`http://${listen}${path}`, { signal: AbortSignal.timeout(ms) });
  try {
    const [ready, live] = await Promise.all([ask('/readyz'), ask('/livez')]);
    const said = (await ready.text()).trim();
    if (((await live.json()) as { pid?: unknown }).pid !== pid) return `another process answers at ${listen}`;
    return ready.status === 200 ? undefined : `not ready: ${said}`;
  } catch (error) {
    const { name, cause, message } = error as Error & { cause?: { code?: string } };
    if (name === 'TimeoutError') return `no answer at ${listen} within ${Math.ceil(ms / 1_000)} s`;
    return `no answer at ${listen}: ${cause?.code ?? message}`;
  }
}

/** Brings the database to this release in a process of its own, as the only one that has the owner's login. */
export async function migrate(
  home: Home,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  if (!env.TRIVET_DATABASE_OWNER_URL) {
    say('TRIVET_DATABASE_OWNER_URL is not set: migrations are not run');
    return;
  }
  const begin = performance.now();
  const logFile = home.log('migrate');
  const log = openSync(logFile, 'a', 0o600);
  const logStart = statSync(logFile).size;
  const code = await new Promise<number | null>((resolve, reject) => {
    const child = spawn(process.execPath, [programFile('trivet'), 'migrate'], {
      cwd: home.path,
      env: { ...surroundings(), ...env, [HOME_MARK]: home.path },
      stdio: ['ignore', log, log],
      signal,
    });
    child.once('exit', resolve);
    child.once('error', reject);
  }).finally(() => closeSync(log));
  if (code !== 0) {
    const why = explainEnd(`migrate ended with code ${code}`, code, logFile, logStart);
    throw new LauncherError(why, code === EXIT_CONFIG ? code : 1);
  }
  say(`database is migrated (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
}

const quoted = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;

/** For `. .trivet/env` in a POSIX shell, in which programs of the packages then find the Node that they are made for. */
export function environmentFile(env: Readonly<Record<string, string>>): string {
  const path = `PATH=${quoted(dirname(process.execPath))}:$PATH`;
  const lines = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `# Settings of this appliance; holds passwords.\n${path}\n${lines.sort().join('\n')}\n`;
}

/** The settings back from environmentFile's text. */
export function readEnvironmentFile(text: string): Record<string, string> {
  const lines = [...text.matchAll(/^export (\w+)='((?:[^']|'\\'')*)'$/gm)];
  return Object.fromEntries(
    lines.map(([, name, value]) => [name as string, (value as string).replaceAll("'\\''", "'")]),
  );
}
