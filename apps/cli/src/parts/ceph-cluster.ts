import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bareEnvironment } from '../environment.js';
import { type Home, isPlain, writeWhole } from '../home.js';
import { listensAt } from '../processes/listeners.js';
import { type CephPlace, cephConfiguration, monAddress, RGW_POOLS } from './ceph-config.js';
import { CommandError, findProgram, runCommand } from './command.js';
import type { PartContext } from './part.js';

export const CEPH_PROGRAMS = ['ceph', 'ceph-mon', 'ceph-osd', 'monmaptool', 'radosgw', 'radosgw-admin'] as const;
const GIB = 1024 ** 3;

interface Prepared {
  fsid: string;
  osdUuid: string;
  store: CephPlace['store'];
  osdBytes: number;
  monPort: number;
  monV1Port: number;
}

/** A cluster in a home: made once, then started from what is there. */
export class CephCluster {
  readonly #home: Home;
  readonly #prepared: Prepared;
  readonly place: CephPlace;

  private constructor(
    private readonly context: PartContext,
    prepared: Prepared,
    readonly isNew: boolean,
    rgwPort: number,
  ) {
    this.#home = context.home;
    this.#prepared = prepared;
    this.place = {
      ...prepared,
      ...pathsOf(context.home),
      rgwPort,
    };
  }

  /** Lays out the folders. A cluster whose making was interrupted never served anything, and is made anew. */
  static async open(context: PartContext): Promise<CephCluster> {
    const { home, ports } = context;
    const marker = home.file('ceph', 'cluster.json');
    const monPort = await ports.take('ceph-mon');
    const monV1Port = await ports.take('ceph-mon-v1');
    const rgwPort = await ports.take('rgw');
    const isNew = !existsSync(marker);
    if (isNew) rmSync(home.file('ceph'), { recursive: true, force: true });
    const prepared: Prepared = isNew
      ? {
          fsid: randomUUID(),
          osdUuid: randomUUID(),
          store: context.throwAway ? 'memstore' : 'bluestore',
          osdBytes: context.throwAway ? 4 * GIB : osdBytes(home.path),
          monPort,
          monV1Port,
        }
      : JSON.parse(readFileSync(marker, 'utf8'));
    const moved = !isNew && (prepared.monPort !== monPort || prepared.monV1Port !== monV1Port);
    const cluster = new CephCluster(context, { ...prepared, monPort, monV1Port }, isNew, rgwPort);
    cluster.#layOut();
    if (isNew) await cluster.#makeMon();
    else if (moved) await cluster.#moveMon();
    if (moved) cluster.markMade();
    return cluster;
  }

  get configuration(): string {
    return join(this.place.folder, 'ceph.conf');
  }

  /** From here on the cluster holds data and is never made anew. */
  markMade(): void {
    writeWhole(join(this.place.folder, 'cluster.json'), `${JSON.stringify(this.#prepared, null, 2)}\n`);
  }

  /** `ceph` with the administrator's key. */
  ceph(args: readonly string[], input?: string): Promise<string> {
    return this.#command('ceph', ['--connect-timeout', '30', ...args], input);
  }

  radosgwAdmin(args: readonly string[]): Promise<string> {
    return this.#command('radosgw-admin', args);
  }

