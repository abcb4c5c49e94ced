import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { PACKAGE_ROOT, programFile } from '#platform/package-root';
import { testCluster } from '#test/block-backend/rbd-harness';
import type { DriverNode, RealDriver } from '#test/csp/driver-client';
import type { Report } from '#test/hosts/log-writer';
import { type DaemonProcess, TestAppliance } from '#test/support/appliance';
import { Network, type NetworkHost, type Relay } from '#test/support/network';
import { OwnCeph } from '#test/support/own-ceph';
import { until } from '#test/support/parts';

const WORKER = programFile('test-worker');
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const PORT = 3260;
/** The segment of the network that has them. */
export const PORTALS = 1;
const SLOTS = 64;
/** Of the storage hosts' addresses. */
const FIRST = 11;
/** Of the portal that moves, and of the one of a second daemon. */
const MOVING = 50;
const FURTHER = 51;
const LONG_MS = 40_000;
/** Of their clocks, in turn: the clocks of hosts decide nothing (ADR 40), so none of them is right anywhere here. */
const OFFSETS_MS = [36_000_000, -36_000_000];
const OTHER_CLOCK = join(PACKAGE_ROOT, 'dist', 'test', 'hosts', 'other-clock.js');
const NODE: DriverNode = {
  name: 'writer',
  uuid: '41302701-0196-420f-b319-834a79891db1',
  iqns: ['iqn.1994-05.com.redhat:writer'],
  networks: ['192.0.2.2/24'],
};

/** A storage host of the appliance on the network: workers, and what they start. */
export interface StorageNode {
  name: string;
  host: NetworkHost;
  /** To PostgreSQL. */
  relay: Relay;
  clockOffsetMs: number;
}

/** How a pool's portals find who serves it: one address that moves with it, or one of each host. */
export type PortalWay = 'moving' | 'of hosts';

/**
 * An appliance with several storage hosts that reach one Ceph, each on an address of its own: a gateway beside, and a pool.
 */
export class ClusterHosts {
  readonly nodes = new Map<string, StorageNode>();
  private readonly workers = new Map<string, DaemonProcess>();
  private cephUser!: { user: string; cephPool: string; keyFile: string };
  driver!: RealDriver;
  target!: string;
  private writer: LogWriter | undefined;

  private constructor(
    readonly appliance: TestAppliance,
    readonly network: Network,
    private readonly ceph: OwnCeph,
    readonly portals: readonly string[],
    private readonly way: PortalWay,
    private readonly daemons: 1 | 2,
  ) {}

  /** @param daemons of the pool */
  static async start(
    names: readonly string[],
    way: PortalWay = 'moving',
    { daemons = 1 }: { daemons?: 1 | 2 } = {},
  ): Promise<ClusterHosts> {
    const network = await Network.make();
    let appliance: TestAppliance | undefined;
    let ceph: OwnCeph | undefined;
    try {
      appliance = await TestAppliance.create({ backend: 'fake', block: 'rbd', redis: false });
      ceph = await OwnCeph.start(2 * GIB, { host: network.address(9), watchSeconds: 30 });
      const addresses = (way === 'moving' ? [MOVING] : names.map((_, at) => FIRST + at)).map(last =>
        network.address(last, PORTALS),
      );
      const portals = addresses.map(address => `${address}:${PORT}`);
      const house = new ClusterHosts(appliance, network, ceph, portals, way, daemons);
      await house.#register();
      await appliance.gateway();
      for (const [at, name] of names.entries()) await house.#add(name, FIRST + at);
      await house.holder();
      house.driver = appliance.driver();
      await house.driver.login();
      return house;
    } catch (error) {
      await network.remove();
      await ceph?.close();
      await appliance?.close();
      throw error;
    }
  }

  /** The first; it is in the network of initiators, where PostgreSQL and the cluster are not. */
  get portal(): string {
    return this.portals[0]!;
  }

  get movingAddress(): string {
    return this.network.address(MOVING, PORTALS);
  }

  get furtherAddress(): string {
    return this.network.address(FURTHER, PORTALS);
  }

  /** Between a host and initiators; its other link stays. */
  async losePortals(name: string, is: boolean): Promise<void> {
    await this.node(name).host.unplugged(is, [PORTALS]);
  }

  get cephAddress(): string {
    return this.network.address(9);
  }

  node(name: string): StorageNode {
    return this.nodes.get(name)!;
  }

