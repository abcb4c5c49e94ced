/**
 * Hosts of a network on one machine: each in namespaces of its own (network, processes, mounts), with an address on a bridge that the
 * test's own process is on, too. Needs root. What an interrupted run has left is removed by the next one.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { until } from '#test/support/parts';

const run = promisify(execFile);
const ip = (...args: string[]) => run('ip', args);
/** Of names of interfaces and namespaces, which have 15 letters at most. */
const PREFIX = 'trv';

/** Of the bridge. */
export interface Segment {
  bridge: string;
  /** Its first three numbers. */
  net: string;
}

export class Network {
  private readonly hosts: NetworkHost[] = [];
  private readonly relays: Relay[] = [];
  private readonly taps: string[] = [];

  /** @param segments the first, and another one that only some are on */
  private constructor(private readonly segments: readonly Segment[]) {}

  static async make(): Promise<Network> {
    await sweep();
    const [second, third] = [randomInt(130, 250), randomInt(0, 250)];
    const segments = [0, 1].map(n => ({ bridge: `${PREFIX}${process.pid}br${n}`, net: `10.${second}.${third + n}` }));
    const network = new Network(segments);
    for (const [n, { bridge, net }] of segments.entries()) {
      // Of its own accord it takes that of a port, and another one when ports come and go: neighbours then speak to nobody.
      await ip('link', 'add', bridge, 'address', `02:00:00:00:0${n}:01`, 'type', 'bridge');
      for (const last of n === 0 ? [1, 9] : [1]) await ip('address', 'add', `${net}.${last}/24`, 'dev', bridge);
      await ip('link', 'set', bridge, 'up');
    }
    return network;
  }

  address(last: number, segment = 0): string {
    return `${this.segments[segment]!.net}.${last}`;
  }

  /** On each segment, by an interface with its number. @param mounts folders of its own, by the paths at which it has them */
  async host(name: string, last: number, mounts: Readonly<Record<string, string>> = {}): Promise<NetworkHost> {
    const host = new NetworkHost(`${PREFIX}${process.pid}${name}`, this.segments, last, mounts);
    this.hosts.push(host);
    await host.plug();
    await host.boot();
    return host;
  }

  /** Where the others reach a port of this machine's loopback, as long as nobody cuts it. */
  async relay(port: number): Promise<Relay> {
    const relay = await Relay.open(this.address(1), port);
    this.relays.push(relay);
    return relay;
  }

  /** A port of a segment's bridge for a machine that somebody emulates: its name. */
  async tap(name: string, segment: number): Promise<string> {
    const tap = `${PREFIX}${process.pid}${name}`;
    await ip('tuntap', 'add', tap, 'mode', 'tap');
    this.taps.push(tap);
    await ip('link', 'set', tap, 'master', this.segments[segment]!.bridge, 'up');
    return tap;
  }

  async remove(): Promise<void> {
    for (const tap of this.taps) await ip('link', 'del', tap);
    for (const host of this.hosts) await host.remove();
    for (const relay of this.relays) relay.close();
    for (const { bridge } of this.segments) await ip('link', 'del', bridge);
  }
}

export class NetworkHost {
  private init: ChildProcess | undefined;

  constructor(
    private readonly namespace: string,
    private readonly segments: readonly Segment[],
    private readonly last: number,
    private readonly mounts: Readonly<Record<string, string>>,
  ) {}

  /** On the first segment. */
  get address(): string {
    return `${this.segments[0]!.net}.${this.last}`;
  }

  async plug(): Promise<void> {
    const { namespace } = this;
    await ip('netns', 'add', namespace);
    await ip('-n', namespace, 'link', 'set', 'lo', 'up');
    for (const [n, { bridge }] of this.segments.entries()) {
      await ip('link', 'add', this.#cable(n), 'type', 'veth', 'peer', 'name', `eth${n}`, 'netns', namespace);
      await ip('link', 'set', this.#cable(n), 'master', bridge, 'up');
      await ip('-n', namespace, 'link', 'set', `eth${n}`, 'up');
    }
    await this.#address();
  }

  async #address(): Promise<void> {
    for (const [n, { net }] of this.segments.entries())
      await ip('-n', this.namespace, 'address', 'add', `${net}.${this.last}/24`, 'dev', `eth${n}`);
  }

  /** The other end of an interface, at the bridge. */
  #cable(segment: number): string {
    return `${this.namespace}${segment}`;
  }

  /** With nothing but its first process. */
  async boot(): Promise<void> {
    const mounts = Object.entries(this.mounts).map(([at, folder]) => `mount --bind '${folder}' '${at}';`);
    const script = `${mounts.join(' ')} while :; do sleep 3600 & wait; done`;
    const unshared = ['unshare', '--fork', '--pid', '--kill-child', '--mount', '--mount-proc', 'sh', '-c', script];
    this.init = spawn('ip', ['netns', 'exec', this.namespace, ...unshared], { stdio: 'ignore' });
    await until('the host is up', () => {
      try {
        return readFileSync(`/proc/${this.first}/cmdline`, 'utf8').startsWith('sh\0');
      } catch {
        return false;
      }
    });
    await until('it has its folders', async () => {
      const table = await this.run('cat', '/proc/self/mounts');
      return Object.keys(this.mounts).every(at => table.stdout.includes(` ${at} `));
    });
  }

  /** What runs a command there. */
  get inside(): string[] {
    return ['nsenter', '--target', `${this.first}`, '--net', '--pid', '--mount', '--'];
  }

  /** What runs a command on its network, with the processes and mounts of this machine. */
  get onNetwork(): string[] {
    return ['nsenter', '--target', `${this.first}`, '--net', '--'];
  }

