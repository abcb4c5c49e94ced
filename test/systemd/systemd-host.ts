/**
 * A Debian host with a systemd of its own as its first process: in namespaces and a control group, on this machine's kernel. PostgreSQL,
 * Redis and tgt are installed, and nothing of Trivet. Needs root. Its mounts and processes end with it.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { NetworkHost } from '#test/support/network';
import { until } from '#test/support/parts';
import { keep } from '../../apps/cli/src/parts/kept.js';

const run = promisify(execFile);
const PACKAGES = 'systemd,systemd-sysv,dbus,iproute2,postgresql,redis-server,tgt,openssl,curl';
const MAKE_MS = 1_800_000;
/** A busy machine. */
export const BEYOND_MS = 300_000;
const BOOT = join(PACKAGE_ROOT, 'test/systemd/machine/boot.sh');
const READY = { 'trivet-gateway': 8740, 'trivet-worker': 8746 } as const;

export type Service = keyof typeof READY;

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Where control groups of the second version are; undefined: a systemd cannot run here. */
export function controlGroups(): string | undefined {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  return mounts.map(line => line.split(' ')).find(([, , type]) => type === 'cgroup2')?.[1];
}

/** Made once for all runs of this machine; nothing writes to it. */
function base(release: string): Promise<string> {
  return keep({
    sort: 'systemd',
    name: `${release}-${createHash('sha256').update(PACKAGES).digest('hex').slice(0, 8)}`,
    signal: AbortSignal.timeout(MAKE_MS),
    make: async begun => {
      const alone = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
      const made = ['debootstrap', '--variant=minbase', `--include=${PACKAGES}`, release, begun];
      await run('unshare', [...alone, ...made], { timeout: MAKE_MS, maxBuffer: 64 * 1024 ** 2 });
    },
  });
}

export interface HostOptions {
  release: string;
  /** Of its /opt/trivet. */
  tree: string;
  /** On whose network it is. */
  at: NetworkHost;
}

export class SystemdHost {
  private outer!: ChildProcess;
  private first = 0;
  private bootedAt = 0;

  private constructor(
    private readonly folder: string,
    private readonly group: string,
    private readonly options: HostOptions,
  ) {}

