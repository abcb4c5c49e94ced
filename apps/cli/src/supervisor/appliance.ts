import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { HOME_MARK, loadConfig } from '#platform/config/config';
import { oidcSettings } from '#platform/config/oidc-settings';
import { loadKeyring } from '#platform/crypto/kek';
import { programFile } from '#platform/package-root';
import { ensurePassword } from '../credentials.js';
import { type Home, LauncherError, writeWhole } from '../home.js';
import { azuriteStandIn, azuriteTestPart } from '../parts/azurite.js';
import { btrfsPart } from '../parts/btrfs.js';
import { rbdTestPart } from '../parts/ceph-rbd.js';
import { cephRgwPart } from '../parts/ceph-rgw.js';
import { chromiumPart } from '../parts/chromium.js';
import { debianPart, ubuntuPart } from '../parts/debian.js';
import { dockerPart } from '../parts/docker.js';
import { guestPart } from '../parts/guest.js';
import { helmPart } from '../parts/helm.js';
import { libiscsiPart } from '../parts/libiscsi.js';
import { motoPart } from '../parts/moto.js';
import { cannotInstall, installPackages } from '../parts/packages.js';
import { type Lack, type Part, type PartContext, skip } from '../parts/part.js';
import { postgresPart } from '../parts/postgres.js';
import { redisPart } from '../parts/redis.js';
import { tgtPart } from '../parts/tgt.js';
import { xfsPart } from '../parts/xfs-pool.js';
import { Ports } from '../ports.js';
import { rotateOpen } from '../processes/log-file.js';
import { isMounted } from '../processes/mounts.js';
import { identify } from '../processes/process.js';
import { type ProcessSpec, StartError, SupervisedProcess } from '../processes/supervised-process.js';
import { type Skipped, type State, writeState } from '../state.js';
import { appSpec, environmentFile, isSecret, migrate } from './apps.js';
import { clearLeftovers } from './leftovers.js';
import { foldersOf, mountsOf, remainsOf } from './remains.js';
import { remedyOf } from './remedy.js';

export const PARTS: readonly Part[] = [postgresPart, redisPart, cephRgwPart, xfsPart, tgtPart];
/** Of homes that are kept. */
const STAND_INS: readonly Part[] = [azuriteStandIn];
/** What only tests use. */
const TEST_PARTS: readonly Part[] = [
  rbdTestPart,
  btrfsPart,
  libiscsiPart,
  chromiumPart,
  debianPart,
  ubuntuPart,
  guestPart,
  azuriteTestPart,
  motoPart,
  helmPart,
  dockerPart,
];
/** Of all homes of this host, each with a folder of its own in it. */
const SHARED_FOLDERS = ['/run/trivet', '/var/lib/trivet'];
const ROTATE_MS = 60_000;
const PORT_ATTEMPTS = 3;

export interface ApplianceOptions {
  /** Settings of the caller: they come first, and a part whose address they hold is not started. */
  given: Readonly<Record<string, string>>;
  partsOnly: boolean;
  install: boolean;
  /** A home for one run of tests: ports anywhere, speed before durability. */
  throwAway?: boolean;
  /** Of the parts these alone. */
  only?: readonly Part[];
  /** Beside the usual ones. */
  more?: readonly Part[];
  version: string;
  say(line: string): void;
}

/** Everything of one home that runs: its parts, and gateway and worker over them. */
export class Appliance {
  readonly #processes: SupervisedProcess[] = [];
  readonly #owner = new Map<SupervisedProcess, Part>();
  readonly #stop = new AbortController();
  readonly #skipped: Skipped[] = [];
  readonly #state: State;
  #env: Record<string, string> = {};
  /** Where the parts are that run here. */
  readonly #ofParts: Record<string, string> = {};
  #unsaved = false;
  #rotation: NodeJS.Timeout | undefined;