  async startMon(): Promise<void> {
    const { monPort, monV1Port } = this.place;
    await this.#daemon('ceph-mon', ['-i', 'a'], 'ceph-mon.a', 30_000, [monPort, monV1Port], async () => {
      const { state } = await this.#adminSocket('mon.a', ['mon_status']);
      return state === 'leader' || state === 'peon';
    });
  }

  /** Registers the osd and formats its store. */
  async makeOsd(): Promise<void> {
    const { folder } = this.place;
    const secret = cephKey();
    mkdirSync(join(folder, 'osd'), { recursive: true, mode: 0o700 });
    await this.ceph(['osd', 'new', this.#prepared.osdUuid, '-i', '-'], JSON.stringify({ cephx_secret: secret }));
    writeKeyring(join(folder, 'osd', 'keyring'), 'osd.0', secret);
    await this.#command('ceph-osd', ['-i', '0', '--mkfs', '--osd-uuid', this.#prepared.osdUuid], undefined, 120_000);
  }

  async startOsd(): Promise<void> {
    const ready = async (): Promise<boolean> => (await this.#adminSocket('osd.0', ['status'])).state === 'active';
    await this.#daemon('ceph-osd', ['-i', '0'], 'ceph-osd.0', 60_000, [], ready);
  }

  async makeGateway(): Promise<void> {
    const { folder } = this.place;
    mkdirSync(join(folder, 'rgw'), { recursive: true, mode: 0o700 });
    const caps = ['mon', 'allow rw', 'osd', 'allow rwx'];
    const keyring = await this.ceph(['auth', 'get-or-create', 'client.rgw.a', ...caps]);
    writeWhole(join(folder, 'rgw', 'keyring'), keyring);
    await Promise.all(RGW_POOLS.map(pool => this.#makePool(pool)));
  }

  async startGateway(): Promise<void> {
    const { rgwPort } = this.place;
    const url = `http://127.0.0.1:${rgwPort}/`;
    await this.#daemon('radosgw', ['-n', 'client.rgw.a'], 'radosgw', 120_000, [rgwPort], async pid => {
      if (!listensAt(pid, rgwPort)) return false;
      const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
      await answer?.body?.cancel();
      return answer?.status === 200;
    });
  }

  /**
   * Ceph 18 makes no pool whose name begins with a dot unless one insists, says so, and ends with 0; 16 takes that flag for
   * the name of a rule. So it is asked without, and insists if the pool is not there.
   */
  async #makePool(pool: string): Promise<void> {
    const create = ['osd', 'pool', 'create', pool, '8', '8', 'replicated'];
    const enable = (): Promise<string> => this.ceph(['osd', 'pool', 'application', 'enable', pool, 'rgw']);
    await this.ceph(create);
    try {
      await enable();
    } catch (error) {
      if (!(error instanceof CommandError && error.stderr.includes('ENOENT'))) throw error;
      await this.ceph([...create, '--yes-i-really-mean-it']);
      await enable();
    }
  }

  #layOut(): void {
    const { folder, run, log } = this.place;
    const real = this.#home.file('ceph');
    for (const path of [join(real, 'crash'), run]) mkdirSync(path, { recursive: true, mode: 0o700 });
    for (const [link, target] of [
      [folder, real],
      [log, this.#home.file('log')],
    ] as const) {
      if (link === target) continue;
      rmSync(link, { force: true });
      symlinkSync(target, link);
    }
    writeFileSync(this.configuration, cephConfiguration(this.place), { mode: 0o600 });
  }

  async #makeMon(): Promise<void> {
    const { folder } = this.place;
    const admin = `[client.admin]\n\tkey = ${cephKey()}\n${ALL_CAPS}`;
    writeWhole(join(folder, 'keyring'), admin);
    const keyring = join(folder, 'mon.keyring');
    writeWhole(keyring, `[mon.]\n\tkey = ${cephKey()}\n\tcaps mon = "allow *"\n${admin}`);
    const map = join(folder, 'monmap');
    const create = ['--create', '--fsid', this.place.fsid, '--addv', 'a', monAddress(this.place), map];
    await this.#command('monmaptool', create);
    await this.#command('ceph-mon', ['--mkfs', '-i', 'a', '--monmap', map, '--keyring', keyring]);
    rmSync(keyring);
  }

  /** The mon's address is part of its data: another port goes into its map before it starts. */
  async #moveMon(): Promise<void> {
    const map = join(this.place.folder, 'monmap');
    await this.#command('ceph-mon', ['-i', 'a', '--extract-monmap', map]);
    // Of both in one call it does the addition first, and refuses.
    await this.#command('monmaptool', ['--rm', 'a', map]);
    await this.#command('monmaptool', ['--addv', 'a', monAddress(this.place), map]);
    await this.#command('ceph-mon', ['-i', 'a', '--inject-monmap', map]);
  }

  #command(program: string, args: readonly string[], input?: string, timeoutMs = 60_000): Promise<string> {
    return runCommand(required(program), ['-c', this.configuration, ...args], {
      env: { ...this.context.mark },
      signal: this.context.signal,
      input,
      timeoutMs,
    });
  }

  async #adminSocket(daemon: string, args: readonly string[]): Promise<{ state?: string }> {
    const socket = join(this.place.run, `ceph-${daemon}.asok`);
    if (!existsSync(socket)) return {};
    const answer = await runCommand(required('ceph'), ['--admin-daemon', socket, ...args], { timeoutMs: 5_000 }).catch(
      () => '{}',
    );
    return JSON.parse(answer) as { state?: string };
  }

  async #daemon(
    program: string,
    args: readonly string[],
    name: string,
    readyMs: number,
    ports: readonly number[],
    ready: (pid: number) => Promise<boolean>,
  ): Promise<void> {
    await this.context.run({
      name,
      command: required(program),
      args: ['-c', this.configuration, '-f', ...args],
      env: { ...bareEnvironment(), ...this.context.mark },
      // As a service: Debian 13's osd looks for its classes in a relative path, and has EOPNOTSUPP for RGW without them.
      cwd: '/',
      logFile: this.#home.log(name),
      stopSignal: 'SIGTERM',
      stopGraceMs: 20_000,
      readyMs,
      ports,
      ready,
    });
  }
}

/** Ceph takes some paths for lists: a home with a blank or a comma in its path is reached by links in the run folder. */
function pathsOf(home: Home): Pick<CephPlace, 'folder' | 'run' | 'log'> {
  const run = join(home.run, 'ceph');
  if (isPlain(home.path)) return { folder: home.file('ceph'), run, log: home.file('log') };
  return { folder: join(run, 'data'), run, log: join(run, 'log') };
}

const ALL_CAPS = ['mon', 'osd', 'mgr', 'mds'].map(service => `\tcaps ${service} = "allow *"\n`).join('');

function required(program: string): string {
  const path = findProgram(program);
  if (path === undefined) throw new Error(`${program} is not installed`);
  return path;
}

/** A cephx key: type 1 (AES), time of creation, length, 16 random bytes; all little-endian. */
function cephKey(): string {
  const header = Buffer.alloc(12);
  header.writeUInt16LE(1, 0);
  header.writeUInt32LE(Math.floor(Date.now() / 1000), 2);
  header.writeUInt16LE(16, 10);
  return Buffer.concat([header, randomBytes(16)]).toString('base64');
}

function writeKeyring(path: string, entity: string, key: string): void {
  writeWhole(path, `[${entity}]\n\tkey = ${key}\n`);
}

/** The store is a sparse file: half of what is free now, within 10 and 100 GiB. */
function osdBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return Math.round(Math.min(100, Math.max(10, (bavail * bsize) / 2 / GIB))) * GIB;
}