  run(...command: string[]) {
    const [program, ...args] = [...this.inside, ...command];
    return run(program!, args);
  }

  /** All that runs there ends at once, as by a loss of power; its address answers nobody. */
  async die(): Promise<void> {
    const ended = new Promise(resolve => this.init!.once('exit', resolve));
    await this.unplugged(true);
    process.kill(this.first, 'SIGKILL');
    await ended;
    // A kernel that boots has its own addresses alone.
    for (const n of this.segments.keys()) await ip('-n', this.namespace, 'address', 'flush', 'dev', `eth${n}`);
  }

  /** As it was before anything was started. */
  async back(): Promise<void> {
    await this.#address();
    await this.boot();
    await this.unplugged(false);
  }

  /** Of one segment, or of all. */
  async unplugged(is: boolean, segments: Iterable<number> = this.segments.keys()): Promise<void> {
    for (const n of segments) await ip('link', 'set', this.#cable(n), is ? 'down' : 'up');
  }

  /** Of packets to that address. */
  async losing(address: string, is: boolean): Promise<void> {
    await ip('-n', this.namespace, 'route', is ? 'add' : 'del', 'blackhole', `${address}/32`);
  }

  /** Each process, or goes on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const pids = this.pids();
    for (const pid of pids) killIfThere(pid, signal);
    if (signal === 'SIGSTOP') return;
    // nsenter stops with the command that it waits for, and reaps nothing while it stands still.
    for (const pid of new Set(pids.map(parentOf))) if (nameOf(pid) === 'nsenter') killIfThere(pid, signal);
  }

  /** The one process with that argument; nsenter, which waits for it, hands no signals on. */
  end(argument: string, signal: NodeJS.Signals): void {
    const found = this.pids().filter(
      pid => nameOf(pid) !== 'nsenter' && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(argument),
    );
    for (const pid of found) killIfThere(pid, signal);
  }

  async addresses(): Promise<string[]> {
    const { stdout } = await ip('-n', this.namespace, '-json', 'address', 'show');
    const found = JSON.parse(stdout) as { addr_info: { local: string }[] }[];
    return found.flatMap(({ addr_info }) => addr_info.map(({ local }) => local));
  }

  /** Names of programs that run there. */
  programs(): string[] {
    return this.pids().map(nameOf);
  }

  /** As this machine knows them. */
  pidsOf(program: string): number[] {
    return this.pids().filter(pid => nameOf(pid) === program);
  }

  async remove(): Promise<void> {
    if (this.init && this.init.exitCode === null && this.init.signalCode === null) {
      const ended = new Promise(resolve => this.init!.once('exit', resolve));
      this.signal('SIGCONT');
      process.kill(this.first, 'SIGKILL');
      await ended;
    }
    await ip('netns', 'del', this.namespace);
  }

  private pids(): number[] {
    const own = namespaceOf(this.first);
    return numbers('/proc').filter(pid => namespaceOf(pid) === own);
  }

  /** As this machine knows it; there it is number 1. */
  private get first(): number {
    const { pid } = this.init!;
    // `ip netns exec` becomes unshare, which waits for its one child.
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return Number(child || Number.NaN);
  }
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

/** '' of one that is gone. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}

const numbers = (folder: string): number[] =>
  readdirSync(folder)
    .filter(name => /^\d+$/.test(name))
    .map(Number);

/** TCP to a port of loopback, for hosts that are not on it. */
export class Relay {
  private readonly sockets = new Set<Socket>();
  private isCut = false;

  private constructor(
    private readonly server: Server,
    readonly address: string,
  ) {}

  static async open(host: string, port: number): Promise<Relay> {
    const server = createServer({ pauseOnConnect: true });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, host, resolve));
    const relay = new Relay(server, `${host}:${(server.address() as { port: number }).port}`);
    server.on('connection', socket => relay.#carry(socket, port));
    return relay;
  }

  /** Nothing comes through any more, and nobody is told. */
  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.pause();
  }

  /** As a network that is whole again: what was open before is gone. */
  mend(): void {
    this.isCut = false;
    for (const socket of this.sockets) socket.destroy();
  }

  close(): void {
    this.mend();
    this.server.close();
  }

  #carry(near: Socket, port: number): void {
    this.sockets.add(near);
    near.once('close', () => this.sockets.delete(near)).on('error', () => {});
    if (this.isCut) return;
    const far = connect(port, '127.0.0.1');
    this.sockets.add(far);
    far.once('close', () => this.sockets.delete(far)).on('error', () => {});
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', chunk => {
        if (this.isCut) return;
        if (!to.write(chunk)) {
          from.pause();
          to.once('drain', () => {
            if (!this.isCut) from.resume();
          });
        }
      });
      from.once('close', () => to.destroy());
    }
    near.resume();
  }
}

/** One that has ended since it was listed needs none. */
function killIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** What runs that were killed have left. */
async function sweep(): Promise<void> {
  const isLeft = (name: string): boolean => {
    const pid = new RegExp(`^${PREFIX}(\\d+)[a-z]`).exec(name)?.[1];
    return pid !== undefined && !numbers('/proc').includes(Number(pid));
  };
  const { stdout: spaces } = await ip('netns', 'list');
  for (const [name = ''] of spaces.split('\n').map(line => line.split(' '))) {
    if (!isLeft(name)) continue;
    const { stdout } = await ip('netns', 'pids', name);
    for (const pid of stdout.split('\n').filter(Boolean)) killIfThere(Number(pid), 'SIGKILL');
    await ip('netns', 'del', name);
  }
  const { stdout: links } = await ip('-json', 'link', 'show');
  for (const { ifname } of JSON.parse(links) as { ifname: string }[])
    if (isLeft(ifname)) await ip('link', 'del', ifname).catch(() => {});
}
