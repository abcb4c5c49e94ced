/** A Ceph of a test's own, at an address that other hosts reach: one mon, one osd in memory. The run's own listens on loopback alone. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

const run = promisify(execFile);
const OSD_BYTES = 2 * 1024 ** 3;

export class CephServer {
  private readonly daemons: ChildProcess[] = [];

  private constructor(
    readonly configuration: string,
    private readonly folder: string,
  ) {}

  /** @param folder short, empty */
  static async start(folder: string, address: string): Promise<CephServer> {
    for (const name of ['run', 'mon', 'osd', 'log', 'crash']) mkdirSync(join(folder, name), { recursive: true });
    const configuration = join(folder, 'ceph.conf');
    const [fsid, ports] = [randomUUID(), [await freePort(), await freePort()]];
    const monitors = `[v2:${address}:${ports[0]}/0,v1:${address}:${ports[1]}/0]`;
    writeFileSync(configuration, textOf({ folder, fsid, monitors, address }));
    const server = new CephServer(configuration, folder);
    try {
      await server.#make(fsid, monitors);
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  async ceph(...args: string[]): Promise<string> {
    return (await run('ceph', ['-c', this.configuration, '--connect-timeout', '20', ...args])).stdout;
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.daemons.map(async daemon => {
        if (daemon.exitCode !== null || daemon.signalCode !== null) return;
        const ended = new Promise(resolve => daemon.once('exit', resolve));
        daemon.kill('SIGKILL');
        await ended;
      }),
    );
  }

  async #make(fsid: string, monitors: string): Promise<void> {
    const { folder } = this;
    const admin = `[client.admin]\n\tkey = ${cephKey()}\n${['mon', 'osd'].map(of => `\tcaps ${of} = "allow *"\n`).join('')}`;
    writeFileSync(join(folder, 'keyring'), admin);
    writeFileSync(join(folder, 'mon.keyring'), `[mon.]\n\tkey = ${cephKey()}\n\tcaps mon = "allow *"\n${admin}`);
    const map = join(folder, 'monmap');
    await run('monmaptool', ['--create', '--fsid', fsid, '--addv', 'a', monitors, map]);
    const made = ['--mkfs', '-i', 'a', '--monmap', map, '--keyring', join(folder, 'mon.keyring')];
    await run('ceph-mon', ['-c', this.configuration, ...made]);
    this.#begin('ceph-mon', 'a');
    const osd = randomUUID();
    const secret = cephKey();
    writeFileSync(join(folder, 'secret'), JSON.stringify({ cephx_secret: secret }));
    await until('the mon answers', () =>
      this.ceph('osd', 'new', osd, '-i', join(folder, 'secret')).catch(() => undefined),
    );
    writeFileSync(join(folder, 'osd', 'keyring'), `[osd.0]\n\tkey = ${secret}\n`);
    await run('ceph-osd', ['-c', this.configuration, '-i', '0', '--mkfs', '--osd-uuid', osd]);
    this.#begin('ceph-osd', '0');
    await until('the osd is up', async () =>
      (await this.ceph('osd', 'stat', '-f', 'json')).includes('"num_up_osds":1'),
    );
  }

  #begin(program: string, id: string): void {
    this.daemons.push(spawn(program, ['-c', this.configuration, '-f', '-i', id], { cwd: '/', stdio: 'ignore' }));
  }
}

interface Place {
  folder: string;
  fsid: string;
  monitors: string;
  address: string;
}

const textOf = ({ folder, fsid, monitors, address }: Place): string => `[global]
fsid = ${fsid}
mon host = ${monitors}
mon initial members = a
auth allow insecure global id reclaim = false
public addr = ${address}
cluster addr = ${address}
run dir = ${folder}/run
admin socket = ${folder}/run/$name.asok
pid file = ${folder}/run/$name.pid
log file = ${folder}/log/$name.log
log to stderr = false
crash dir = ${folder}/crash
keyring = ${folder}/keyring
mon cluster log to file = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon max pg per osd = 1000
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail warn = 2
mon data avail crit = 1
paxos propose interval = 0.05
paxos min wait = 0.02
osd memory target = 939524096
[mon.a]
mon data = ${folder}/mon
[osd.0]
osd data = ${folder}/osd
keyring = ${folder}/osd/keyring
osd objectstore = memstore
memstore device bytes = ${OSD_BYTES}
`;

/** Type 1 (AES), time of creation, length, 16 random bytes. */
function cephKey(): string {
  const header = Buffer.alloc(12);
  header.writeUInt16LE(1, 0);
  header.writeUInt32LE(Math.floor(Date.now() / 1000), 2);
  header.writeUInt16LE(16, 10);
  return Buffer.concat([header, randomBytes(16)]).toString('base64');
}