  /** In place of the run's Ceph, which listens on loopback. */
  async #register(): Promise<void> {
    const { appliance, ceph, portals } = this;
    const cluster = testCluster(ceph.configuration);
    const cephPool = await cluster.makePool();
    const caps = ['mon', 'profile rbd, allow command "osd blocklist"', 'osd', `profile rbd pool=${cephPool}`];
    const { user, key } = await cluster.makeUser([cephPool], caps);
    cluster.close();
    const keyFile = join(appliance.folder, 'key');
    this.cephUser = { user, cephPool, keyFile };
    writeFileSync(keyFile, key, { mode: 0o600 });
    await appliance.registerAgain({
      TRIVET_RBD_MONITORS: cluster.monitors.join(','),
      TRIVET_RBD_USER: user,
      TRIVET_RBD_KEY_FILE: keyFile,
      TRIVET_RBD_POOL: cephPool,
      TRIVET_RBD_PORTALS: portals.join(','),
      ...(this.daemons === 2 ? { TRIVET_RBD_FURTHER_PORTALS: `${this.furtherAddress}:${PORT}` } : {}),
      ...(this.way === 'moving' ? { TRIVET_RBD_MOVING_PORTALS: `eth${PORTALS}/24` } : {}),
      TRIVET_ISCSI_WITHOUT_CHAP: '1',
    });
  }

  async #add(name: string, last: number): Promise<void> {
    const tgt = join(this.appliance.folder, `tgt-${name}`);
    mkdirSync(tgt, { mode: 0o700 });
    const host = await this.network.host(name, last, { [this.appliance.tgtPath]: tgt });
    const { port } = new URL(this.appliance.env.TRIVET_DATABASE_URL!);
    const relay = await this.network.relay(Number(port));
    this.nodes.set(name, { name, host, relay, clockOffsetMs: OFFSETS_MS[this.nodes.size % OFFSETS_MS.length]! });
    await this.work(name);
    await until(`${name} is known`, () => this.seen(name), LONG_MS);
  }

  /** A worker there, which is not waited for. */
  async work(name: string) {
    const { host, relay, clockOffsetMs } = this.node(name);
    const through = (url: string | undefined) => Object.assign(new URL(url!), { host: relay.address }).href;
    const { TRIVET_DATABASE_URL: app, TRIVET_DATABASE_ENGINE_URL: engine } = this.appliance.env;
    const env = {
      TRIVET_HOST: name,
      TRIVET_DATABASE_URL: through(app),
      TRIVET_DATABASE_ENGINE_URL: through(engine),
      PATH: '/usr/sbin:/sbin:/usr/bin:/bin',
      NODE_OPTIONS: `--import=${OTHER_CLOCK}`,
      CLOCK_OFFSET_MS: `${clockOffsetMs}`,
    };
    const worker = await this.appliance.startingWorker(env, host.inside);
    this.workers.set(name, worker);
    return worker;
  }

  async drain(name: string, draining: boolean): Promise<void> {
    const row = [name, draining];
    await this.appliance.database.query("SELECT trivet.drain_storage_host($1, $2, NULL, 'a test')", row);
  }

  /** SIGTERM: in order, as an upgrade does. */
  async endWorker(name: string, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.node(name).host.end(WORKER, signal);
    await this.workers.get(name)!.ended();
  }

  /** Whether the cluster itself refuses what comes from there, whatever this appliance believes. */
  async isRefused(name: string): Promise<boolean> {
    const listed = await this.ceph.ask('osd', 'blocklist', 'ls');
    return listed.includes(`${this.node(name).host.address}:0/0`);
  }

  /** Writes an object of the pool from there, as one that believes in itself would. */
  async tryToWrite(name: string): Promise<string> {
    const { user, cephPool, keyFile } = this.cephUser;
    const as = ['-c', this.ceph.configuration, '--name', `client.${user}`, '--keyfile', keyFile];
    const put = this.node(name).host.run(
      'timeout',
      '20',
      'rados',
      ...as,
      '-p',
      cephPool,
      'put',
      'late',
      '/etc/hostname',
    );
    return put.then(
      () => 'written',
      (error: { stderr?: string }) => error.stderr ?? '',
    );
  }

  /** How many pools its worker has taken over for that reason, as it counts them itself. */
  async takenBy(name: string, reason: string): Promise<number> {
    const url = `${this.workers.get(name)!.healthUrl}/metrics`;
    const script = `process.stdout.write(await (await fetch('${url}')).text())`;
    const { stdout } = await this.node(name).host.run(process.execPath, '--input-type=module', '-e', script);
    return Number(new RegExp(`^trivet_pool_takeovers_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(stdout)?.[1]);
  }

  /** The cluster refuses that host from now on. @param by this appliance, which then knows of it, or somebody else */
  async shutOut(name: string, by: 'us' | 'others'): Promise<void> {
    const { address } = this.node(name).host;
    if (by === 'us') {
      const fsid = (await this.ceph.ask('fsid')).trim();
      const row = [fsid, JSON.stringify([{ host: name, address }]), 'a test'];
      await this.appliance.database.query('SELECT trivet.note_cluster_fences($1, $2, $3)', row);
    }
    await this.ceph.ask('osd', 'blocklist', 'add', `${address}:0/0`, '36000');
  }

  async letIn(name: string): Promise<void> {
    await this.ceph.ask('osd', 'blocklist', 'rm', `${this.node(name).host.address}:0/0`);
  }

  /** By the time of what its worker said last, in ms since 1970. */
  clockOf(name: string): number {
    return Date.parse(
      this.logOf(name)
        .match(/(?<="time":")[^"]+/g)!
        .at(-1)!,
    );
  }

  /** What its worker said. */
  logOf(name: string): string {
    return this.workers.get(name)!.log();
  }

  /** The last one, as the audit log tells it. */
  async lastTakeover() {
    const [last] = await this.appliance.database.query<{ from: string; to: string; why: string; reason: string }>(
      `SELECT before ->> 'host' AS "from", after ->> 'host' AS "to", after ->> 'why' AS why, reason
         FROM trivet.audit_entry WHERE action = 'pool.take_over' ORDER BY seq DESC LIMIT 1`,
    );
    return last;
  }

  /** Who is shut out of the cluster. */
  async fences(): Promise<string[]> {
    const rows = await this.appliance.database.query<{ host: string }>('SELECT host FROM trivet.cluster_fence');
    return rows.map(({ host }) => host);
  }

  private async seen(name: string): Promise<boolean> {
    const rows = await this.appliance.database.query(
      'SELECT FROM trivet.storage_host WHERE name = $1 AND seen_at > added_at',
      [name],
    );
    return rows.length > 0;
  }

  /** It could serve the pool. */
  standsBy(name: string): Promise<void> {
    return this.explained(
      until(
        `${name} could serve the pool`,
        async () => {
          const [row] = await this.appliance.database.query<{ able: boolean }>(
            `SELECT seen_at > now() - interval '10 seconds' AND takes_at > now() - interval '3 seconds' AND takes <> '[]'
                    AND NOT EXISTS (SELECT FROM trivet.cluster_fence f WHERE f.host = s.name) AS able
               FROM trivet.storage_host s WHERE name = $1`,
            [name],
          );
          return row?.able;
        },
        LONG_MS,
      ),
    );
  }

  /** It says so itself. */
  async takesNothing(name: string): Promise<void> {
    await until(`${name} takes nothing over`, async () => {
      const [row] = await this.appliance.database.query<{ none: boolean }>(
        "SELECT takes = '[]' AS none FROM trivet.storage_host WHERE name = $1",
        [name],
      );
      return row?.none;
    });
  }

  /** With what everybody says, where it fails. */
  private async explained(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await this.report()}`);
    }
  }

  async lease() {
    const [row] = await this.appliance.database.query<{ host: string; fence: string; serving: boolean }>(
      `SELECT host, fence::text, to_fence = '[]' AND coalesce(lease_until > now(), false) AS serving FROM trivet.pool_home`,
    );
    return row;
  }

  /** Who has the pool, and how many the cluster has yet to shut out before it is served again. */
  async handedTo(): Promise<{ host: string; unfenced: number; leaseMs: number }> {
    const [row] = await this.appliance.database.query<{ host: string; unfenced: number; leaseMs: number }>(
      `SELECT host, jsonb_array_length(to_fence) AS unfenced, extract(epoch FROM lease_until)::float8 * 1000 AS "leaseMs"
         FROM trivet.pool_home`,
    );
    return row!;
  }

  /** Nobody is shut out of the cluster meanwhile. */
  async withoutFencing<T>(work: () => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: this.appliance.database.ownerUrl });
    await client.connect();
    try {
      await client.query('BEGIN');
      await client.query('LOCK TABLE trivet.cluster_fence IN SHARE MODE');
      return await work();
    } finally {
      await client.end();
    }
  }

  /** Whose pool it is, when somebody serves it. */
  async holder(): Promise<string> {
    let host = '';
    await until(
      'somebody serves the pool',
      async () => {
        const lease = await this.lease();
        host = lease?.host ?? '';
        return lease?.serving;
      },
      LONG_MS,
    );
    return host;
  }

  async isTakenFrom(name: string, fence: string): Promise<string> {
    await this.explained(
      until(
        `another host than ${name} has the pool`,
        async () => {
          const lease = await this.lease();
          return lease && lease.host !== name && lease.serving && BigInt(lease.fence) > BigInt(fence);
        },
        LONG_MS,
      ),
    );
    return this.holder();
  }

  /** Its initiator's writes are acknowledged again. */
  isWritten(): Promise<void> {
    return this.explained(this.writer!.acknowledges());
  }

  /** For a failure: who says what. */
  async report(): Promise<string> {
    const rows = await this.appliance.database.query(
      `SELECT (SELECT json_agg(h) FROM trivet.pool_home h) AS homes, (SELECT json_agg(f) FROM trivet.cluster_fence f) AS fences,
              (SELECT json_agg(json_build_object('name', s.name, 'seen', s.seen_at, 'down', s.down_at, 'reach', s.reach)) FROM trivet.storage_host s) AS hosts,
              (SELECT json_agg(json_build_object('state', p.state, 'reason', p.reason)) FROM trivet.pool p) AS pools,
              (SELECT json_agg(c) FROM trivet.backend_circuit c) AS circuits,
              (SELECT json_agg(json_build_object('kind', o.kind, 'state', o.state, 'host', o.host, 'attempt', o.attempt, 'step', o.step,
                                                 'due', o.next_run_at, 'lease', o.lease_until, 'error', o.error ->> 'message'))
                 FROM trivet.operation o WHERE o.finished_at IS NULL) AS operations, now()`,
    );
    const logs = [...this.workers].map(([name, worker]) => `${name}:\n${worker.log().slice(-3_000)}`);
    return [JSON.stringify(rows, null, 1), ...logs].join('\n');
  }

  /** A published volume, and a host that writes to it. */
  async write(): Promise<LogWriter> {
    const volume = await this.driver.createVolume('log', 16 * MIB);
    const publication = await this.driver.publish(volume.id, NODE);
    this.target = publication.target_names[0]!;
    expectPortal(publication.discovery_ips, this.movingAddress);
    const client = await this.network.host('i', 99);
    this.writer = new LogWriter(client, [this.portals[0]!, this.target, NODE.iqns[0]!, `${SLOTS}`]);
    await this.writer.acknowledges();
    return this.writer;
  }

  /** Of operations that wait to be tried again. */
  lastErrors() {
    return this.appliance.database.query<{ kind: string; message: string }>(
      "SELECT kind, error ->> 'message' AS message FROM trivet.operation WHERE error IS NOT NULL ORDER BY created_at DESC LIMIT 5",
    );
  }

  logs(): string {
    return this.appliance.processes.map(one => one.log()).join('\n');
  }

  async close(): Promise<void> {
    this.writer?.kill();
    await this.network.remove();
    await this.ceph.close();
    await this.appliance.close();
  }
}

