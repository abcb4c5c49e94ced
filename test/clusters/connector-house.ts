import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programFile } from '#platform/package-root';
import { CONNECTOR_ENVIRONMENT, CONNECTOR_FLAGS } from '#platform/process/node-flags';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { CbtClient } from '#test/cbt/client';
import { CosiClient } from '#test/cosi/client';
import { type ApplianceOptions, DaemonProcess } from '#test/support/appliance';
import { freePort } from '#test/support/free-port';

/** Endpoints of `acme`. */
export const BUCKETS = 'k8s';
export const BLOCKS = 'blocks';

/** One process, and where its sidecars connect. */
export interface Connector {
  process: DaemonProcess;
  home: string;
  cluster: string;
  token: string;
  sockets: { cosi: string; csi: string };
}

/** Two gateways with a door for clusters, and connectors as they run in a cluster, between these and clients as sidecars are. */
export class ConnectorHouse {
  readonly acme: HouseTenant;
  /** By their places; those that were killed are in `past`. */
  readonly gateways: DaemonProcess[] = [];
  readonly past: DaemonProcess[] = [];
  private readonly ports: number[] = [];
  private readonly connectors: DaemonProcess[] = [];
  private readonly clients: { close(): void }[] = [];
  private made = 0;

  private constructor(readonly house: AdminHouse) {
    this.acme = house.acme;
  }

  static async open({ gateways = 2, ...options }: Partial<ApplianceOptions> & { gateways?: number } = {}) {
    const env = { TRIVET_ENDPOINT_CHECK_MS: '200', ...options.env };
    const house = new ConnectorHouse(await AdminHouse.create({ ...options, env }));
    try {
      await house.start(gateways);
      return house;
    } catch (error) {
      await house.close();
      throw error;
    }
  }

  private async start(gateways: number): Promise<void> {
    const { house } = this;
    // One socket of the configuration serves one gateway.
    delete house.appliance.env.COSI_ENDPOINT;
    const endpoints = [
      { name: BUCKETS, protocol: 'cosi', backend: 'fake' },
      { name: BLOCKS, protocol: 'csi' },
    ];
    for (const body of endpoints) {
      const made = await house.call(house.root.admin, 'POST', '/tenants/acme/endpoints', { body });
      if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    }
    for (let at = 0; at < gateways; at++) {
      this.ports[at] = await freePort();
      await this.startGateway(at);
    }
    await house.appliance.worker();
  }

  /** Again, when it was killed. */
  async startGateway(at: number): Promise<void> {
    const folder = this.folderOf(at);
    mkdirSync(folder, { recursive: true });
    if (this.gateways[at]) this.past.push(this.gateways[at]);
    this.gateways[at] = await this.house.appliance.gateway({
      TRIVET_CLUSTER_LISTEN: `127.0.0.1:${this.ports[at]}`,
      TRIVET_SOCKET_DIR: folder,
    });
  }

  /** The socket of an endpoint at the gateway itself. */
  direct(endpoint: string, protocol: 'cosi' | 'csi', at = 0): string {
    return join(this.folderOf(at), 'acme', endpoint, `${protocol}.sock`);
  }

  /**
   * @param token of one that is used again
   * @param beside of whose cluster it is another connector
   */
  async connector({ token, beside }: { token?: string; beside?: Connector } = {}): Promise<Connector> {
    const number = ++this.made;
    const cluster = beside?.cluster ?? `c${number}`;
    const folder = join(this.house.appliance.folder, `connector-${number}`);
    mkdirSync(folder, { recursive: true });
    const given = token ?? beside?.token ?? (await this.joinToken(cluster));
    const home = beside?.home ?? folder;
    writeFileSync(join(home, 'token'), `${given}\n`, { mode: 0o600 });
    const sockets = { cosi: join(folder, 'cosi.sock'), csi: join(folder, 'csi.sock') };
    return { process: await this.run(home, sockets), home, cluster, token: given, sockets };
  }

  /** The same one again, after its end. */
  async restart(connector: Connector): Promise<void> {
    connector.process = await (await this.run(connector.home, connector.sockets)).ready();
  }

  cosi(socket: string): CosiClient {
    return this.kept(new CosiClient(socket));
  }

  csi(socket: string, window?: number): CbtClient {
    return this.kept(CbtClient.overSocket(socket, window));
  }

  private kept<T extends { close(): void }>(client: T): T {
    this.clients.push(client);
    return client;
  }

  async shown(cluster: string) {
    return (await this.house.call(this.acme.viewer, 'GET', `/tenants/acme/clusters/${cluster}`)).body;
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.close();
    await Promise.all(this.connectors.map(connector => connector.stop('SIGKILL')));
    await this.house.close();
  }

  private folderOf(at: number): string {
    return join(this.house.appliance.folder, `sockets-${at}`);
  }

  private async joinToken(cluster: string): Promise<string> {
    const body = { cluster };
    const reply = await this.house.call(this.acme.admin, 'POST', '/tenants/acme/clusters/join-tokens', { body });
    if (reply.status !== 201) throw new Error(JSON.stringify(reply.body));
    return reply.body.token;
  }

  private async run(home: string, { cosi, csi }: Connector['sockets']): Promise<DaemonProcess> {
    const port = await freePort();
    const child = spawn(process.execPath, [...CONNECTOR_FLAGS, programFile('connector')], {
      env: {
        PATH: '/usr/bin:/bin',
        NODE_NO_WARNINGS: '1',
        ...CONNECTOR_ENVIRONMENT,
        TRIVET_HOME: home,
        TRIVET_GATEWAYS: this.ports.map(at => `127.0.0.1:${at}`).join(),
        TRIVET_CONNECTOR_SOCKETS: `${BUCKETS}=unix://${cosi},${BLOCKS}=unix://${csi}`,
        TRIVET_CONNECTOR_LISTEN: `127.0.0.1:${port}`,
        TRIVET_JOIN_TOKEN_FILE: join(home, 'token'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const connector = new DaemonProcess('connector', child, `http://127.0.0.1:${port}`);
    this.connectors.push(connector);
    return connector;
  }
}