  static async boot(options: HostOptions): Promise<SystemdHost> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-systemd-'));
    const host = new SystemdHost(folder, join(controlGroups()!, `trivet-${process.pid}`), options);
    try {
      const root = join(folder, 'root');
      await run('cp', ['--archive', '--no-target-directory', await base(options.release), root]);
      for (const at of ['opt/trivet', 'srv/trivet']) mkdirSync(join(root, at), { recursive: true });
      writeFileSync(join(root, 'etc/fstab'), '');
      await run('truncate', ['--size=2G', join(folder, 'pool.img')]);
      await run('mkfs.xfs', ['-q', join(folder, 'pool.img')]);
      await host.#powerOn();
      return host;
    } catch (error) {
      await host.stop();
      throw error;
    }
  }

  async #powerOn(): Promise<void> {
    const { folder, group, options } = this;
    if (!existsSync(group)) mkdirSync(group);
    this.bootedAt = Math.floor(Date.now() / 1_000);
    const alone = 'unshare --mount --pid --fork --kill-child --uts --ipc --cgroup';
    const inGroup = ['sh', '-euc', `echo 0 > "$0/cgroup.procs"; exec ${alone} sh "$@"`, group];
    const [program, ...args] = [...options.at.onNetwork, ...inGroup, BOOT, join(folder, 'root'), options.tree];
    this.outer = spawn(program!, [...args, join(folder, 'pool.img')], { stdio: ['ignore', 'ignore', 'inherit'] });
    this.first = await until('systemd runs', () => {
      if (this.outer.exitCode !== null) throw new Error(`the host did not boot: ${this.outer.exitCode}`);
      return systemdBelow(this.outer.pid!);
    });
    await until(
      'systemd answers',
      async () => (await this.run('systemctl show --property=Version')).code === 0,
      BEYOND_MS,
    );
  }

  /** systemd stops all, and the host boots again. Resolves to the seconds that the former took. */
  async reboot(): Promise<number> {
    const ended = new Promise(resolve => this.outer.once('exit', resolve));
    const begin = performance.now();
    await this.must('systemctl --no-block reboot');
    await ended;
    const seconds = (performance.now() - begin) / 1_000;
    await this.#powerOn();
    return seconds;
  }

  run(command: string): Promise<CommandResult> {
    const enter = [
      '--target',
      String(this.first),
      '--mount',
      '--pid',
      '--net',
      '--uts',
      '--ipc',
      '--cgroup',
      '--root',
      '--wd',
    ];
    const env = {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      LC_ALL: 'C.UTF-8',
    };
    return new Promise(resolve =>
      execFile('nsenter', [...enter, 'bash', '-c', command], { env, timeout: BEYOND_MS }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      ),
    );
  }

  /** Resolves to what it printed, without the last line's end. */
  async must(command: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(command);
    if (code !== 0) {
      const { stdout: journal } = await this.run("journalctl --no-pager --lines 20 --unit 'trivet-*'");
      throw new Error(`${command}\nended with ${code}: ${stdout}${stderr}${journal}`);
    }
    return stdout.replace(/\n$/, '');
  }

  /** Of `systemctl show`. */
  property(unit: string, name: string): Promise<string> {
    return this.must(`systemctl show --property=${name} --value ${unit}`);
  }

  /** Whether a unit's journal has this since the boot, which journald takes for that of this machine. */
  async says(unit: string, words: string): Promise<boolean> {
    return (await this.must(`journalctl --since=@${this.bootedAt} --no-pager --unit ${unit}`)).includes(words);
  }

  /** The status of its /readyz; 0 where nobody answers. */
  async readiness(service: Service): Promise<number> {
    const ask = `curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:${READY[service]}/readyz`;
    return Number((await this.run(ask)).stdout);
  }

  async isReady(service: Service): Promise<void> {
    await until(`${service} is ready`, async () => (await this.readiness(service)) === 200, BEYOND_MS).catch(
      async error => {
        const { stdout } = await this.run("journalctl --no-pager --lines 40 --unit 'trivet-*'; systemctl --failed");
        throw new Error(`${error.message}\n${stdout}`);
      },
    );
  }

  /** Each with its number and program, that systemd counts to a unit. */
  async processesOf(unit: string): Promise<string[]> {
    const group = `/sys/fs/cgroup/system.slice/${unit}.service/cgroup.procs`;
    const list = `for pid in $(cat ${group} 2> /dev/null); do echo "$pid $(cat /proc/$pid/comm)"; done`;
    return (await this.must(list)).split('\n').filter(line => line !== '');
  }

  async stop(): Promise<void> {
    if (this.first && existsSync(`/proc/${this.first}`)) {
      const ended = new Promise(resolve => this.outer.once('exit', resolve));
      process.kill(this.first, 'SIGKILL');
      await ended;
    }
    await until('nothing of it runs', () => !existsSync(this.group) || isEmpty(this.group));
    removeGroup(this.group);
    await run('rm', ['-rf', '--one-file-system', this.folder]);
  }
}

const childrenOf = (pid: number): number[] => {
  const file = `/proc/${pid}/task/${pid}/children`;
  return existsSync(file) ? readFileSync(file, 'utf8').split(' ').filter(Boolean).map(Number) : [];
};

/** Behind what enters and makes the namespaces. */
function systemdBelow(pid: number): number | undefined {
  for (const child of childrenOf(pid)) {
    if (readFileSync(`/proc/${child}/comm`, 'utf8') === 'systemd\n') return child;
    const found = systemdBelow(child);
    if (found) return found;
  }
  return undefined;
}

const isEmpty = (group: string): boolean => readFileSync(join(group, 'cgroup.events'), 'utf8').includes('populated 0');

function removeGroup(group: string): void {
  if (!existsSync(group)) return;
  for (const entry of readdirSync(group, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroup(join(group, entry.name));
  rmdirSync(group);
}
