/**
 * tgtd as a process: one for each tenant and set of portals of a pool (invariant I4), since CHAP accounts and portals belong to a tgtd.
 *
 * It is started in a session of its own and outlives this process: the data path must not notice that a gateway or
 * worker restarts. Whoever comes next finds it by the record in its folder, or, when the starter was killed before it
 * wrote one, by its arguments in /proc. That one daemon runs for a socket is tgtd's own promise: it locks a file.
 *
 * Three things that tgtd does otherwise are kept away here. Without a portal that it can open it listens on port 3260 of
 * all addresses: so it starts with a free port of the loopback, and gets its portals afterwards. A file that it opens
 * anew is number 0 for some instants: so its standard input can be read only, and a write that goes astray fails instead
 * of being acknowledged. It ignores SIGTERM (I5).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DaemonRef } from '#backends/exporter';
import { withFileLock } from '#backends/linux/file-lock';
import { addAddress, isHostAddress, type MovingAddress } from '#backends/linux/moving-address';
import { argumentsOf, findProcesses, inspectProcess, type ProcessId, signalProcess } from '#backends/linux/process-id';
import { DaemonFolder } from '#backends/tgt/daemon-folder';
import { DaemonLease } from '#backends/tgt/daemon-lease';
import { canonicalPortal, splitPortal } from '#backends/tgt/portals';
import { endConnections } from '#backends/tgt/sessions';
import { isTgtError, TgtClient } from '#backends/tgt/tgt-client';
import {
  deletePortal,
  deleteSystem,
  deleteTarget,
  newPortal,
  showPortals,
  showSystem,
  showTargets,
} from '#backends/tgt/tgt-request';
import { parsePortals, parseTargets } from '#backends/tgt/tgt-show';
import { homeMark } from '#platform/config/config';
import { isStorageError, StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';

const PROGRAM = 'tgtd';
const SEARCH_PATH = '/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin';
/** Threads that do the I/O of one unit; with tgt's 16 a thousand units exceed what a cgroup usually admits. */
const THREADS_PER_UNIT = 4;
const START_MS = 10_000;
/** A group's cut stops the daemon for less, and continues it itself (invariant F4). */
const LEFT_STOPPED_MS = 5_000;
const PING_MS = 2_000;
const POLL_MS = 20;
/** Another worker of this host sends initiators on from there until it hears who has the pool. */
const STANDBY_MS = 3_000;
/** tgtd writes a line for each attempt. */
const AGAIN_MS = 200;
const EXIT_MS = 5_000;

export interface RunningDaemon {
  instance: string;
  pid: number;
  client: TgtClient;
  folder: DaemonFolder;
}

/** Of pools that any host may serve, one at a time. */
export interface ClusterPortals {
  /** By daemon. */
  sets(pool: string): readonly (readonly string[])[];
  /** Those of the daemon's portals that move with the pool; the others are addresses of hosts, each of which opens its own. */
  moving(pool: string, nth: number): readonly MovingAddress[];
}

export class TgtDaemons {
  /** @param cluster absent: its pools are at this host alone, and need no lease */
  constructor(
    private readonly root: string,
    private readonly cluster?: ClusterPortals,
  ) {}

  /** Throws where this host may not serve the pool (now). */
  requireLease(folder: DaemonFolder): void {
    if (this.cluster) new DaemonLease(folder).require();
  }

  folder(ref: Pick<DaemonRef, 'tenantId' | 'pool' | 'nth'>): DaemonFolder {
    return DaemonFolder.of(this.root, ref);
  }

  /** Those that the pool had before it was given fewer sets of portals. */
  beyond({ tenantId, pool, of = 1 }: Pick<DaemonRef, 'tenantId' | 'pool' | 'of'>): DaemonRef[] {
    const found: DaemonRef[] = [];
    for (let nth = of; existsSync(this.folder({ tenantId, pool, nth }).path); nth++)
      found.push({ tenantId, pool, nth, portals: [] });
    return found;
  }

