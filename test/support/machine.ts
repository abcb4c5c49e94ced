/**
 * A computer that QEMU emulates, without KVM, and whose Debian runs test/guest/machine/agent.pl: commands go in and answers come back by a
 * virtio port.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { until } from '#test/support/parts';

const BOOT_MS = 180_000;
const COMMAND_SECONDS = 120;
/** What a command gets above its limit until its answer is here. */
const MARGIN_MS = 15_000;

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

export class GuestError extends Error {}

export interface MachineOptions {
  /** Of its sockets. It is there, and stays. */
  folder: string;
  memoryMiB: number;
  /** Beyond machineArgs. */
  args: readonly string[];
  /** Until its agent answers. */
  bootMs?: number;
}

/** Processor, memory, console, and the sockets to the agent and to QEMU itself. */
export const machineArgs = (folder: string, memoryMiB: number): string[] => [
  ...['-accel', 'tcg', '-cpu', 'max', '-m', String(memoryMiB), '-nodefaults', '-display', 'none'],
  ...['-serial', 'stdio', '-qmp', `unix:${join(folder, 'qmp')},server=on,wait=off`],
  ...['-chardev', `socket,id=agent,path=${join(folder, 'agent')},server=on,wait=off`],
  ...['-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=agent,name=trivet'],
];

export class Machine {
  readonly #waiting = new Map<string, { resolve(result: CommandResult): void; reject(error: Error): void }>();
  readonly #child: ChildProcess;
  /** Resolves when QEMU has ended. */
  readonly exit: Promise<void>;
  #console = '';
  #agent: Socket | undefined;
  #last = 0;
  #ended: string | undefined;

  private constructor(private readonly options: MachineOptions) {
    const { folder, memoryMiB, args } = options;
    const child = spawn('qemu-system-x86_64', [...machineArgs(folder, memoryMiB), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', chunk => {
        this.#console += chunk;
      });
    }
    this.exit = new Promise(resolve => {
      const end = (why: string): void => {
        this.#ended ??= why;
        this.#giveUp(why);
        resolve();
      };
      child.once('error', error => end(error.message));
      child.once('exit', code => end(`QEMU ended with ${code}`));
    });
  }

  /** Resolves when its agent answers. */
  static async start(options: MachineOptions): Promise<Machine> {
    const machine = new Machine(options);
    try {
      await machine.#attach();
      return machine;
    } catch (error) {
      await machine.stop();
      throw new GuestError(`${(error as Error).message}\n${machine.#console.slice(-2_000)}`);
    }
  }

  /** By bash. Its exit code is 124 when the time was up. */
  async run(command: string, seconds = COMMAND_SECONDS): Promise<CommandResult> {
    const id = String(++this.#last);
    const limit = seconds * 1_000 + MARGIN_MS;
    const answer = this.#answerTo(id, command, limit);
    this.#agent?.write(`${id} ${Math.ceil(seconds)} ${Buffer.from(command).toString('hex')}\n`);
    return answer;
  }

  /** Resolves to what it printed, without the last line's end. */
  async must(command: string, seconds = COMMAND_SECONDS): Promise<string> {
    const { code, stdout, stderr } = await this.run(command, seconds);
    if (code !== 0) throw new GuestError(`${command}: code ${code}: ${stderr.trim() || stdout.trim()}`);
    return stdout.replace(/\n$/, '');
  }

  /** One command of QEMU's own protocol on a connection of its own: its answer. */
  async manage<T = unknown>(execute: string, args: object = {}): Promise<T> {
    this.#alive();
    const socket = connect(join(this.options.folder, 'qmp'));
    try {
      socket.write(`${JSON.stringify({ execute: 'qmp_capabilities' })}\n`);
      socket.write(`${JSON.stringify({ execute, arguments: args, id: 'asked' })}\n`);
      for await (const line of createInterface({ input: socket })) {
        const said = JSON.parse(line) as { id?: string; return?: T; error?: { desc: string } };
        if (said.error) throw new GuestError(`${execute}: ${said.error.desc}`);
        if (said.id === 'asked') return said.return as T;
      }
      throw new GuestError(`${execute}: QEMU does not answer`);
    } finally {
      socket.destroy();
    }
  }

  /** Ends without a word to what runs in it, but writes the images' own tables. */
  async quit(): Promise<void> {
    this.#agent?.destroy();
    await this.manage('quit');
    await this.exit;
  }

  /** The end of what its kernel said, for a failure's message. */
  get console(): string {
    return this.#console.slice(-4_000);
  }

  async stop(): Promise<void> {
    this.#ended ??= 'the guest was stopped';
    this.#agent?.destroy();
    this.#child.kill('SIGKILL');
    await this.exit;
  }

  async #attach(): Promise<void> {
    const path = join(this.options.folder, 'agent');
    const bootMs = this.options.bootMs ?? BOOT_MS;
    // A saved one is read before QEMU listens.
    const socket = await until('QEMU listens', () => this.#alive() && opened(path), bootMs);
    socket.on('error', () => {});
    this.#agent = socket;
    createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY }).on('line', line => this.#deliver(line));
    const { code } = await this.run('true', bootMs / 1_000);
    if (code !== 0) throw new GuestError(`the agent answers with ${code}`);
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
    const [stdout = '', stderr = ''] = texts.map(text => Buffer.from(text, 'hex').toString());
    this.#waiting.get(id)?.resolve({ code: Number(code), stdout, stderr });
  }

  #giveUp(why: string): void {
    for (const { reject } of [...this.#waiting.values()]) reject(new GuestError(why));
  }
}

const opened = (path: string): Promise<Socket | undefined> =>
  new Promise(resolve => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(undefined));
  });
