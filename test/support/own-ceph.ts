import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { keptPort } from '#test/support/free-port';
import { until } from '#test/support/parts';

const run = promisify(execFile);
const SERVICES = ['mon', 'osd', 'mgr', 'mds'];

/** A Ceph of a test's own, with one monitor and one small disk in memory, which it may fill and stop. */
export class OwnCeph {
  private constructor(
    private readonly folder: string,
    /** As the one of the run is named. */
    readonly configuration: string,
    private readonly daemons: Record<'mon' | 'osd', ChildProcess | undefined>,
  ) {}

  /** @param watchSeconds after which it gives up a client that has died: 30 by default, where nobody shuts it out */
  static async start(
    diskBytes: number,
    { host = '127.0.0.1', watchSeconds = 6 }: { host?: string; watchSeconds?: number } = {},
  ): Promise<OwnCeph> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-ceph-'));
    for (const name of ['mon', 'osd', 'run']) mkdirSync(join(folder, name));
    const at = (name: string) => join(folder, name);
    const [fsid, port] = [randomUUID(), await keptPort()];
    const address = `[v2:${host}:${port}/0]`;
    writeFileSync(at('ceph.conf'), configurationOf({ folder, fsid, host, address, diskBytes, watchSeconds }));
    const ceph = new OwnCeph(folder, at('ceph.conf'), { mon: undefined, osd: undefined });
    try {
      await ceph.keyring('keyring', 'client.admin', SERVICES);
      await ceph.keyring('mon.keyring', 'mon.', ['mon']);
      await run('ceph-authtool', [at('mon.keyring'), '--import-keyring', at('keyring')]);
      await run('monmaptool', ['--create', '--fsid', fsid, '--addv', 'a', address, at('monmap')]);
      const made = ['--mkfs', '-i', 'a', '--monmap', at('monmap'), '--keyring', at('mon.keyring')];
      await run('ceph-mon', ['-c', ceph.configuration, ...made]);
      ceph.begin('mon', 'a');
      const uuid = randomUUID();
      await ceph.ask('osd', 'new', uuid);
      await ceph.ask(
        'auth',
        'get-or-create',
        'osd.0',
        'mon',
        'allow profile osd',
        'osd',
        'allow *',
        '-o',
        at('osd/keyring'),
      );
      await run('ceph-osd', ['-c', ceph.configuration, '-i', '0', '--mkfs', '--osd-uuid', uuid]);
      ceph.begin('osd', '0');
      await until(
        'its disk is up',
        async () => JSON.parse(await ceph.ask('osd', 'stat', '-f', 'json')).num_up_osds === 1,
      );
      return ceph;
    } catch (error) {
      await ceph.close();
      throw error;
    }
  }

  /** `ceph` as its administrator. */
  async ask(...args: string[]): Promise<string> {
    return (await run('ceph', ['-c', this.configuration, '--connect-timeout', '30', ...args])).stdout;
  }

  /** SIGSTOP and SIGCONT: connections stay, and nobody answers. */
  signal(daemon: 'mon' | 'osd', signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.daemons[daemon]!.kill(signal);
  }

  async close(): Promise<void> {
    for (const child of Object.values(this.daemons)) {
      if (!child || child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise(resolve => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private begin(daemon: 'mon' | 'osd', id: string): void {
    const args = ['-c', this.configuration, '-f', '-i', id];
    this.daemons[daemon] = spawn(`ceph-${daemon}`, args, { stdio: 'ignore', cwd: '/' });
  }

  private async keyring(name: string, entity: string, services: readonly string[]): Promise<void> {
    const told = services.flatMap(service => ['--cap', service, 'allow *']);
    await run('ceph-authtool', ['--create-keyring', join(this.folder, name), '--gen-key', '-n', entity, ...told]);
  }
}

interface Configured {
  folder: string;
  fsid: string;
  host: string;
  address: string;
  diskBytes: number;
  watchSeconds: number;
}

function configurationOf({ folder, fsid, host, address, diskBytes, watchSeconds }: Configured): string {
  return `[global]
fsid = ${fsid}
mon host = ${address}
mon initial members = a
auth allow insecure global id reclaim = false
public addr = ${host}
cluster addr = ${host}
run dir = ${folder}/run
admin socket = ${folder}/run/$name.asok
pid file = ${folder}/run/$name.pid
log file = ${folder}/$name.log
crash dir = ${folder}/run
keyring = ${folder}/keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail warn = 2
mon data avail crit = 1
mon cluster log to file = false
paxos propose interval = 0.001
paxos min wait = 0.001
[mon.a]
mon data = ${folder}/mon
keyring = ${folder}/mon/keyring
[osd.0]
osd data = ${folder}/osd
keyring = ${folder}/osd/keyring
osd objectstore = memstore
osd client watch timeout = ${watchSeconds}
memstore device bytes = ${diskBytes}
`;
}