  /** Whether daemons can be started here at all. */
  check(): void {
    const found = SEARCH_PATH.split(':').some(folder => isExecutable(join(folder, PROGRAM)));
    if (!found) throw new StorageError('unavailable', 'tgtd is not installed (Debian package tgt)', { retry: 'later' });
  }

  /** Undefined while it does not run. Without effect. */
  async find(ref: DaemonRef): Promise<RunningDaemon | undefined> {
    const folder = this.folder(ref);
    const id = await findDaemon(folder);
    return id && running(folder, id);
  }

  async require(ref: DaemonRef): Promise<RunningDaemon> {
    const daemon = await this.find(ref);
    if (!daemon) throw new StorageError('unavailable', `tgtd of pool ${ref.pool} does not run`);
    return daemon;
  }

  async ensure(ref: DaemonRef, signal: LeaseSignal): Promise<RunningDaemon> {
    const folder = this.folder(ref);
    // What they serve the first one serves from now on.
    if (!ref.nth) for (const one of this.beyond(ref)) await this.stop(one, signal);
    await folder.prepare();
    return locked(folder, signal, async () => {
      await folder.boundLog();
      this.requireLease(folder);
      let daemon = await this.find(ref);
      if (daemon && !(await isUsable(daemon, signal))) daemon = undefined;
      if (!daemon) {
        mayChange(signal);
        this.requireLease(folder);
      }
      daemon ??= await start(folder, ref, signal);
      const client = this.#leased(folder, daemon.client, signal);
      await usePortals(client, await this.#portalsHere(ref), this.cluster ? STANDBY_MS : 0, signal);
      return daemon;
    });
  }

  async #portalsHere(ref: DaemonRef): Promise<readonly string[]> {
    if (!this.cluster) return ref.portals;
    const moving = this.cluster.moving(ref.pool, ref.nth ?? 0);
    for (const address of moving) {
      this.requireLease(this.folder(ref));
      await addAddress(address);
    }
    const here = ref.portals.filter(portal => isHostAddress(splitPortal(portal).address));
    if (here.length > 0) return here;
    throw new StorageError(
      'unavailable',
      `pool ${ref.pool}: none of its portals (${ref.portals.join(', ')}) is at an address of this storage host`,
    );
  }

  /** For what belongs to the daemon and to no target: its lock keeps others away, and the lease whoever stood still. */
  #leased(folder: DaemonFolder, client: TgtClient, signal: LeaseSignal): TgtClient {
    return client.guarded(async () => {
      mayChange(signal);
      this.requireLease(folder);
    });
  }

  /** At once, whoever has its lock; verified. */
  async kill(ref: DaemonRef): Promise<void> {
    for (const id of await findDaemons(this.folder(ref))) await kill(id);
  }

  /** Targets and sessions end with it. @param told how, while nobody else can end or start it */
  stop(ref: DaemonRef, signal: LeaseSignal, told?: (how: Stopped) => Promise<void>): Promise<Stopped> {
    return stop(this.folder(ref), signal, told);
  }

  /** Whatever was started below this root, by whom and for which tenant ever. Resolves to how many there were. */
  async stopAll(signal: LeaseSignal): Promise<number> {
    const folders = await DaemonFolder.existing(this.root);
    const stopped = await Promise.all(folders.map(folder => stop(folder, signal)));
    return stopped.filter(how => how === 'ended' || how === 'killed').length;
  }
}

/** `ended`: by itself, with all units closed. `dead`: it was before, and nobody had noticed. */
type Stopped = 'absent' | 'ended' | 'killed' | 'dead';

async function stop(
  folder: DaemonFolder,
  signal: LeaseSignal,
  told?: (how: Stopped) => Promise<void>,
): Promise<Stopped> {
  if (!told && (await folder.read()) === undefined && (await findDaemon(folder)) === undefined) return 'absent';
  await folder.prepare();
  return locked(folder, signal, async () => {
    const id = await findDaemon(folder);
    mayChange(signal);
    let stopped: Stopped = (await folder.read()) === undefined ? 'absent' : 'dead';
    if (id) {
      await signalProcess(id, 'SIGCONT');
      const quits = await quit(leased(running(folder, id).client, signal), signal).then(
        () => true,
        () => false,
      );
      mayChange(signal);
      stopped = (await isGone(id, EXIT_MS)) && quits ? 'ended' : 'killed';
      if (stopped === 'killed') await kill(id);
    }
    await told?.(stopped);
    for (const name of ['daemon.json', 'state', 'ceph.conf', 'keyring', 's.0', 's.0.lock']) {
      await rm(join(folder.path, name), { recursive: true, force: true });
    }
    return stopped;
  });
}