  constructor(
    readonly home: Home,
    private readonly options: ApplianceOptions,
  ) {
    const supervisor = identify(process.pid);
    if (supervisor === undefined) throw new Error('/proc is not readable');
    this.#state = {
      state: 'starting',
      version: options.version,
      partsOnly: options.partsOnly,
      supervisor,
      startedAt: new Date().toISOString(),
      processes: [],
      skipped: this.#skipped,
      env: {},
    };
  }

  /** Settings that lead to what runs, secrets included. */
  get env(): Readonly<Record<string, string>> {
    return this.#env;
  }

  get skipped(): readonly Skipped[] {
    return this.#skipped;
  }

  /** Resolves when everything that can run here is ready. The caller holds the lock of the home. */
  async start(): Promise<void> {
    try {
      writeState(this.home, this.#state);
      await clearLeftovers(this.home, this.options.say);
      if (!this.options.given.TRIVET_KEK_FILE) this.home.ensureKek();
      const ports = new Ports(this.home, !this.options.throwAway);
      await this.#startParts(ports);
      await this.#makeEnvironment(ports);
      if (!this.options.partsOnly) await this.#startApps(ports);
      for (const { name, from, to } of ports.moved)
        this.options.say(`the port of ${name} is ${to} instead of ${from}, which somebody else has`);
      this.#rotation = setInterval(() => this.#rotateLogs(), ROTATE_MS).unref();
      this.#state.state = 'ready';
      this.#save();
    } catch (error) {
      this.#state.failure = (error as Error).message;
      await this.stop();
      this.#state.state = 'failed';
      this.#save();
      throw error;
    }
  }

  /** Gateway, worker, then the parts; safe at any moment of the start. Resolves to what is still there. */
  async stop(): Promise<string[]> {
    this.#stop.abort();
    clearInterval(this.#rotation);
    this.#state.state = 'stopping';
    this.#save();
    for (const name of [
      'gateway',
      'worker',
      'radosgw',
      'ceph-osd.0',
      'ceph-mon.a',
      'redis',
      'azurite',
      'moto',
      'postgres',
    ]) {
      await this.#processes.find(({ spec }) => spec.name === name)?.stop();
    }
    // A command of an interrupted start, such as initdb, and what it started.
    const remains = await clearLeftovers(this.home, () => {});
    this.#state.state = 'stopped';
    this.#save();
    return remains;
  }

  async #startParts(ports: Ports): Promise<void> {
    const {
      given,
      throwAway,
      more = [],
      only = [...PARTS, ...more, ...(throwAway ? TEST_PARTS : STAND_INS)],
    } = this.options;
    const ours = only.filter(part => !given[part.addressVariable]);
    const lacks = await this.#installMissing(ours);
    const started = new Map<Part['name'], Promise<boolean>>();
    const isWanted = (part: Part): boolean => {
      const { insteadOf } = part;
      if (insteadOf === undefined) return true;
      // What it lacks itself is no news: the other one's lack is said, and is to be remedied.
      if (lacks.has(part) || existsSync(this.home.file(insteadOf.folder))) return false;
      return [...lacks.keys()].some(({ name }) => name === insteadOf.part);
    };
    for (const part of ours.filter(isWanted)) {
      const before = part.after === undefined ? undefined : (started.get(part.after) ?? Promise.resolve(false));
      started.set(part.name, this.#startPart(part, ports, lacks.get(part), before));
    }
    const results = await Promise.allSettled(started.values());
    if (this.#stop.signal.aborted) throw new LauncherError('it was stopped before it was ready');
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  /** @param before whether the part that it begins after has started */
  async #startPart(part: Part, ports: Ports, lack?: Lack, before?: Promise<boolean>): Promise<boolean> {
    const missing =
      (await before) === false
        ? { reason: `${part.after} was not started here`, packages: [], remedy: `set ${part.addressVariable}` }
        : lack;
    if (missing !== undefined) {
      this.#skip(part, missing);
      return false;
    }
    const begin = performance.now();
    try {
      const start = () => part.start(this.#context(part, ports));
      Object.assign(this.#ofParts, await this.#choosingPorts(start, () => this.#stopProcessesOf(part)));
      this.options.say(`${part.name} is ready (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
      return true;
    } catch (error) {
      if (this.#stop.signal.aborted) throw error;
      const reason = (error as Error).message;
      await this.#stopProcessesOf(part);
      this.#skip(part, { reason, packages: [], remedy: remedyOf(reason) });
      return false;
    }
  }

  /** Somebody may take a port between its choice and the moment in which ours would open it. */
  async #choosingPorts<T>(start: () => Promise<T>, clear: () => Promise<void>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await start();
      } catch (error) {
        const isTaken = error instanceof StartError && error.takenPort !== undefined;
        if (!isTaken || attempt === PORT_ATTEMPTS || this.#stop.signal.aborted) throw error;
        this.options.say(`${error.message}; another port is chosen`);
        await clear();
      }
    }
  }

  /** Without PostgreSQL there is nothing to run; everything else may be missing. */
  #skip(part: Part, lack: Lack): void {
    if (part === postgresPart) throw new LauncherError(`${lack.reason}\n${lack.remedy}`);
    Object.assign(this.#ofParts, typeof part.absent === 'function' ? part.absent(this.home) : part.absent);
    this.#skipped.push(skip(part.name, lack));
    this.options.say(`${part.name} is skipped: ${lack.reason.split('\n')[0]}; remedy: ${lack.remedy}`);
  }

  async #installMissing(parts: readonly Part[]): Promise<Map<Part, Lack>> {
    const lacks = new Map<Part, Lack>();
    for (const part of parts) {
      const lack = await part.check();
      if (lack !== undefined) lacks.set(part, lack);
    }
    const packages = [...lacks.values()].flatMap(lack => lack.packages);
    if (packages.length === 0) return lacks;
    const obstacle = this.options.install ? cannotInstall() : 'up was called with --no-install';
    const failure = obstacle ?? (await installPackages(packages, this.options.say));
    for (const [part, lack] of lacks) {
      const now = await part.check();
      if (now === undefined) lacks.delete(part);
      else if (failure !== undefined && lack.packages.length > 0) {
        lacks.set(part, { ...now, reason: `${now.reason} (${failure})` });
      }
    }
    return lacks;
  }

  #context(part: Part, ports: Ports): PartContext {
    return {
      home: this.home,
      ports,
      mark: { [HOME_MARK]: this.home.path },
      throwAway: this.options.throwAway ?? false,
      install: this.options.install,
      say: line => this.options.say(`${part.name}: ${line}`),
      signal: this.#stop.signal,
      run: spec => this.#run(spec, part),
      keepOutside: folder => {
        this.#state.dataOutside = folder;
      },
    };
  }

  async #run(spec: ProcessSpec, part?: Part): Promise<void> {
    const supervised = new SupervisedProcess(spec, () => this.#save());
    this.#processes.push(supervised);
    if (part !== undefined) this.#owner.set(supervised, part);
    if (this.#stop.signal.aborted) throw new LauncherError('it was stopped before it was ready');
    await supervised.start();
  }

  /** Of gateway and worker when it is undefined. */
  async #stopProcessesOf(part: Part | undefined): Promise<void> {
    for (const supervised of [...this.#processes].reverse()) {
      if (this.#owner.get(supervised) !== part) continue;
      await supervised.stop();
      this.#processes.splice(this.#processes.indexOf(supervised), 1);
    }
  }

  async #makeEnvironment(ports: Ports): Promise<void> {
    const { given } = this.options;
    const env: Record<string, string> = {
      TRIVET_HTTP_LISTEN: `127.0.0.1:${await ports.take('http')}`,
      TRIVET_HTTPS_LISTEN: `127.0.0.1:${await ports.take('https')}`,
      TRIVET_CBT_LISTEN: `127.0.0.1:${await ports.take('cbt')}`,
      TRIVET_WORKER_METRICS_LISTEN: `127.0.0.1:${await ports.take('worker')}`,
      // The stock COSI sidecar panics at the specified code.
      TRIVET_COSI_GRANT_MISMATCH: 'invalid_argument',
      ...this.#ofParts,
      ...given,
      TRIVET_HOME: this.home.path,
    };
    // Empty is not set, as for every process.
    env.TRIVET_KEK_FILE ||= this.home.kekFile;
    if (env.TRIVET_RGW_ENDPOINT || env.TRIVET_AZURE_ENDPOINT) env.COSI_ENDPOINT ??= `unix://${this.home.cosiSocket}`;
    if (env.TRIVET_POOLS) env.TRIVET_CSI_ENDPOINT ??= `unix://${this.home.csiSocket}`;
    env.TRIVET_CSP_PASSWORD_FILE ??= ensurePassword(this.home, 'csp-password');
    env.TRIVET_ADMIN_PASSWORD_FILE ??= ensurePassword(this.home, 'admin-password');
    oidcSettings(loadConfig([], env));
    this.home.noteKey(loadKeyring(resolve(this.home.path, env.TRIVET_KEK_FILE)).currentId);
    this.#env = env;
    this.#state.moved = ports.moved;
    this.#state.env = Object.fromEntries(Object.entries(env).filter(([name]) => !isSecret(name)));
    writeWhole(this.home.environmentFile, environmentFile(env));
    if (!existsSync(this.home.credentialsFile)) writeWhole(this.home.credentialsFile, '{}\n');
  }

  async #startApps(ports: Ports): Promise<void> {
    await migrate(this.home, this.#env, this.#stop.signal, this.options.say);
    for (const name of ['gateway', 'worker'] as const) {
      if (!existsSync(programFile(name))) {
        throw new LauncherError(`${name} is not built; run ./trivet again`);
      }
    }
    const start = async () => {
      await this.#makeEnvironment(ports);
      const specs = (['gateway', 'worker'] as const).map(name =>
        appSpec(name, this.home, this.#env, this.options.given),
      );
      await Promise.all(specs.map(spec => this.#run(spec)));
    };
    await this.#choosingPorts(start, () => this.#stopProcessesOf(undefined));
  }

  #rotateLogs(): void {
    const folder = this.home.file('log');
    if (!existsSync(folder)) return;
    for (const name of readdirSync(folder)) if (name.endsWith('.log')) rotateOpen(join(folder, name));
  }

  #save(): void {
    if (!existsSync(this.home.path)) return;
    this.#state.processes = this.#processes.map(({ spec, id, restarts, state, reason }) => ({
      name: spec.name,
      pid: id?.pid ?? null,
      startTime: id?.startTime ?? null,
      restarts,
      state,
      ...(reason === undefined ? {} : { reason }),
    }));
    try {
      writeState(this.home, this.#state);
      this.#unsaved = false;
    } catch (error) {
      // What runs goes on while the disk is full; the next change is written again.
      if (!this.#unsaved) this.options.say(`state is not saved: ${(error as Error).message}`);
      this.#unsaved = true;
    }
  }
}

/**
 * Deletes a home and what belongs to it elsewhere. First it is proved that nothing of it runs, and that nothing is mounted
 * below: data of a volume must not go with a folder.
 */
export function eraseHome(home: Home): void {
  const folders = foldersOf(home);
  const remains = [...new Set([...remainsOf(home), ...mountsOf(home)])];
  for (const folder of folders) if (isMounted(folder)) remains.push(`${folder} is a disk of its own, and mounted`);
  if (remains.length > 0) throw new LauncherError(`not deleted: ${remains.join('\n  ')}`);
  for (const folder of folders) {
    rmSync(folder, { recursive: true, force: true });
    if (SHARED_FOLDERS.includes(dirname(folder))) removeEmpty(dirname(folder));
  }
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    // Another home has something there or has just removed it; a disk of its own is mounted there.
    if (!['ENOTEMPTY', 'ENOENT', 'EBUSY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
