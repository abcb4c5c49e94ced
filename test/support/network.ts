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

export class Network {
  private readonly hosts: NetworkHost[] = [];
  private readonly relays: Relay[] = [];
  private readonly taps: string[] = [];

  private constructor(
    private readonly bridge: string,
    private readonly net: string,
  ) {}

  static async make(): Promise<Network> {
    await sweep();
    const bridge = `${PREFIX}${process.pid}br0`;
    const net = `10.${randomInt(130, 250)}.${randomInt(0, 250)}`;
    // Of its own accord it takes that of a port, and another one when ports come and go: neighbours then speak to nobody.
    await ip('link', 'add', bridge, 'address', '02:00:00:00:00:01', 'type', 'bridge');
    const network = new Network(bridge, net);
    for (const last of [1, 9]) await ip('address', 'add', `${network.address(last)}/24`, 'dev', bridge);
    await ip('link', 'set', bridge, 'up');
    return network;
  }

  address(last: number): string {
    return `${this.net}.${last}`;
  }

  /** @param mounts folders of its own, by the paths at which it has them */
  async host(name: string, last: number, mounts: Readonly<Record<string, string>> = {}): Promise<NetworkHost> {
    const host = new NetworkHost(`${PREFIX}${process.pid}${name}`, this.bridge, this.address(last), mounts);
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

  /** A port of the bridge for a machine that somebody emulates: its name. */
  async tap(name: string): Promise<string> {
    const tap = `${PREFIX}${process.pid}${name}`;
    await ip('tuntap', 'add', tap, 'mode', 'tap');
    this.taps.push(tap);
    await ip('link', 'set', tap, 'master', this.bridge, 'up');
    return tap;
  }

  async remove(): Promise<void> {
    for (const tap of this.taps) await ip('link', 'del', tap);
    for (const host of this.hosts) await host.remove();
    for (const relay of this.relays) relay.close();
    await ip('link', 'del', this.bridge);
  }
}

export class NetworkHost {
  private init: ChildProcess | undefined;

  constructor(
    private readonly namespace: string,
    private readonly bridge: string,
    readonly address: string,
    private readonly mounts: Readonly<Record<string, string>>,
  ) {}

  async plug(): Promise<void> {
    const { namespace, bridge, address } = this;
    await ip('netns', 'add', namespace);
    await ip('link', 'add', namespace, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
    await ip('link', 'set', namespace, 'master', bridge, 'up');
    await ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', 'eth0');
    for (const device of ['eth0', 'lo']) await ip('-n', namespace, 'link', 'set', device, 'up');
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
    // A kernel that boots has its own address alone.
    await ip('-n', this.namespace, 'address', 'flush', 'dev', 'eth0');
  }

  /** As it was before anything was started. */
  async back(): Promise<void> {
    await ip('-n', this.namespace, 'address', 'add', `${this.address}/24`, 'dev', 'eth0');
    await this.boot();
    await this.unplugged(false);
  }

  async unplugged(is: boolean): Promise<void> {
    await ip('link', 'set', this.namespace, is ? 'down' : 'up');
  }

  /** Of packets to that address. */
  async losing(address: string, is: boolean): Promise<void> {
    await ip('-n', this.namespace, 'route', is ? 'add' : 'del', 'blackhole', `${address}/32`);
  }

  /** Each process, or goes on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const pids = this.pids();
    for (const pid of pids) process.kill(pid, signal);
    if (signal === 'SIGSTOP') return;
    // nsenter stops with the command that it waits for, and reaps nothing while it stands still.
    for (const pid of new Set(pids.map(parentOf))) if (nameOf(pid) === 'nsenter') process.kill(pid, signal);
  }

  /** The one process with that argument; nsenter, which waits for it, hands no signals on. */
  end(argument: string, signal: NodeJS.Signals): void {
    const found = this.pids().filter(
      pid => nameOf(pid) !== 'nsenter' && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(argument),
    );
    for (const pid of found) process.kill(pid, signal);
  }

  async addresses(): Promise<string[]> {
    const { stdout } = await ip('-n', this.namespace, '-json', 'address', 'show', 'dev', 'eth0');
    const [found] = JSON.parse(stdout) as { addr_info: { local: string }[] }[];
    return found!.addr_info.map(({ local }) => local);
  }

  /** Names of programs that run there. */
  programs(): string[] {
    return this.pids().map(nameOf);
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
    for (const pid of stdout.split('\n').filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
    await ip('netns', 'del', name);
  }
  const { stdout: links } = await ip('-json', 'link', 'show');
  for (const { ifname } of JSON.parse(links) as { ifname: string }[])
    if (isLeft(ifname)) await ip('link', 'del', ifname).catch(() => {});
}
