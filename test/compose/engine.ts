import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { until } from '#test/support/parts';
import { type Tree, treeToRelease } from '#test/support/tree-to-release';
import type { Logins } from './client.js';

export const CSP_PASSWORD = '/run/trivet-secrets/csp-password';
const BEYOND_MS = 900_000;
const MACHINE = join(PACKAGE_ROOT, 'test', 'compose', 'machine');
const CGROUPS = '/sys/fs/cgroup';

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}
interface More {
  input?: string;
  env?: object;
  cwd?: string;
}

/** Without BuildKit, which Debian's engine has not. It has no bridge of its own. */
const BUILD = ['build', '--quiet', '--network', 'host', '--tag'];

/** What images are built from, and where their docker-compose.yml stands. */
interface Sources {
  /** Of this tree. */
  tree: Tree;
  /** Of the release before, if the test wants it: `trivet:before` is of it. */
  before: string;
}

/**
 * A Docker engine of a test file's own, with the images of this tree. It has no network but what it makes itself: a host without one. Its
 * folder keeps images from run to run and serves one engine at a time; another test file waits for it.
 */
export class Engine {
  /** Of Compose, besides those that a call has. */
  settings: Record<string, string> = {};

  private constructor(
    private readonly folder: string,
    private readonly outer: ChildProcess,
    readonly sources: Sources,
  ) {}

  static async start(folder: string, commitBefore?: string): Promise<Engine> {
    const work = mkdtempSync(join(tmpdir(), 'trivet-engine-'));
    try {
      const sources = { tree: treeToRelease(join(work, 'tree')), before: join(work, 'before') };
      const builder = await Engine.run(folder, 'shared', sources);
      try {
        if (commitBefore !== undefined) {
          treeOf(commitBefore, sources.before);
          await builder.build('trivet:before', sources.before, commitBefore);
        }
        await builder.build('trivet:0.1.0', sources.tree.folder, sources.tree.commit, sources.tree.seconds);
        await builder.docker(...BUILD, 'trivet-rgw:0.1.0', join(PACKAGE_ROOT, 'deploy/rgw'));
        // Of former trees.
        await builder.docker('image', 'prune', '--force', '--filter', 'until=48h');
      } finally {
        await builder.end();
      }
      const engine = await Engine.run(folder, 'own', sources);
      await engine.clear();
      return engine;
    } catch (error) {
      rmSync(work, { recursive: true, force: true });
      throw error;
    }
  }

  private static async run(folder: string, network: 'own' | 'shared', sources: Sources): Promise<Engine> {
    const log = openSync(join(folder, 'engine.log'), 'w');
    const outer = spawn('sh', [join(MACHINE, 'engine.sh'), folder, network], { stdio: ['ignore', log, log] });
    const engine = new Engine(folder, outer, sources);
    await until(
      'the engine answers',
      async () => {
        if (outer.exitCode !== null) throw new Error(readFileSync(join(folder, 'engine.log'), 'utf8').slice(-2_000));
        return engine.inner !== undefined && (await engine.run('docker', ['version'])).code === 0;
      },
      BEYOND_MS,
    );
    return engine;
  }

  /** As deploy/release/make.sh builds it, so that what is built serves both. */
  private build(name: string, at: string, commit: string, seconds = ''): Promise<string> {
    const about = ['--build-arg', `BUILD_COMMIT=${commit.slice(0, 12)}`, '--build-arg', `SOURCE_DATE_EPOCH=${seconds}`];
    return this.docker(...BUILD, name, '--file', join(at, 'deploy/docker/Dockerfile'), ...about, at);
  }

  /** Of a Dockerfile, with the files of a folder. */
  buildOf(name: string, dockerfile: string, folder: string): Promise<string> {
    return this.must('docker', ['build', '--quiet', '--network', 'none', '--tag', name, '--file', '-', folder], {
      input: dockerfile,
    });
  }

  /** A command that deploy/README.md has, in the folder of this tree or of the release before. */
  asDocumented(command: string, cwd = PACKAGE_ROOT): Promise<string> {
    return this.must('sh', ['-euc', command], { cwd });
  }

  /** Makes a release of this tree, with its image, into that folder; resolves to what is said. */
  release(folder: string): Promise<string> {
    const { tree } = this.sources;
    return this.must(join(tree.folder, 'deploy/release/make.sh'), [folder, '--image'], { env: { HOME: tree.folder } });
  }

  /** The first process in its namespaces; undefined while it waits for the folder. */
  private get inner(): string | undefined {
    const children = `/proc/${this.outer.pid}/task/${this.outer.pid}/children`;
    return (existsSync(children) && readFileSync(children, 'utf8').trim()) || undefined;
  }

  private run(program: string, args: string[], { input = '', env = {}, cwd = PACKAGE_ROOT } = {}): Promise<Outcome> {
    const settings = {
      PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
      HOME: this.folder,
      DOCKER_HOST: `unix://${this.folder}/docker.sock`,
      DOCKER_CONFIG: join(this.folder, 'config'),
      // Debian's engine has no other builder than its own.
      DOCKER_BUILDKIT: '0',
      ...this.settings,
      ...env,
    };
    return new Promise(resolve => {
      const options = { cwd, env: settings, timeout: BEYOND_MS, maxBuffer: 64 * 1024 ** 2 };
      const child = execFile(program, args, options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      );
      child.stdin!.end(input);
    });
  }

