import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RealDriver } from '#test/csp/driver-client';
import { hasTgt } from '#test/exporter/tgt-harness';
import { freePort } from '#test/support/free-port';
import { Initiator, type InitiatorSession } from '#test/support/initiator';
import { parts, until } from '#test/support/parts';
import { daemonsOf } from '#test/support/tgt-daemons';
import { processesOf, type TestHome, TestHomes } from './cli.js';

/** One home with block volumes, and no Ceph of its own; each test finds it as the one before left it. */
const homes = new TestHomes();
const home = withoutCeph('mine');
const NODE = {
  name: 'node-a',
  uuid: '41302701-0196-420f-b319-834a79891db0',
  iqns: ['iqn.1994-05.com.redhat:node-a'],
  networks: ['127.0.0.1/8'],
};
const MIB = 1024 ** 2;
const DATA = Buffer.from('written before everything was killed'.padEnd(512, '.'));

function withoutCeph(name: string): TestHome {
  const { rgw } = parts();
  const made = homes.at(name);
  Object.assign(made.settings, {
    TRIVET_RGW_ENDPOINT: rgw!.endpoint,
    TRIVET_RGW_ACCESS_KEY_FILE: rgw!.accessKeyFile,
    TRIVET_RGW_SECRET_KEY_FILE: rgw!.secretKeyFile,
    TRIVET_REDIS_URL: 'none',
  });
  return made;
}

const up = (of: TestHome, ...more: string[]) => of.must('up', '--detach', '--no-install', ...more);

async function driver(): Promise<RealDriver> {
  const { csp } = await home.status();
  const { username, password } = JSON.parse(readFileSync(home.file('credentials.json'), 'utf8')).csp;
  return new RealDriver({ service: csp!.url, backend: '', username, password });
}

interface Published {
  id: string;
  serial: string;
  login(): Promise<InitiatorSession>;
}
let volume: Published;

async function publish(id: string): Promise<Published> {
  const { target_names, lun_id, serial_number } = await (await driver()).publish(id, NODE);
  const portal = home.environment().TRIVET_ISCSI_PORTALS!;
  const login = () => new Initiator(NODE.iqns[0]!).login(portal, target_names[0]!, lun_id);
  return { id, serial: serial_number, login };
}

/** A backend of the API's, in the pool of the home, with a volume in use. Resolves to the folder of its tgtd, which lies elsewhere. */
async function publishOnRegistered(): Promise<string> {
  const folder = join(homes.folder, 't');
  const portals = [`127.0.0.1:${await freePort()}`];
  const path = home.file('pool', 'of-second');
  mkdirSync(path);
  const config = join(homes.folder, 'second.json');
  const pools = [{ name: 'second', path, portals }];
  writeFileSync(config, JSON.stringify({ pools, exporter: { kind: 'tgt', folder } }));
  await home.must('backend', 'create', 'second', '--kind', 'reflink', '--config-file', config, '--tenant', 'default');
  const client = await driver();
  const made = await until('its pool is known', () =>
    client.createVolume('in-second', 16 * MIB, { destination_pool: 'second' }).catch(() => undefined),
  );
  await client.publish(made.id, NODE);
  await until('its tgtd runs', () => daemonsOf(folder).length === 1);
  return folder;
}

const loopDevices = (of: TestHome): string[] =>
  readdirSync('/sys/block').filter(name => {
    const file = `/sys/block/${name}/loop/backing_file`;
    return existsSync(file) && readFileSync(file, 'utf8').startsWith(of.home);
  });

