import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#platform/package-root';
import { until } from '#test/support/parts';
import { keep } from '../../apps/cli/src/parts/kept.js';

const run = promisify(execFile);

const BEYOND_MS = 600_000;
const UBUNTU = 'noble';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** What this machine trusts and how it reaches registries holds in there too. */
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const SETTINGS = /^(https?_proxy|no_proxy|npm_config_registry)$/i;

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

export interface Person {
  name: string;
  home: string;
  /** Before the PATH of the system. */
  bin?: string;
}
export const ROOT: Person = { name: 'root', home: '/root' };

/**
 * A Debian with nothing in it, in a folder of its own and in namespaces for its mounts and processes: when they end,
 * nothing of it is left. It shares the network of this machine, whose free ports Trivet takes.
 */
export class BareDebian {
  private constructor(
    private readonly folder: string,
    private readonly outer: ChildProcess,
    /** Its first process, as this machine sees it. */
    private readonly pid: number,
  ) {}

  static async start(release: string): Promise<BareDebian> {
    const base = await minbase(release);
    const folder = mkdtempSync(join(tmpdir(), `trivet-${release}-`));
    await run('cp', ['--archive', '--no-target-directory', base, join(folder, 'root')]);
    const root = join(folder, 'root');
    mkdirSync(join(root, 'etc/ssl/certs'), { recursive: true });
    for (const file of ['/etc/resolv.conf', CERTIFICATES]) if (existsSync(file)) copyFileSync(file, join(root, file));
    // README's commands, without the questions and the packages that are only recommended.
    writeFileSync(
      join(root, 'etc/apt/apt.conf.d/90tests'),
      'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\nAPT::Install-Suggests "false";\n',
    );
    // dpkg waits for the disk after each file, and this tree is thrown away.
    writeFileSync(join(root, 'etc/dpkg/dpkg.cfg.d/90tests'), 'force-unsafe-io\n');
    // A shell that waits collects whoever loses its parent.
    const init = `mount --make-rprivate / && mount --bind "$1" "$1" && mount -t proc proc "$1/proc" &&
      mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/run" && cd "$1" &&
      exec chroot "$1" sh -c 'echo "$$" >/run/up; sleep infinity & while :; do wait; done'`;
    const outer = spawn('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', init, 'sh', root], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const children = `/proc/${outer.pid}/task/${outer.pid}/children`;
    const pid = await until('its first process runs', () => Number(readFileSync(children, 'utf8').trim()) || undefined);
    const debian = new BareDebian(folder, outer, pid);
    await until('it is entered', async () => (await debian.sh('test -e /run/up')).code === 0);
    return debian;
  }

  /** A path in there, seen from here. */
  path(inside: string): string {
    return join(this.folder, 'root', inside);
  }

  /** Runs a line of shell in there. */
  sh(line: string, { as = ROOT, at = '/' }: { as?: Person; at?: string } = {}): Promise<Outcome> {
    const env = {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => SETTINGS.test(name))),
      PATH: as.bin === undefined ? PATH : `${as.bin}:${PATH}`,
      HOME: as.home,
      USER: as.name,
      LANG: 'C.UTF-8',
      NODE_EXTRA_CA_CERTS: CERTIFICATES,
      DEBIAN_FRONTEND: 'noninteractive',
    };
    const enter = ['--target', String(this.pid), '--mount', '--pid', '--root', '--wd'];
    const become = as === ROOT ? [] : ['setpriv', '--reuid', as.name, '--regid', as.name, '--init-groups'];
    const args = [...enter, ...become, 'sh', '-c', `cd '${at}' && ${line}`];
    return new Promise(resolve => {
      execFile('nsenter', args, { env, timeout: BEYOND_MS, maxBuffer: 64 * 1024 ** 2 }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      );
    });
  }

  /** As `sh`, for what has to succeed; resolves to its stdout. */
  async must(line: string, options?: { as?: Person; at?: string }): Promise<string> {
    const { code, stdout, stderr } = await this.sh(line, options);
    if (code !== 0) throw new Error(`${line}\nended with ${code}:\n${stdout.slice(-4_000)}${stderr.slice(-4_000)}`);
    return stdout;
  }

  /** The tree that this test is of, without what is built or installed, as a clone has it. */
  async putClone(at: string): Promise<void> {
    mkdirSync(this.path(at), { recursive: true });
    const files =
      'git ls-files -z --cached --others --exclude-standard | tar --null --files-from - --create --ignore-failed-read';
    await run('sh', [
      '-c',
      `cd "$1" && ${files} | tar --extract --no-same-owner --directory "$2"`,
      'sh',
      PACKAGE_ROOT,
      this.path(at),
    ]);
  }

  /** What is built of this tree, tests too, as the launcher built it here: whoever has the same tree and the Node of the lock file builds the same. */
  async putBuilt(at: string): Promise<void> {
    const line = `mkdir -p "$2/dist" && tar --create --exclude=./.compile-cache --exclude='./.lock*' --directory "$1/dist" . |
      tar --extract --no-same-owner --directory "$2/dist" && find "$2/dist" -maxdepth 1 -name '.*built*' -exec touch {} +`;
    await run('sh', ['-euc', line, 'sh', PACKAGE_ROOT, this.path(at)]);
  }

  /** What npm has loaded for one is there for the other. */
  async shareNpmCache(from: Person, to: Person): Promise<void> {
    if (from.home === to.home) return;
    await this.must(`cp -R ${from.home}/.npm ${to.home}/.npm && chown -R ${to.name}: ${to.home}/.npm`);
  }

  /** Programs of processes in there, but the first one, its child, and who asks. */
  async processes(): Promise<string[]> {
    const list = `for p in /proc/[0-9]*; do [ "$p" = "/proc/$$" ] || tr '\\0' ' ' <"$p/cmdline" 2>/dev/null; echo; done`;
    const lines = (await this.must(list)).split('\n').map(line => line.trim());
    return lines.filter(line => line !== '' && !/^(sh -c (echo|cd)|sleep infinity|tr )/.test(line));
  }

  async mounts(): Promise<string[]> {
    const lines = (await this.must('cat /proc/self/mounts')).trim().split('\n');
    return lines.map(line => line.split(' ')[1] as string).filter(point => !/^\/(proc|sys|dev|run)?(\/|$)/.test(point));
  }

  async stop(): Promise<void> {
    const ended = new Promise(resolve => this.outer.once('exit', resolve));
    this.outer.kill('SIGKILL');
    await ended;
    // The kernel ends the namespace's processes, then its mounts; until then the folder is busy.
    await until('nothing of it runs', () => !existsSync(`/proc/${this.pid}`));
    // 100,000 files.
    await run('rm', ['-rf', '--one-file-system', this.folder]);
  }
}

/** Made once for all runs of this machine: debootstrap's minbase of a release, which nothing writes to. */
const minbase = (release: string): Promise<string> =>
  keep({
    sort: 'debian',
    name: release,
    signal: AbortSignal.timeout(BEYOND_MS),
    make: async begun => {
      const alone = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
      const make =
        release === UBUNTU
          ? ['sh', join(PACKAGE_ROOT, 'test', 'install', `${UBUNTU}.sh`), begun]
          : ['debootstrap', '--variant=minbase', '--include=ca-certificates', release, begun];
      await run('unshare', [...alone, ...make], { timeout: BEYOND_MS, maxBuffer: 64 * 1024 ** 2 });
    },
  });