const running = (folder: DaemonFolder, id: ProcessId): RunningDaemon => ({
  instance: `${id.pid}-${id.startTime}`,
  pid: id.pid,
  client: new TgtClient(folder.socket),
  folder,
});

/** For what belongs to the daemon and to no target: its lock keeps others away, and the lease whoever stood still. */
const leased = (client: TgtClient, signal: LeaseSignal): TgtClient =>
  client.guarded(async () => {
    mayChange(signal);
  });

/** The lock of a daemon's folder; a caller whose time is up meanwhile has done nothing. */
export function locked<T>(folder: DaemonFolder, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return withFileLock(folder.lock, signal, work).catch(error => {
    if (isStorageError(error) || !signal.aborted) throw error;
    throw new StorageError('timeout', `tgtd of pool ${folder.pool}: not done in time`, { cause: error });
  });
}

const isDaemonOf = (folder: DaemonFolder, argv: readonly string[]): boolean =>
  argv.includes(folder.mark) && /(^|\/)tgtd$/.test(argv[0] ?? '');

async function findDaemon(folder: DaemonFolder): Promise<ProcessId | undefined> {
  const isOurs = (argv: readonly string[]): boolean => isDaemonOf(folder, argv);
  const record = await folder.read();
  if (record && isOurs(await argumentsOf(record.pid))) {
    const found = await inspectProcess(record.pid);
    if (found?.id.startTime === record.startTime) return found.id;
  }
  const [id] = await findDaemons(folder);
  return id;
}

/** By their arguments alone. More than one: while the first of them still ends. */
const findDaemons = (folder: DaemonFolder): Promise<ProcessId[]> => findProcesses(argv => isDaemonOf(folder, argv));

/** False when nothing can be asked of it any more and it was ended. One that only does not answer is left alone. */
async function isUsable(daemon: RunningDaemon, signal: AbortSignal): Promise<boolean> {
  const begin = Date.now();
  for (;;) {
    const found = await inspectProcess(daemon.pid);
    if (!found) return false;
    if (found.stopped) {
      if (Date.now() < begin + LEFT_STOPPED_MS) await pause(signal);
      else await wake(daemon, found.id, signal);
      continue;
    }
    try {
      await daemon.client.ask(showSystem(), signal, PING_MS);
      return true;
    } catch (error) {
      if (!isStorageError(error)) throw error;
      const stoppedMeanwhile = (await inspectProcess(daemon.pid))?.stopped ?? true;
      if (error.kind === 'timeout' && (signal.aborted || !stoppedMeanwhile)) throw error;
      if (error.kind === 'unavailable' && Date.now() > begin + START_MS) {
        // Its socket is gone: it serves, but nobody can ever withdraw anything from it.
        await kill(found.id);
        return false;
      }
      await pause(signal);
    }
  }
}

/** What others asked while it was stopped is done first: each request takes tgtd two rounds. */
async function wake({ client }: RunningDaemon, id: ProcessId, signal: AbortSignal): Promise<void> {
  await signalProcess(id, 'SIGCONT');
  for (let round = 0; round < 3; round++) await client.ask(showSystem(), signal);
}