function expectPortal(addresses: readonly string[] | undefined, address: string): void {
  if (!addresses?.includes(address)) throw new Error(`hosts are told ${addresses}, and not ${address}`);
}

/** The writer's reports, as they come. */
export class LogWriter {
  readonly acknowledged: { number: number; at: number; waitedMs: number; sessions: number }[] = [];
  private readonly child: ChildProcess;
  private readonly ended: Promise<Extract<Report, { slots: number[] }>>;
  private errors = '';

  constructor(host: NetworkHost, args: readonly string[]) {
    const script = join(PACKAGE_ROOT, 'dist', 'test', 'hosts', 'log-writer.js');
    const [program, ...told] = [...host.inside, process.execPath, script, ...args];
    this.child = spawn(program!, told, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stderr!.on('data', chunk => {
      this.errors += chunk;
    });
    this.ended = new Promise((resolve, reject) => {
      createInterface({ input: this.child.stdout! }).on('line', line => {
        const report = JSON.parse(line) as Report;
        if ('slots' in report) resolve(report);
        else this.acknowledged.push({ ...report, number: report.acknowledged });
      });
      this.child.once('exit', () => reject(new Error(`the writer ended: ${this.errors}`)));
    });
    this.ended.catch(() => {});
  }

  get last(): number {
    return this.acknowledged.at(-1)?.number ?? 0;
  }

  /** Something new, that was sent from now on. */
  async acknowledges(timeoutMs = LONG_MS): Promise<void> {
    const before = this.last;
    await until('writes are acknowledged', () => this.last > before + 1, timeoutMs);
  }

  /** The longest wait for one acknowledgement since then. */
  longestWaitMs(since: number): number {
    return Math.max(...this.acknowledged.filter(({ at }) => at >= since).map(({ waitedMs }) => waitedMs));
  }

  /** What is on the disk, slot by slot, and its identity. */
  async finish() {
    this.child.stdin!.write('stop\n');
    const { slots, serials } = await this.ended;
    const expected = slots.map((_, slot) => {
      const last = this.last;
      const number = last - ((((last - slot) % SLOTS) + SLOTS) % SLOTS);
      return Math.max(0, number);
    });
    return { slots, expected, serials };
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}
