import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, openSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { until } from '#test/support/parts';

const BEYOND_MS = 900_000;
const MACHINE = join(PACKAGE_ROOT, 'test', 'compose', 'machine');
const CGROUPS = '/sys/fs/cgroup';

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * A Docker engine of a test file's own, with the images of this tree. It has no network but what it makes itself: a host without one. Its
 * folder keeps images from run to run and serves one engine at a time; another test file waits for it.
 */
export class Engine {
  private constructor(
    private readonly folder: string,
    private readonly outer: ChildProcess,
  ) {}

  static async start(folder: string): Promise<Engine> {
    const builder = await Engine.run(folder, 'shared');
    try {
      const build = ['build', '--quiet', '--network', 'host', '--tag'];
      await builder.docker(
        ...build,
        'trivet:0.1.0',
        '--file',
        join(PACKAGE_ROOT, 'deploy/docker/Dockerfile'),
        PACKAGE_ROOT,
      );
      await builder.docker(...build, 'trivet-rgw:0.1.0', join(PACKAGE_ROOT, 'deploy/rgw'));
      // Of former trees.
      await builder.docker('image', 'prune', '--force', '--filter', 'until=48h');
    } finally {
      await builder.stop();
    }
    const engine = await Engine.run(folder, 'own');
    await engine.clear();
    return engine;
  }

  private static async run(folder: string, network: 'own' | 'shared'): Promise<Engine> {
    const log = openSync(join(folder, 'engine.log'), 'w');
    const outer = spawn('sh', [join(MACHINE, 'engine.sh'), folder, network], { stdio: ['ignore', log, log] });
    const engine = new Engine(folder, outer);
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

  /** The first process in its namespaces; undefined while it waits for the folder. */
  private get inner(): string | undefined {
    const children = `/proc/${this.outer.pid}/task/${this.outer.pid}/children`;
    return (existsSync(children) && readFileSync(children, 'utf8').trim()) || undefined;
  }

  private run(program: string, args: string[], { input = '', env = {} } = {}): Promise<Outcome> {
    const settings = {
      PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
      HOME: this.folder,
      DOCKER_HOST: `unix://${this.folder}/docker.sock`,
      DOCKER_CONFIG: join(this.folder, 'config'),
      // Debian's engine has no other builder than its own.
      DOCKER_BUILDKIT: '0',
      ...env,
    };
    return new Promise(resolve => {
      const options = { cwd: PACKAGE_ROOT, env: settings, timeout: BEYOND_MS, maxBuffer: 64 * 1024 ** 2 };
      const child = execFile(program, args, options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      );
      child.stdin!.end(input);
    });
  }

  private async must(program: string, args: string[], more?: { input?: string; env?: object }): Promise<string> {
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

  /** Of what docker-compose.yml describes, in this tree. */
  compose(args: string[], env: Record<string, string> = {}): Promise<string> {
    return this.must('docker', ['compose', ...args], { env });
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