  private async must(program: string, args: string[], more?: More): Promise<string> {
    const { code, stdout, stderr } = await this.run(program, args, more);
    if (code !== 0)
      throw new Error(
        `${program} ${args.join(' ')}\nended with ${code}: ${stdout.slice(-4_000)}${stderr.slice(-4_000)}`,
      );
    return stdout;
  }

  docker(...args: string[]): Promise<string> {
    return this.must('docker', args);
  }

  /** Of what docker-compose.yml describes, in this tree unless another one is named. */
  compose(args: string[], env: Record<string, string> = {}, cwd = PACKAGE_ROOT): Promise<string> {
    return this.must('docker', ['compose', ...args], { env, cwd });
  }

  /** As `compose`, whatever comes of it. */
  tryCompose(...args: string[]): Promise<Outcome> {
    return this.run('docker', ['compose', ...args]);
  }

  /** A command of Trivet, as deploy/README.md has it. */
  trivet(...args: string[]): Promise<string> {
    return this.compose(['run', '--rm', '--no-TTY', 'cli', ...args]);
  }

  /** A program of this machine on the network of that host. */
  onHost(program: string, args: string[], input = ''): Promise<string> {
    return this.must('nsenter', ['--target', this.inner!, '--net', program, ...args], { input });
  }

  /** What test/compose/client.ts does, on the network of that host. */
  async client(job: 'leave' | 'change' | 'find'): Promise<void> {
    const read = async (path: string) => (await this.compose(['exec', '--no-TTY', 'gateway', 'cat', path])).trim();
    const logins: Logins = {
      accessKeyId: await read('/run/rgw-keys/access-key'),
      secretAccessKey: await read('/run/rgw-keys/secret-key'),
      password: await read(CSP_PASSWORD),
    };
    const program = join(PACKAGE_ROOT, 'dist/test/compose/client.js');
    await this.onHost(process.execPath, [program, job], JSON.stringify(logins));
  }

  async container(service: string): Promise<string> {
    return (await this.compose(['ps', '--all', '--quiet', service])).trim();
  }

  async inspect(service: string, format: string): Promise<string> {
    return (await this.docker('inspect', '--format', format, await this.container(service))).trim();
  }

  /** Its processes die; nobody stops it. Resolves when it runs again and is healthy. */
  async kill(service: string): Promise<void> {
    const starts = await this.inspect(service, '{{.RestartCount}}');
    const pid = await this.inspect(service, '{{.State.Pid}}');
    await this.must('nsenter', ['--target', this.inner!, '--pid', 'sh', '-c', `kill -9 ${pid}`]);
    await until(
      `${service} is started again`,
      async () => (await this.inspect(service, '{{.RestartCount}} {{.State.Health.Status}}')) !== `${starts} healthy`,
    );
    await until(`${service} is healthy`, async () => (await this.health(service)) === 'healthy', 240_000);
  }

  /** Of the image of this tree. */
  async image(format: string): Promise<string> {
    return (await this.docker('image', 'inspect', '--format', format, 'trivet:0.1.0')).trim();
  }

  health(service: string): Promise<string> {
    return this.inspect(service, '{{.State.Health.Status}}');
  }

  async volumes(): Promise<string[]> {
    return (await this.docker('volume', 'ls', '--quiet')).split('\n').filter(name => name !== '');
  }

  /** What an interrupted run has left. */
  private async clear(): Promise<void> {
    const containers = (await this.docker('ps', '--all', '--quiet')).split('\n').filter(id => id !== '');
    if (containers.length > 0) await this.docker('rm', '--force', '--volumes', ...containers);
    const volumes = await this.volumes();
    if (volumes.length > 0) await this.docker('volume', 'rm', ...volumes);
    await this.docker('network', 'prune', '--force');
  }

  async stop(): Promise<void> {
    await this.end();
    rmSync(dirname(this.sources.tree.folder), { recursive: true, force: true });
  }

  private async end(): Promise<void> {
    const { inner, outer } = this;
    const ended = new Promise(resolve => outer.once('exit', resolve));
    if (outer.exitCode === null) {
      if (inner !== undefined) process.kill(Number(inner), 'SIGTERM');
      else outer.kill();
      await ended;
    }
    removeGroups();
  }
}

/** The sources of a commit of this repository. */
function treeOf(commit: string, folder: string): void {
  mkdirSync(folder);
  const line = 'git -C "$1" archive "$2" | tar --extract --directory "$3"';
  execFileSync('sh', ['-c', line, 'sh', PACKAGE_ROOT, commit, folder]);
}

/** Of its containers, which the kernel empties when they end, and nobody removes. */
function removeGroups(): void {
  const removeAll = (folder: string): void => {
    if (!existsSync(folder)) return;
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) removeAll(join(folder, entry.name));
    rmdirSync(folder);
  };
  for (const controller of ['', ...readdirSync(CGROUPS)]) removeAll(join(CGROUPS, controller, 'trivet-tests'));
}
