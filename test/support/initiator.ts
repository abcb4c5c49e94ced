/**
 * Hosts that use a target, for tests. Both kinds give the same session:
 *
 *   Initiator      our own: sees every error and the end of its session, keeps many commands in flight
 *   QemuInitiator  qemu-io on libiscsi: somebody else's idea of iSCSI, and it reconnects by itself as kernels do
 *
 *   const session = await new Initiator(iqn).login('127.0.0.1:3260', target, lun, { user, password });
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ChapLogin, LoginRefused } from '#backends/tgt/iscsi-login';
import { IscsiSession } from '#backends/tgt/iscsi-session';
import { ScsiDisk, ScsiError } from '#backends/tgt/scsi-disk';

export { type ChapLogin, LoginRefused, ScsiError };
export type InitiatorSession = ScsiDisk;

export interface HostSession {
  /** A number is one byte, repeated over `length`. Resolves when the target has acknowledged it. */
  write(offset: number, data: Buffer): Promise<void>;
  write(offset: number, pattern: number, length: number): Promise<void>;
  read(offset: number, length: number): Promise<Buffer>;
  /** What READ CAPACITY says now, in bytes. */
  capacity(): Promise<number>;
  close(): Promise<void>;
}

export class Initiator {
  constructor(readonly iqn: string) {}

  /** Rejects with LoginRefused when the target says no. */
  async login(portal: string, target: string, lun: number, chap?: ChapLogin): Promise<ScsiDisk> {
    const at = portal.lastIndexOf(':');
    const address = { host: portal.slice(0, at), port: Number(portal.slice(at + 1)) };
    const session = await IscsiSession.open(address, { initiator: this.iqn, target, chap });
    return new ScsiDisk(session, lun);
  }
}

/** libiscsi's arguments for one unit; the password is in a file of mode 0600, never in argv. */
function imageOptions(
  folder: string,
  iqn: string,
  portal: string,
  target: string,
  lun: number,
  chap?: ChapLogin,
): string[] {
  const options = [
    'driver=iscsi',
    'transport=tcp',
    `portal=${portal}`,
    `target=${target}`,
    `lun=${lun}`,
    `initiator-name=${iqn}`,
  ];
  if (!chap) return ['--image-opts', options.join(',')];
  const file = join(folder, 'chap');
  writeFileSync(file, chap.password, { mode: 0o600 });
  options.push(`user=${chap.user}`, 'password-secret=chap');
  return ['--object', `secret,id=chap,file=${file}`, '--image-opts', options.join(',')];
}

export class QemuInitiator {
  constructor(readonly iqn: string) {}

  /** Rejects with qemu's message when the target says no. */
  async login(portal: string, target: string, lun: number, chap?: ChapLogin): Promise<QemuSession> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-qemu-'));
    const args = ['-t', 'none', ...imageOptions(folder, this.iqn, portal, target, lun, chap)];
    const session = new QemuSession(spawn('qemu-io', args, { stdio: 'pipe' }), folder);
    await session.ready();
    return session;
  }
}

const PROMPT = 'qemu-io> ';

export class QemuSession implements HostSession {
  #output = '';
  #errors = '';
  #turn: { resolve(text: string): void; reject(error: Error): void } | undefined;
  readonly #ended: Promise<void>;
  #isOver = false;

  constructor(
    private readonly child: ChildProcessWithoutNullStreams,
    private readonly folder: string,
  ) {
    child.stdout.on('data', chunk => {
      this.#output += chunk;
      this.#deliver();
    });
    child.stderr.on('data', chunk => {
      this.#errors += chunk;
    });
    child.stdin.on('error', () => {});
    this.#ended = new Promise(resolve => {
      const end = (): void => {
        this.#isOver = true;
        rmSync(this.folder, { recursive: true, force: true });
        this.#turn?.reject(new Error(this.#errors.trim() || 'qemu-io ended'));
        resolve();
      };
      child.once('error', error => {
        this.#errors += error.message;
        end();
      });
      child.once('close', end);
    });
  }

  async ready(): Promise<void> {
    await this.#answer();
  }

  async write(offset: number, data: Buffer | number, length?: number): Promise<void> {
    if (typeof data === 'number') return void (await this.#command(`write -P ${data} ${offset} ${length}`));
    const file = join(this.folder, 'data');
    writeFileSync(file, data);
    await this.#command(`write -s ${file} ${offset} ${data.length}`);
  }

  async read(offset: number, length: number): Promise<Buffer> {
    const dump = await this.#command(`read -v ${offset} ${length}`);
    const rows = dump.match(/^[0-9a-f]{8,}:( {1,2}[0-9a-f]{2}){1,16}/gm) ?? [];
    return Buffer.from(rows.map(row => row.slice(row.indexOf(':') + 1).replaceAll(' ', '')).join(''), 'hex');
  }

  async flush(): Promise<void> {
    await this.#command('flush');
  }

  /** What it saw at login: qemu asks once. */
  async capacity(): Promise<number> {
    const [, amount, unit] = (await this.#command('length')).match(/([\d.]+) (bytes|KiB|MiB|GiB|TiB)/) ?? [];
    return Number(amount) * { bytes: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 }[unit as 'KiB'];
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    this.child.stdin.end('quit\n');
    await this.#ended;
  }

  /** Like a host that loses its power. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#ended;
  }

  async #command(line: string): Promise<string> {
    const before = this.#errors.length;
    this.child.stdin.write(`${line}\n`);
    const text = await this.#answer();
    const failure = /^.*(failed|error).*$/im.exec(text + this.#errors.slice(before));
    if (failure) throw new Error(failure[0]);
    return text;
  }

  #answer(): Promise<string> {
    if (this.#isOver) return Promise.reject(new Error(this.#errors.trim() || 'qemu-io ended'));
    return new Promise((resolve, reject) => {
      this.#turn = { resolve, reject };
      this.#deliver();
    });
  }

  #deliver(): void {
    const at = this.#output.indexOf(PROMPT);
    if (at < 0 || !this.#turn) return;
    const text = this.#output.slice(0, at);
    this.#output = this.#output.slice(at + PROMPT.length);
    const { resolve } = this.#turn;
    this.#turn = undefined;
    resolve(text);
  }
}
