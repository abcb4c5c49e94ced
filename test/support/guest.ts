/**
 * A Linux host of a test: Debian's kernel with open-iscsi and multipath-tools in QEMU, without KVM.
 *
 * It reaches this machine's portals over cables that can be pulled. Each is a network of QEMU's user mode, which carries
 * what the guest sends to 127.x.y.z to that address of this machine's loopback: so nothing has to be set up here, and
 * nothing goes further. Or one is a tap on the bridge of a Network: then the guest is a host beside those there.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parts, until } from '#test/support/parts';

const DISK = 'disk.qcow2';
const ISCSI_PORT = 3260;
const BOOT_MS = 180_000;
const COMMAND_SECONDS = 120;
/** What a command gets above its limit until its answer is here. */
const MARGIN_MS = 15_000;
const KERNEL = 'root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off init=/sbin/trivet-init panic=1';

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

export class GuestError extends Error {}

/** What a network card leads to: a portal of the loopback, or a tap device, with the guest's own address there. */
export type Cable = { portal: string } | { tap: string; address: string };

/** Of the loopback, with nobody at iSCSI's port, the only one that HPE's nodes know. */
export async function freeAddresses(count: number): Promise<string[]> {
  for (;;) {
    const net = `127.${64 + Math.floor(Math.random() * 128)}.${Math.floor(Math.random() * 256)}`;
    const addresses = Array.from({ length: count }, (_, n) => `${net}.${n + 1}`);
    if ((await Promise.all(addresses.map(isFree))).every(Boolean)) return addresses;
  }
}

export class Guest {
  readonly #waiting = new Map<string, { resolve(result: CommandResult): void; reject(error: Error): void }>();
  #child!: ChildProcess;
  #exit!: Promise<void>;
  #console = '';
  #agent: Socket | undefined;
  #last = 0;
  #ended: string | undefined;

  private constructor(
    private readonly folder: string,
    readonly iqn: string,
    private readonly cables: readonly Cable[],
  ) {}

  /** One network card for each cable; `folder` is removed at its end. */
  static async boot(folder: string, cables: readonly Cable[]): Promise<Guest> {
    mkdirSync(folder, { recursive: true });
    await overlay(join(imageFolder(), 'disk.img'), join(folder, DISK));
    const iqn = `iqn.1993-08.org.debian:01:${randomBytes(6).toString('hex')}`;
    const host = new Guest(folder, iqn, cables);
    await host.#powerOn();
    return host;
  }

