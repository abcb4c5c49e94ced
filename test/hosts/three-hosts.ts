import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Database } from '#platform/database/database';
import { BackendKinds } from '#storage/backends/backend-kinds';
import { movePool } from '#storage/backends/pool-move';
import type { RealDriver } from '#test/csp/driver-client';
import { fakeBlockKind } from '#test/fakes/block/fake-block-kind';
import { type DaemonProcess, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

export const HOSTS = ['a', 'b', 'c'] as const;
export type HostName = (typeof HOSTS)[number];

const MIB = 1024 ** 2;

/** Silent for so long a host is down; looked at with each heartbeat. */
const DOWN_MS = 45_000;

export interface OperationOfPool {
  id: string;
  kind: string;
  state: string;
  attempt: number;
  pool: string;
  host: string | null;
  place: number | null;
  held: boolean;
}

/**
 * An appliance with three storage hosts on one machine, each with a pool that is named as it is. Each has its worker in a mount namespace,
 * where its own pool is there and those of the others are not. Needs root.
 */
export class ThreeHosts {
  readonly workers = new Map<HostName, DaemonProcess>();
  driver!: RealDriver;

  private constructor(
    readonly appliance: TestAppliance,
    private readonly database: Database,
    private readonly disks: string,
    private readonly pools: string,
  ) {}

  static async start({ redis }: { redis: boolean }): Promise<ThreeHosts> {
    const appliance = await TestAppliance.create({ backend: 'fake', block: 'fake', redis });
    const [disks, pools] = ['disks', 'pools'].map(name => join(appliance.folder, name)) as [string, string];
    mkdirSync(pools);
    for (const host of HOSTS) mkdirSync(join(disks, host, host), { recursive: true });
    const configured = HOSTS.map(name => ({
      name,
      path: join(pools, name),
      portals: [],
      withoutChap: false,
      host: name,
    }));
    await appliance.database.query(
      `UPDATE trivet.backend SET config = jsonb_set(config, '{pools}', $1::jsonb), version = version + 1 WHERE config ? 'pools'`,
      [JSON.stringify(configured)],
    );
    const { appUrl } = appliance.database;
    const database = await Database.connect({ appUrl, applicationName: 'trivet:test', poolSize: 1 });
    const house = new ThreeHosts(appliance, database, disks, pools);
    await Promise.all([appliance.gateway(), ...HOSTS.map(host => house.boot(host))]);
    await until('each pool has its host', async () => (await house.homes()).length === HOSTS.length);
    await until('each host knows of the others', async () => {
      const found = await appliance.database.query<{ up: boolean }>(
        'SELECT seen_at > added_at AS up FROM trivet.storage_host',
      );
      return found.length === HOSTS.length && found.every(({ up }) => up);
    });
    house.driver = appliance.driver();
    await house.driver.login();
    return house;
  }

  /** @param disk whose file system is there; else its own */
  private through(disk: HostName): string[] {
    const mount = `mount --bind "$0" "$1" && shift && exec "$@"`;
    return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', mount, join(this.disks, disk), this.pools];
  }

  async boot(host: HostName, { env = {}, disk = host }: { env?: Record<string, string>; disk?: HostName } = {}) {
    const worker = await this.appliance.worker({ TRIVET_HOST: host, ...env }, this.through(disk));
    this.workers.set(host, worker);
    return worker;
  }

  /** A worker that is not expected to become ready. */
  starting(host: HostName, disk: HostName): Promise<DaemonProcess> {
    return this.appliance.startingWorker({ TRIVET_HOST: host }, this.through(disk));
  }

  /** Everything of it at once. */
  async die(host: HostName): Promise<void> {
    await this.workers.get(host)!.stop('SIGKILL');
  }

  async isDown(host: HostName): Promise<void> {
    await until(
      `${host} is known to be down`,
      async () =>
        (
          await this.appliance.database.query(
            'SELECT FROM trivet.storage_host WHERE name = $1 AND down_at IS NOT NULL',
            [host],
          )
        ).length > 0,
      DOWN_MS,
    );
  }

  homes(): Promise<{ pool: string; host: string }[]> {
    return this.appliance.database.query(
      `SELECT h.pool, h.host FROM trivet.pool_home h
         JOIN trivet.pool p ON p.tenant_id = h.tenant_id AND p.backend_id = h.backend_id AND p.name = h.pool AND p.state = 'up'
        ORDER BY 1`,
    );
  }

  /** The disk of a pool goes to another machine. */
  carry(pool: HostName, from: HostName, to: HostName): void {
    renameSync(join(this.disks, from, pool), join(this.disks, to, pool));
  }

  /** Another machine has the disk of a pool, too, as a careless person may cable it. */
  cable(pool: HostName, from: HostName, to: HostName): void {
    symlinkSync(join(this.disks, from, pool), join(this.disks, to, pool));
  }

  uncable(pool: HostName, at: HostName): void {
    unlinkSync(join(this.disks, at, pool));
  }

  /** Files of volumes in a pool, by its disk. */
  images(pool: HostName, at: HostName): string[] {
    return readdirSync(join(this.disks, at, pool, 'volumes')).sort();
  }

  /** As an administrator asks for it. */
  async move(pool: HostName, to: string, { oldHostIsOff = false } = {}) {
    const [backend] = await this.appliance.database.query<{ id: string; name: string; tenant: string }>(
      `SELECT t.id, b.name, t.name AS tenant FROM trivet.backend b JOIN trivet.tenant t ON t.id = b.tenant_id
        WHERE b.config ? 'pools'`,
    );
    const { id, name, tenant } = backend!;
    const by = { kind: 'user', name: 'admin', address: '' } as const;
    const move = { backend: name, pool, to, oldHostIsOff, reason: 'its disk was moved' };
    return movePool(this.database, new BackendKinds([], [fakeBlockKind]), by, { id, name: tenant }, move);
  }

  /** As soon as both hosts have noticed what became of the disk. */
  moved(pool: HostName, to: HostName, options?: { oldHostIsOff: boolean }) {
    return until(`pool ${pool} may move to ${to}`, () => this.move(pool, to, options).catch(() => undefined));
  }

  create(name: string, pool: HostName) {
    return this.driver.createVolume(name, 8 * MIB, { pool, destroy_on_delete: true });
  }

  operations(pool: HostName): Promise<OperationOfPool[]> {
    return this.appliance.database.query(
      `SELECT id, kind, state, attempt, pool, host, place, next_run_at = 'infinity' OR dispatched_at = 'infinity' AS held
         FROM trivet.operation WHERE pool = $1 ORDER BY seq`,
      [pool],
    );
  }

  /** Workers that had an attempt of one of its operations, by their hosts. */
  async ranAt(pool: HostName): Promise<string[]> {
    const rows = await this.appliance.database.query<{ host: string }>(
      `SELECT DISTINCT w.host FROM trivet.operation o
         JOIN trivet.operation_event e ON e.operation_id = o.id AND e.type = 'attempt'
         JOIN trivet.worker w ON w.id::text = e.detail ->> 'worker'
        WHERE o.pool = $1 ORDER BY 1`,
      [pool],
    );
    return rows.map(({ host }) => host);
  }

  /** Names of what workers of a host had an attempt of, once each, in their order. */
  async attemptsAt(pool: HostName, host: HostName): Promise<string[]> {
    const rows = await this.appliance.database.query<{ name: string }>(
      `SELECT o.resource_name AS name FROM trivet.operation o
        WHERE o.pool = $1 AND EXISTS (SELECT FROM trivet.operation_event e JOIN trivet.worker w ON w.id::text = e.detail ->> 'worker'
                                       WHERE e.operation_id = o.id AND e.type = 'attempt' AND w.host = $2)
        ORDER BY o.seq`,
      [pool, host],
    );
    return rows.map(({ name }) => name);
  }

  async close(): Promise<void> {
    await this.database.close();
    await this.appliance.close();
    await promisify(execFile)('chattr', ['-R', '-f', '-i', this.disks]).catch(() => {});
  }
}