let firstUp: string;
describe.skipIf(!parts().xfs || !hasTgt())('up with block volumes', () => {
  beforeAll(async () => {
    firstUp = await up(home);
  });
  afterAll(() => homes.clear());

  it('is ready, with its doors, backend and pool under stable names', async () => {
    const { state, csp, backends, skipped } = await home.status();
    expect({ state, skipped }).toEqual({ state: 'ready', skipped: [] });
    expect(backends).toMatchObject([
      {
        name: 'local',
        kind: 'reflink',
        state: 'up',
        capabilities: ['block', 'thin', 'thick', 'snapshot', 'clone-reflink', 'iscsi'],
        pools: [{ name: 'default', state: 'up', totalBytes: expect.any(Number), usedBytes: expect.any(Number) }],
      },
      { name: 'rgw', kind: 'rgw', state: 'up', capabilities: ['object'] },
    ]);
    expect(firstUp).toContain(`${csp!.url}, ${csp!.tlsUrl}`);
    const wrongPassword = await fetch(`${csp!.url}/csp/containers/v1/tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"username": "csp", "password": "wrong", "array_ip": ""}',
    });
    expect(wrongPassword.status).toBe(401);
  });

  it('serves the same over TLS, with a certificate that it keeps', async () => {
    const { tlsUrl } = (await home.status()).csp!;
    const kept = readFileSync(home.file('tls', 'certificate.pem'), 'utf8');
    const { port, hostname } = new URL(tlsUrl!);
    const trusted = await new Promise<boolean>((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), ca: kept, checkServerIdentity: () => undefined });
      socket.once('error', reject);
      socket.once('secureConnect', () => {
        resolve(socket.authorized);
        socket.destroy();
      });
    });
    expect(trusted).toBe(true);
  });

  it('does both main jobs in its demo, and finds nothing wrong in its doctor', async () => {
    const said = await home.must('demo');
    expect(said).toContain('the clone has what was written first, the volume what was written last');
    expect(said).toMatch(/demo: done, and nothing is left behind\n$/);
    expect(said).not.toContain('skipped');
    expect(JSON.parse(await home.must('volume', 'list', '--json'))).toEqual({ items: [], next: null });
    expect(JSON.parse(await home.must('volume', 'bin', '--json'))).toEqual({ items: [], next: null });
    expect(JSON.parse(await home.must('host', 'list', '--json'))).toEqual({ items: [], next: null });
    const findings = (await home.must('doctor')).trim().split('\n');
    expect(findings.filter(line => !/^(ok|warn {2}(disk|memory|time server))/.test(line))).toEqual([]);
    for (const name of ['pool default', 'tgtd.default', 'certificate', 'block tools', 'portal 127.0.0.1'])
      expect(findings.some(line => line.startsWith(`ok    ${name}`))).toBe(true);
  });

  it('is found by a second up, and stands beside a second home', async () => {
    const before = (await home.status()).processes;
    expect(await up(home)).toContain('already up');
    const second = withoutCeph('second');
    await up(second, '--parts-only');
    const [mine, theirs] = [home.environment(), second.environment()];
    for (const name of ['TRIVET_POOLS', 'TRIVET_ISCSI_PORTALS', 'TRIVET_TGT_DIR', 'TRIVET_HTTPS_LISTEN'])
      expect(theirs[name], name).not.toBe(mine[name]);
    await second.must('down', '--purge', '--yes');
    expect((await home.status()).processes).toEqual(before);
    expect(loopDevices(home)).toHaveLength(1);
  });

  it('serves its volumes again, with their data and names, after everything was killed', async () => {
    const made = await (await driver()).createVolume('kept', 64 * MIB);
    volume = await publish(made.id);
    const session = await volume.login();
    await session.write(0, DATA);
    const { processes } = await home.status();
    expect(processes.map(({ name }) => name)).toContain('tgtd.default');
    for (const pid of [home.supervisor, ...processes.map(row => row.pid)]) process.kill(pid, 'SIGKILL');
    await session.closed;

    await up(home);
    // The host comes back by itself, as open-iscsi does, and nobody has published anything since.
    const again = await until('the target is served again', () => volume.login().catch(() => undefined));
    expect(await again.read(0, DATA.length)).toEqual(DATA);
    await again.close();
    expect((await publish(volume.id)).serial).toBe(volume.serial);
  });

  it('leaves nothing behind after down, and is there again after up', async () => {
    await home.must('down');
    expect(processesOf(home.home)).toEqual([]);
    expect(loopDevices(home)).toEqual([]);
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(home.home);
    await up(home);
    const session = await until('the target is served again', () => volume.login().catch(() => undefined));
    expect(await session.read(0, DATA.length)).toEqual(DATA);
    await session.close();
    const registered = await publishOnRegistered();
    const shown = (await home.status()).processes;
    expect(shown).toContainEqual(expect.objectContaining({ name: 'tgtd.second', state: 'running' }));
    expect(await home.run('doctor')).toMatchObject({ stdout: expect.stringMatching(/^ok +tgtd\.second: runs/m) });
    // Asked first: a key file goes with it.
    const unasked = await home.run('down', '--purge');
    expect(unasked).toMatchObject({ code: 2, stderr: expect.stringContaining(`the key file ${home.file('kek')}`) });
    expect((await home.status()).state).toBe('ready');
    await home.must('down', '--purge', '--yes');
    expect(daemonsOf(registered)).toEqual([]);
    expect(loopDevices(home)).toEqual([]);
    expect(existsSync(home.home)).toBe(false);
    expect(processesOf(home.home)).toEqual([]);
  });
});
