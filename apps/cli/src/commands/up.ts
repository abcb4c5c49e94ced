import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readSync, statfsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '#platform/config/config';
import { loadKeyring } from '#platform/crypto/kek';
import { EXIT } from '../api/api-error.js';
import { describeDoors } from '../doors.js';
import { environment, settings } from '../environment.js';
import { Home, LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { cephRbdPart } from '../parts/ceph-rbd.js';
import { rotateClosed } from '../processes/log-file.js';
import { isAlive } from '../processes/process.js';
import { livingState, readState, type State } from '../state.js';
import { Appliance } from '../supervisor/appliance.js';
import { takeHome } from '../supervisor/home-lock.js';
import { VERSION } from '../version.js';

interface UpOptions {
  detach?: boolean;
  partsOnly?: boolean;
  /** Names of parts, with commas. */
  with?: string;
  noInstall?: boolean;
  /** Only for the launcher itself: this process is the supervisor that --detach leaves behind. */
  behind?: boolean;
}

const MAKING_BYTES = 128 * 2 ** 20;
/** PostgreSQL writes its log in pieces of 16 MiB. */
const RUNNING_BYTES = 16 * 2 ** 20;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

export async function up(options: UpOptions): Promise<void> {
  const given = givenSettings();
  const home = Home.open();
  const lock = await takeHome(home);
  if (lock === undefined) {
    if (options.behind) throw new LauncherError(`another supervisor of ${home.path} was faster`);
    return joinFirst(home, options);
  }
  try {
    requireKeys(home, given.TRIVET_KEK_FILE);
    requireRoom(home, given.TRIVET_DATABASE_URL === undefined && !existsSync(home.environmentFile));
    if (!options.detach) await supervise(home, given, options);
  } catch (error) {
    note(home, error as Error);
    throw error;
  }
  if (options.detach) {
    lock.close();
    await detach(home, options);
  }
}

/** For doctor, who comes later. */
function note(home: Home, { message }: Error): void {
  try {
    home.noteFailure(message);
  } catch {
    // The disk is full: that is what is said.
  }
}

/**
 * The caller's settings, checked before anything runs. An address given as a file is read here: the supervisor has to know
 * which parts are somewhere else, and each process which logins it may have.
 */
function givenSettings(): Record<string, string> {
  const given = settings();
  const ownDatabase = given.TRIVET_DATABASE_URL ?? given.TRIVET_DATABASE_URL_FILE;
  const config: Record<string, unknown> = loadConfig(ownDatabase ? ['TRIVET_DATABASE_ENGINE_URL'] : [], given);
  for (const variable of Object.keys(given)) {
    if (!/_URL_FILE$/.test(variable)) continue;
    delete given[variable];
    const name = variable.slice(0, -'_FILE'.length);
    const address = config[name];
    if (typeof address === 'string') given[name] = address;
  }
  return given;
}

/** Gateway and worker would say the same, but after all parts have started. Only a home without a key file gets one. */
function requireKeys(home: Home, given: string | undefined): void {
  // They run in the home.
  if (given) loadKeyring(resolve(home.path, given));
  else home.requireKek();
  if (!given && existsSync(home.kekFile)) loadKeyring(home.kekFile);
}

/** On a full disk each part would end in words of its own. @param makes a PostgreSQL is to be made */
function requireRoom({ path }: Home, makes: boolean): void {
  const { bavail, bsize } = statfsSync(path);
  const needs = makes ? MAKING_BYTES : RUNNING_BYTES;
  if (bavail * bsize >= needs) return;
  const sizes = `${humanBytes(bavail * bsize)} free, and up needs ${humanBytes(needs)}`;
  const remedy = 'make room, or set TRIVET_HOME to a folder on another disk';
  throw new LauncherError(`${path}: the disk is full: ${sizes}; ${remedy}`, EXIT.full);
}

async function supervise(home: Home, given: Record<string, string>, options: UpOptions): Promise<void> {
  const appliance = new Appliance(home, {
    given,
    partsOnly: options.partsOnly ?? false,
    install: !options.noInstall,
    more: options.with === undefined ? [] : [cephRbdPart],
    version: VERSION,
    say,
  });
  const asked = new Promise<void>(fulfil => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => fulfil());
  });
  // The terminal is gone, the appliance is not.
  process.on('SIGHUP', () => {});
  const begin = performance.now();
  const started = appliance.start();
  started.catch(() => {});
  const first = await Promise.race([started.then(() => 'ready' as const), asked.then(() => 'asked' as const)]);
  if (first === 'ready') {
    home.noteFailure(undefined);
    say(`ready after ${((performance.now() - begin) / 1000).toFixed(1)} s`);
    if (!options.behind) {
      say(describeDoors(home, readState(home) as State));
      say('Ctrl-C stops it.');
    }
    await asked;
  }
  say('stopping');
  const remains = await appliance.stop();
  await started.catch(() => {});
  for (const line of remains) say(`left: ${line}`);
  say('stopped');
  process.exit(remains.length === 0 ? 0 : 1);
}