async function start(folder: DaemonFolder, ref: DaemonRef, signal: AbortSignal): Promise<RunningDaemon> {
  await rm(folder.state, { recursive: true, force: true });
  await mkdir(folder.state, { mode: 0o700 });
  await rm(folder.socket, { force: true });
  const child = await launch(folder);
  let ended: string | undefined;
  child.once('error', error => {
    ended = error.message;
  });
  child.once('exit', () => {
    ended ??= 'it ended';
  });
  child.unref();
  const client = new TgtClient(folder.socket);
  for (const end = Date.now() + START_MS; ; ) {
    const answers = await client.ask(showSystem(), signal, PING_MS).then(
      () => true,
      () => false,
    );
    if (answers) break;
    if (signal.aborted || ended !== undefined || Date.now() > end) {
      if (ended === undefined) child.kill('SIGKILL');
      const reason = ended === undefined ? 'no answer' : (await folder.lastLogLine()) || ended;
      throw new StorageError('unavailable', `tgtd of pool ${folder.pool} does not start: ${reason}`);
    }
    await delay(POLL_MS);
  }
  const id = await findDaemon(folder);
  if (!id) throw new StorageError('unavailable', `tgtd of pool ${folder.pool} ended at once`);
  const before = await folder.read();
  await folder.write({
    tenantId: ref.tenantId,
    pool: ref.pool,
    ...id,
    restarts: before ? (before.restarts ?? 0) + 1 : 0,
  });
  return running(folder, id);
}

async function launch(folder: DaemonFolder): Promise<ChildProcess> {
  const files: FileHandle[] = [];
  try {
    const input = await open('/dev/null', constants.O_RDONLY);
    files.push(input);
    const log = await open(folder.log, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND, 0o600);
    files.push(log);
    const args = ['-f', '-C', '0', '-t', String(THREADS_PER_UNIT), '-p', folder.mark, '--iscsi', 'portal=127.0.0.1:0'];
    const child = spawn(PROGRAM, args, {
      cwd: '/',
      env: { PATH: SEARCH_PATH, LC_ALL: 'C', TGT_IPC_SOCKET: folder.socketBase, ...homeMark() },
      detached: true,
      stdio: [input.fd, log.fd, log.fd],
    });
    return child;
  } finally {
    for (const file of files) await file.close();
  }
}

/** Exactly these portals; sessions through others stay. */
async function usePortals(
  client: TgtClient,
  portals: readonly string[],
  patienceMs: number,
  signal: AbortSignal,
): Promise<void> {
  const end = Date.now() + patienceMs;
  const wanted = portals.map(canonicalPortal);
  const open = parsePortals(await client.ask(showPortals(), signal));
  for (const portal of wanted) {
    if (open.includes(portal)) continue;
    let isOpened = await client.tell(newPortal(portal), signal, 'invalid request');
    for (; !isOpened && Date.now() < end; isOpened = await client.tell(newPortal(portal), signal, 'invalid request'))
      await pause(signal, AGAIN_MS);
    if (isOpened) continue;
    throw new StorageError('unavailable', `portal ${portal} cannot be opened: taken, or not an address of this host`);
  }
  for (const portal of open)
    if (!wanted.includes(portal)) await client.tell(deletePortal(portal), signal, 'invalid request');
}

async function quit(client: TgtClient, signal: AbortSignal): Promise<void> {
  for (const { tid, initiators } of parseTargets(await client.ask(showTargets(), signal, PING_MS))) {
    await endConnections(client, tid, initiators, () => true, signal);
    await client.ask(deleteTarget(tid), signal);
  }
  await client.ask(deleteSystem(), signal).catch(error => {
    if (!isTgtError(error)) throw error;
  });
}

async function kill(id: ProcessId): Promise<void> {
  await signalProcess(id, 'SIGKILL');
  if (!(await isGone(id, EXIT_MS))) throw new StorageError('unavailable', `tgtd ${id.pid} does not end by SIGKILL`);
}

async function isGone(id: ProcessId, ms: number): Promise<boolean> {
  for (const end = Date.now() + ms; ; ) {
    if ((await inspectProcess(id.pid))?.id.startTime !== id.startTime) return true;
    if (Date.now() > end) return false;
    await delay(POLL_MS);
  }
}

async function pause(signal: AbortSignal, ms = POLL_MS): Promise<void> {
  await delay(ms, undefined, { signal }).catch(cause => {
    throw new StorageError('timeout', 'tgtd: not done in time', { cause });
  });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