  async #powerOn(): Promise<void> {
    const { folder } = this;
    const image = imageFolder();
    const cards = this.cables.flatMap((cable, n) => {
      const user = `user,id=net${n},net=10.0.${n + 2}.0/24,host=10.0.${n + 2}.2`;
      const leads = 'tap' in cable ? `tap,id=net${n},ifname=${cable.tap},script=no,downscript=no` : user;
      return ['-netdev', leads, '-device', `virtio-net-pci,netdev=net${n},id=card${n},romfile=`];
    });
    const child = spawn(
      'qemu-system-x86_64',
      [
        ...['-accel', 'tcg', '-cpu', 'max', '-m', '768', '-nodefaults', '-display', 'none', '-serial', 'stdio'],
        ...['-kernel', join(image, 'vmlinuz'), '-initrd', join(image, 'initrd.img'), '-append', KERNEL],
        // Of a disk that nobody else ever sees: what is not flushed is lost with the test anyway.
        ...['-drive', `file=${join(folder, DISK)},if=virtio,format=qcow2,cache=unsafe`],
        ...['-qmp', `unix:${join(folder, 'qmp')},server=on,wait=off`],
        ...['-chardev', `socket,id=agent,path=${join(folder, 'agent')},server=on,wait=off`],
        ...['-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=agent,name=trivet'],
        ...cards,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    this.#child = child;
    this.#ended = undefined;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', chunk => {
        this.#console += chunk;
      });
    }
    this.#exit = new Promise(resolve => {
      const end = (why: string): void => {
        this.#ended ??= why;
        this.#giveUp(why);
        resolve();
      };
      child.once('error', error => end(error.message));
      child.once('exit', code => end(`QEMU ended with ${code}`));
    });
    try {
      await this.#attach();
      await this.#setUp();
    } catch (error) {
      await this.stop();
      throw new GuestError(`${(error as Error).message}\n${this.#console.slice(-2_000)}`);
    }
  }

  /** By bash. Its exit code is 124 when the time was up. */
  async run(command: string, seconds = COMMAND_SECONDS): Promise<CommandResult> {
    const id = String(++this.#last);
    const limit = seconds * 1_000 + MARGIN_MS;
    const answer = this.#answerTo(id, command, limit);
    this.#agent?.write(`${id} ${seconds} ${Buffer.from(command).toString('base64')}\n`);
    return answer;
  }

  /** Resolves to what it printed, without the last line's end. */
  async must(command: string, seconds = COMMAND_SECONDS): Promise<string> {
    const { code, stdout, stderr } = await this.run(command, seconds);
    if (code !== 0) throw new GuestError(`${command}: code ${code}: ${stderr.trim() || stdout.trim()}`);
    return stdout.replace(/\n$/, '');
  }

  /** Pulls the nth cable. */
  async unplug(cable: number): Promise<void> {
    await this.#manage('set_link', { name: `card${cable}`, up: false });
  }

  async plug(cable: number): Promise<void> {
    await this.#manage('set_link', { name: `card${cable}`, up: true });
  }

  /**
   * The plug is pulled and put back: what it had in memory is lost. Resolves when it is up again, with no service started. By a
   * new QEMU, since one guest in four did not boot after QEMU's own reset.
   */
  async losePower(): Promise<void> {
    this.#agent?.destroy();
    // Ends without a word to the guest, but writes the image's own tables.
    await this.#manage('quit');
    await this.#exit;
    await this.#powerOn();
  }

  /** The end of what the kernel said, for a failure's message. */
  get console(): string {
    return this.#console.slice(-4_000);
  }

  async stop(): Promise<void> {
    this.#ended ??= 'the guest was stopped';
    this.#agent?.destroy();
    this.#child.kill('SIGKILL');
    await this.#exit;
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #attach(): Promise<void> {
    const path = join(this.folder, 'agent');
    const socket = await until('QEMU listens', () => this.#alive() && opened(path), 10_000);
    socket.on('error', () => {});
    this.#agent = socket;
    createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY }).on('line', line => this.#deliver(line));
    const { code } = await this.run('true', BOOT_MS / 1_000);
    if (code !== 0) throw new GuestError(`the agent answers with ${code}`);
  }

  /** Networks first: what is below 127 and no portal stays at home. */
  async #setUp(): Promise<void> {
    const cards = this.cables.map((cable, n) =>
      'tap' in cable
        ? `
        ip link set eth${n} up
        ip address add ${cable.address}/24 dev eth${n}`
        : `
        ip link set eth${n} up
        ip address add 10.0.${n + 2}.15/24 dev eth${n}
        echo 1 > /proc/sys/net/ipv4/conf/eth${n}/route_localnet
        ip route add ${cable.portal}/32 via 10.0.${n + 2}.2 dev eth${n} src 10.0.${n + 2}.15`,
    );
    await this.must(`set -e
      ip link set lo up
      ip address replace 127.0.0.1/32 dev lo
      ip address delete 127.0.0.1/8 dev lo
      ${cards.join('\n')}
      echo InitiatorName=${this.iqn} > /etc/iscsi/initiatorname.iscsi`);
  }

  #alive(): true {
    if (this.#ended !== undefined) throw new GuestError(this.#ended);
    return true;
  }

  #answerTo(id: string, command: string, limitMs: number): Promise<CommandResult> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) return reject(new GuestError(this.#ended));
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new GuestError(`no answer from the guest to: ${command}\n${this.console}`));
      }, limitMs);
      const done =
        <T>(then: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer);
          this.#waiting.delete(id);
          then(value);
        };
      this.#waiting.set(id, { resolve: done(resolve), reject: done(reject) });
    });
  }

  #deliver(line: string): void {
    const [id = '', code, ...texts] = line.split(' ');
    const [stdout = '', stderr = ''] = texts.map(text => Buffer.from(text, 'base64').toString());
    this.#waiting.get(id)?.resolve({ code: Number(code), stdout, stderr });
  }

  #giveUp(why: string): void {
    for (const { reject } of [...this.#waiting.values()]) reject(new GuestError(why));
  }

  /** One command of QEMU's own protocol on a connection of its own, until it is answered. */
  async #manage(execute: string, args: object = {}): Promise<void> {
    this.#alive();
    const socket = connect(join(this.folder, 'qmp'));
    try {
      socket.write(`${JSON.stringify({ execute: 'qmp_capabilities' })}\n`);
      socket.write(`${JSON.stringify({ execute, arguments: args, id: 'asked' })}\n`);
      for await (const line of createInterface({ input: socket })) {
        const said = JSON.parse(line) as { id?: string; error?: { desc: string } };
        if (said.error) throw new GuestError(`${execute}: ${said.error.desc}`);
        if (said.id === 'asked') return;
      }
      throw new GuestError(`${execute}: QEMU does not answer`);
    } finally {
      socket.destroy();
    }
  }
}

function imageFolder(): string {
  const { guest } = parts();
  if (!guest) throw new Error('this test needs the guest of the run');
  return guest.folder;
}

const isFree = (address: string): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(ISCSI_PORT, address, () => server.close(() => resolve(true)));
  });

const opened = (path: string): Promise<Socket | undefined> =>
  new Promise(resolve => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(undefined));
  });

function overlay(base: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', base, '-F', 'raw', path], {
      stdio: 'ignore',
    });
    child.once('error', reject);
    child.once('exit', code => (code === 0 ? resolve() : reject(new Error(`qemu-img ended with ${code}`))));
  });
}