/** Starts the supervisor as a process of its own, and shows what it says until it is ready. */
async function detach(home: Home, options: UpOptions): Promise<void> {
  const logFile = home.log('supervisor');
  rotateClosed(logFile);
  const log = openSync(logFile, 'a', 0o600);
  const from = statSync(logFile).size;
  const args = [
    'up',
    '--behind',
    ...(options.partsOnly ? ['--parts-only'] : []),
    ...(options.noInstall ? ['--no-install'] : []),
    ...(options.with === undefined ? [] : ['--with', options.with]),
  ];
  const child = spawn(process.execPath, [process.argv[1] as string, ...args], {
    cwd: '/',
    env: { ...environment, TRIVET_HOME: home.path },
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  child.unref();
  let ended: number | undefined;
  child.once('exit', code => {
    ended = code ?? 1;
  });
  const follow = follower(logFile, from);
  const interrupted = (): void => {
    child.kill('SIGTERM');
  };
  process.once('SIGINT', interrupted);
  process.once('SIGTERM', interrupted);
  const ready = await waitUntilReady(home, child.pid ?? 0, () => ended !== undefined, follow);
  if (ready === undefined) {
    throw new LauncherError(`up failed; ${logFile} has the whole story`, ended || 1);
  }
  say(describeDoors(home, ready));
}

/** A second `up` waits for the first to be ready, and shows its doors. */
async function joinFirst(home: Home, options: UpOptions): Promise<void> {
  const living = livingState(home);
  if (living === undefined) throw new LauncherError(`the supervisor of ${home.path} has just ended`);
  if (living.partsOnly && !options.partsOnly) {
    throw new LauncherError(`${home.path} runs with --parts-only; ./trivet down, then up`);
  }
  // Its env file names the addresses that are taken by the gateway that runs.
  if (!living.partsOnly && options.partsOnly) {
    const remedy = 'for one of your own: ./trivet down, then up --parts-only';
    throw new LauncherError(`${home.path} runs as a whole, gateway and worker included; ${remedy}`);
  }
  say(`already up, supervisor ${living.supervisor.pid}`);
  const ready = await waitUntilReady(
    home,
    living.supervisor.pid,
    () => !isAlive(living.supervisor),
    () => {},
  );
  if (ready === undefined)
    throw new LauncherError(`what runs did not become ready: ${readState(home)?.failure ?? `see ${home.file('log')}`}`);
  if (options.with !== undefined && !ready.env.TRIVET_RBD_MONITORS)
    throw new LauncherError(`${home.path} runs without ${options.with}; ./trivet down, then up --with ${options.with}`);
  say(describeDoors(home, ready));
}

async function waitUntilReady(
  home: Home,
  pid: number,
  isOver: () => boolean,
  follow: () => void,
): Promise<State | undefined> {
  for (;;) {
    const over = isOver();
    follow();
    const state = readState(home);
    if (state?.supervisor.pid === pid && state.state === 'ready') return state;
    if (over) return undefined;
    await delay(100);
  }
}

/** Prints what a log file has got since the last call. */
function follower(path: string, from: number): () => void {
  let position = from;
  return () => {
    if (!existsSync(path)) return;
    const { size } = statSync(path);
    if (size <= position) return;
    const buffer = Buffer.alloc(size - position);
    const file = openSync(path, 'r');
    try {
      position += readSync(file, buffer, 0, buffer.length, position);
    } finally {
      closeSync(file);
    }
    process.stdout.write(buffer);
  };
}
