import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parts } from '#test/support/parts';
import { CSP_PASSWORD, Engine } from './engine.js';

const { docker } = parts();
const MIB = 1024 ** 2;
const SERVICES = ['postgres', 'redis', 'rgw', 'gateway', 'worker'];
const TOKEN = '/var/lib/trivet-cli/token';

/** In the order of a first day. */
describe.skipIf(!docker)('docker-compose.yml', { timeout: 900_000 }, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await Engine.start(docker!.folder);
  }, 900_000);
  afterAll(async () => {
    await engine?.tryCompose('--profile', 'cli', 'down', '--volumes', '--timeout', '1');
    await engine?.stop();
  }, 300_000);

  const allHealthy = async () => {
    for (const service of SERVICES) expect(await engine.health(service), service).toBe('healthy');
  };

  it('comes up on a host without network, with an image that is given, and builds none', async () => {
    await engine.docker('tag', 'trivet:0.1.0', 'given/trivet:1.2.3');
    await engine.docker('tag', 'trivet-rgw:0.1.0', 'given/rgw:1.2.3');
    const given = { APPLIANCE_IMAGE: 'given/trivet:1.2.3', RGW_IMAGE: 'given/rgw:1.2.3' };
    await engine.compose(['up', '--detach', '--wait'], given);
    await allHealthy();
    expect(await engine.inspect('gateway', '{{.Config.Image}}')).toBe(given.APPLIANCE_IMAGE);
    expect(await engine.inspect('rgw', '{{.Config.Image}}')).toBe(given.RGW_IMAGE);
    // That built from this tree.
    await engine.compose(['up', '--detach', '--wait']);
    expect(await engine.inspect('gateway', '{{.Config.Image}}')).toBe('trivet:0.1.0');
    await allHealthy();
  });

  it('is released with that image, of less than 350 MB, for a user without rights and without what builds', async () => {
    const built = await engine.image('{{.Id}}');
    const bytes = Number(await engine.image('{{.Size}}'));
    process.stdout.write(`the image: ${Math.round(bytes / 1e6)} MB\n`);
    expect(bytes).toBeLessThan(350e6);
    const { commit } = engine.sources.tree;
    const { User, Labels } = JSON.parse(await engine.image('{{json .Config}}'));
    expect(User).toBe('10001:10001');
    expect(Labels).toEqual({
      'org.opencontainers.image.title': 'Trivet',
      'org.opencontainers.image.description': expect.any(String),
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': '0.1.0',
      'org.opencontainers.image.revision': commit.slice(0, 12),
    });
    const alone = ['run', '--rm', '--network', 'none'];
    expect(await engine.docker(...alone, 'trivet:0.1.0', '--version')).toContain(commit.slice(0, 12));
    const builders = 'npm npx corepack yarn cc gcc c++ g++ ld make python3 git tsc';
    const look = `for program in ${builders}; do command -v $program || :; done`;
    expect(await engine.docker(...alone, '--entrypoint', 'sh', 'trivet:0.1.0', '-c', look)).toBe('');

    const folder = join(engine.sources.tree.folder, '..', 'release');
    expect(await engine.release(folder)).toBe(readFileSync(join(folder, 'SHA256SUMS'), 'utf8'));
    await promisify(execFile)('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder });
    expect(await engine.image('{{.Id}}'), 'nothing was built again').toBe(built);
    const archive = 'trivet-0.1.0-image-linux-amd64.tar.gz';
    expect(readdirSync(folder)).toEqual(expect.arrayContaining([archive, 'trivet-0.1.0.cdx.json']));
    expect(await engine.docker('load', '--input', join(folder, archive))).toContain('trivet:0.1.0');
    expect(await engine.image('{{.Id}}')).toBe(built);
  });

  it('runs the demo: buckets with objects, and a volume over iSCSI with CHAP', async () => {
    const said = await engine.trivet('demo');
    for (const step of [
      'writer puts hello.txt',
      'reader gets hello.txt',
      'a login without the password is refused',
      'writes 4 MiB, and reads them',
      'the clone has what was written first',
      'demo: done, and nothing is left behind',
    ])
      expect(said).toContain(step);
    expect(said).not.toContain('skipped');
  });

  it('has its commands ask the API, with a token that is no argument', async () => {
    const ask = ['--login', 'admin@appliance', '--password-file', '/run/trivet-secrets/admin-password'];
    expect((await engine.tryCompose('run', '--rm', '--no-TTY', 'cli', 'volume', 'list')).stderr).toContain(TOKEN);
    await engine.trivet('token', 'create', 'console', ...ask, '--output', TOKEN);
    expect(await engine.trivet('volume', 'list')).toContain('no volumes yet');
    await engine.client('leave');
    expect(await engine.trivet('volume', 'list')).toMatch(/\bkept\b/);
  });

  it('reads changed blocks', async () => {
    const door = ['--url', 'http://127.0.0.1:8740', '--user', 'csp', '--password-file', CSP_PASSWORD];
    const backUp = async () =>
      JSON.parse(await engine.trivet('backup', 'create', 'kept', '/var/lib/trivet-cli/kept', ...door, '--json'));
    const all = await backUp();
    await engine.client('change');
    const changed = await backUp();
    expect(all).toMatchObject({ kind: 'full', changedBytes: 2 * MIB, ranges: 2 });
    expect(changed).toMatchObject({ kind: 'incremental', changedBytes: MIB, ranges: 1 });
  });

  it('keeps everything when it is taken down and brought up, and leaves no volume without a name', async () => {
    await engine.compose(['down']);
    const volumes = await engine.volumes();
    expect(volumes.filter(name => !name.startsWith('trivet_'))).toEqual([]);
    expect(volumes).toContain('trivet_postgres');
    await engine.compose(['up', '--detach', '--wait']);
    expect(await engine.trivet('volume', 'list')).toMatch(/\bkept\b/);
    await engine.client('find');
  });

  it.each(SERVICES)('goes on when %s is killed', async service => {
    await engine.kill(service);
    expect(await engine.trivet('volume', 'list')).toMatch(/\bkept\b/);
  });

  it('has lost nothing by that, and runs the demo again', async () => {
    await allHealthy();
    await engine.client('find');
    expect(await engine.trivet('demo')).toContain('demo: done, and nothing is left behind');
  });

  it('leaves nothing when it is taken down with its volumes', async () => {
    await engine.compose(['--profile', 'cli', 'down', '--volumes']);
    expect(await engine.volumes()).toEqual([]);
    expect(await engine.docker('ps', '--all', '--quiet')).toBe('');
    expect(await engine.docker('network', 'ls', '--quiet', '--filter', 'driver=bridge')).toBe('');
  });
});
