import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { readJoinToken } from '#platform/crypto/join-token';
import { PACKAGE_ROOT, programFile } from '#platform/package-root';
import { CONNECTOR_ENVIRONMENT, SESSION_CONNECTOR_FLAGS } from '#platform/process/node-flags';
import { Authority } from '#tenancy/clusters/authority';
import { AdminHouse } from '#test/admin/admin-house';
import { CbtClient } from '#test/cbt/client';
import { ClusterClient, type Identity, newKey } from '#test/clusters/cluster-client';
import type { DriverSnapshot, DriverVolume, RealDriver } from '#test/csp/driver-client';
import { DaemonProcess } from '#test/support/appliance';
import { freePort } from '#test/support/free-port';
import { DRIVER, OWN_NAMESPACE, SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import { ControlClient } from '../../apps/connector/src/control-client.js';
import { CONFIGURATIONS, type ServiceConfiguration } from '../../apps/connector/src/sessions/resources.js';
import { orNothing } from '../../apps/connector/src/sessions/snapshot-handles.js';

export const MIB = 1024 ** 2;
const OTHER_CLOCK = join(PACKAGE_ROOT, 'dist', 'test', 'hosts', 'other-clock.js');

interface ConnectorOptions {
  cluster: SessionCluster;
  /** As the appliance knows it. */
  name: string;
  env?: Record<string, string>;
}

/** One with TRIVET_KUBERNETES, as a process, and a client at its door. */
export interface SessionConnector {
  process: DaemonProcess;
  address: string;
  client: CbtClient;
}

/** From a SnapshotSessionRequest to the blocks of a real volume: API server, connector, gateway, pool. */
export class SessionAppliance {
  clusterPort = 0;
  volume!: DriverVolume;
  /** Of `volume`: 4 KiB are written at 1 MiB before the first, and at 2 MiB before the second. */
  readonly snapshots: DriverSnapshot[] = [];
  private driver!: RealDriver;
  private made = 0;

  private constructor(readonly house: AdminHouse) {}

  /**
   * @param clockAheadMs of the gateway
   * @param volumeBytes of which hardly any hold data
   */
  static async open({ clockAheadMs = 0, logLevel = 'info', volumeBytes = 16 * MIB } = {}): Promise<SessionAppliance> {
    const env = { TRIVET_ENDPOINT_CHECK_MS: '200', TRIVET_LOG_LEVEL: logLevel };
    const appliance = new SessionAppliance(await AdminHouse.create({ block: 'xfs', env }));
    try {
      await appliance.start(clockAheadMs, volumeBytes);
      return appliance;
    } catch (error) {
      await appliance.close();
      throw error;
    }
  }

  private async start(clockAheadMs: number, volumeBytes: number): Promise<void> {
    const { house } = this;
    const endpoints = [
      { name: 'blocks', protocol: 'csi' },
      { name: 'other', protocol: 'csi', driverName: 'csi.other.example' },
      { name: 'buckets', protocol: 'cosi', backend: 'fake' },
    ];
    for (const body of endpoints) {
      const made = await house.call(house.root.admin, 'POST', '/tenants/default/endpoints', { body });
      if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    }
    // One socket of the configuration serves one gateway.
    delete house.appliance.env.COSI_ENDPOINT;
    await this.gateway(clockAheadMs);
    await house.appliance.worker();
    this.driver = house.appliance.driver();
    await this.driver.login();
    const looked = "SELECT FROM trivet.pool p JOIN trivet.tenant t ON t.id = p.tenant_id WHERE t.name = 'default'";
    await until('the pool was looked at', async () => (await house.query(looked)).length > 0);
    if (volumeBytes > 16 * MIB) await house.query('UPDATE trivet.pool SET thin_ratio = 1000000');
    await this.makeSnapshots(volumeBytes);
  }

  /** Another one, in the place of one before. */
  async gateway(clockAheadMs = 0): Promise<void> {
    const { appliance } = this.house;
    const sockets = join(appliance.folder, `s${++this.made}`);
    mkdirSync(sockets);
    this.clusterPort = await freePort();
    await appliance.gateway({
      TRIVET_CLUSTER_LISTEN: `127.0.0.1:${this.clusterPort}`,
      TRIVET_SOCKET_DIR: sockets,
      ...(clockAheadMs !== 0 && { NODE_OPTIONS: `--import=${OTHER_CLOCK}`, CLOCK_OFFSET_MS: `${clockAheadMs}` }),
    });
  }

  private async makeSnapshots(volumeBytes: number): Promise<void> {
    const { driver, house } = this;
    this.volume = await carriedOut(() => driver.createVolume('database', volumeBytes) as Promise<DriverVolume>);
    const entries = readdirSync(house.appliance.poolPath, { recursive: true }) as string[];
    const image = entries.find(entry => entry.startsWith('volumes') && entry.endsWith(this.volume.id))!;
    const file = await open(join(house.appliance.poolPath, image), 'r+');
    for (const at of [1, 2]) {
      await file.write(Buffer.alloc(4_096, 7), 0, 4_096, at * MIB);
      await file.sync();
      this.snapshots.push(await carriedOut(() => driver.createSnapshot(this.volume.id, `daily-${at}`)));
    }
    await file.close();
  }

  /** `daily-0` and `daily-1` in the namespace `apps`. */
  async showSnapshots(cluster: SessionCluster): Promise<void> {
    for (const [at, { id }] of this.snapshots.entries())
      await cluster.snapshot('apps', `daily-${at}`, { handle: id, volume: this.volume.id });
  }

  /** Ready, and its address is published. The same name again: another process with the same certificate. */
  async connector({ cluster, name, env }: ConnectorOptions): Promise<SessionConnector> {
    const home = join(this.house.appliance.folder, `connector-${name}`);
    mkdirSync(home, { recursive: true });
    const files = { 'tls.crt': cluster.pair.cert, 'tls.key': cluster.pair.key, token: await this.joinToken(name) };
    for (const [file, text] of Object.entries(files)) writeFileSync(join(home, file), `${text}\n`, { mode: 0o600 });
    writeFileSync(join(home, 'kubeconfig'), await cluster.kubeconfig('connector', OWN_NAMESPACE));
    const [health, webhook, cbt] = [await freePort(), await freePort(), await freePort()];
    const address = `localhost:${cbt}`;
    const child = spawn(process.execPath, [...SESSION_CONNECTOR_FLAGS, programFile('connector')], {
      env: {
        PATH: '/usr/bin:/bin',
        NODE_NO_WARNINGS: '1',
        ...CONNECTOR_ENVIRONMENT,
        TRIVET_HOME: home,
        TRIVET_GATEWAYS: `127.0.0.1:${this.clusterPort}`,
        TRIVET_CONNECTOR_SOCKETS: `blocks=unix://${home}/csi.sock`,
        TRIVET_CONNECTOR_LISTEN: `127.0.0.1:${health}`,
        TRIVET_JOIN_TOKEN_FILE: join(home, 'token'),
        TRIVET_KUBERNETES: join(home, 'kubeconfig'),
        TRIVET_SESSION_ENDPOINT: 'blocks',
        TRIVET_SESSION_WEBHOOK_LISTEN: `127.0.0.1:${webhook}`,
        TRIVET_CBT_LISTEN: `127.0.0.1:${cbt}`,
        TRIVET_CBT_PUBLIC_ADDRESS: address,
        TRIVET_METADATA_AUDIENCE: 'trivet-snapshot-metadata',
        TRIVET_TLS_CERT_FILE: join(home, 'tls.crt'),
        TRIVET_TLS_KEY_FILE: join(home, 'tls.key'),
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    cluster.routeWebhook(webhook);
    const connector = {
      process: new DaemonProcess('connector', child, `http://127.0.0.1:${health}`),
      address,
      client: CbtClient.overTls(cbt, cluster.pair.ca),
    };
    this.connectors.push(connector);
    await connector.process.ready();
    const published = { name: DRIVER };
    await until('its address is published', async () => {
      const found = await orNothing(cluster.admin.get<ServiceConfiguration>(CONFIGURATIONS, published));
      return found?.spec.address === address;
    });
    return connector;
  }
  private readonly connectors: SessionConnector[] = [];

  /** Another cluster, as it speaks to a gateway: by another certificate, too. */
  async enrolled(name: string, endpoints?: string[]) {
    const authority = await this.house.app.get(Authority).certificate();
    const as = (identity?: Identity): ClusterClient => new ClusterClient(this.clusterPort, authority, identity);
    const { secret } = readJoinToken(await this.joinToken(name, endpoints))!;
    const { identity } = await as().join(secret, await newKey());
    return { authority, identity, as };
  }

  /** As its manager speaks. */
  async joined(name: string, endpoints?: string[]): Promise<ControlClient> {
    const { authority, identity } = await this.enrolled(name, endpoints);
    return new ControlClient({ host: '127.0.0.1', port: this.clusterPort }, { authority, ...identity });
  }

  private async joinToken(cluster: string, endpoints?: string[]): Promise<string> {
    const asked = { body: { cluster, endpoints } };
    const { root } = this.house;
    return (await this.house.call(root.admin, 'POST', '/tenants/default/clusters/join-tokens', asked)).body.token;
  }

  async close(): Promise<void> {
    for (const { client, process } of this.connectors) {
      client.close();
      await process.stop('SIGKILL');
    }
    await this.house.close();
  }
}

/** The driver asks again while the worker is not done. */
const carriedOut = <T>(ask: () => Promise<T>): Promise<NonNullable<T>> =>
  until('it is carried out', () => ask().catch(error => ignoreBusy(error)), 60_000);
const ignoreBusy = (error: unknown): undefined => {
  if ((error as { status?: number }).status !== 503) throw error;
  return undefined;
};
