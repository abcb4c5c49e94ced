import type { OnReadOpts, Socket } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect,
  createSecureContext,
  type SecureContext,
} from 'node:tls';
import type { Listen } from '#platform/config/setting-forms';
import type { Logger } from '#platform/logging/log';
import { GATEWAY_NAME } from '#protocol/enrolment';
import { connectorGateways } from './connector-metrics.js';
import { ControlClient } from './control-client.js';
import type { Identity } from './identity.js';
import { Inflow } from './inflow.js';

const CHECK_MS = 2_000;
/** Unanswered so often a gateway is dead, though its host says nothing: what goes through it ends. */
const DEAD_AFTER = 3;
const CONNECT_MS = 5_000;
const KEEPALIVE_MS = 10_000;

type Health = 'ready' | 'unknown' | 'not_ready';

/** A connection to a gateway that has spoken. */
export interface Reached {
  remote: Socket;
  inflow: Inflow;
}

/** One address, and how it answers. */
export class Gateway {
  readonly tunnels = new Set<Socket>();
  health: Health = 'unknown';
  private control: ControlClient | undefined;
  private misses = 0;

  constructor(
    readonly address: Listen,
    private readonly identity: () => Identity,
    private readonly context: () => SecureContext,
    private readonly log: Logger,
  ) {}

  /** undefined: it does not answer, or does not serve that name. */
  connect(name: string): Promise<Reached | undefined> {
    const inflow = new Inflow();
    const options: ConnectionOptions & { onread: OnReadOpts } = {
      ...this.address,
      servername: name,
      secureContext: this.context(),
      ALPNProtocols: ['h2'],
      onread: inflow.onread,
      // All gateways have that name, whatever is asked for.
      checkServerIdentity: (_, presented) => checkServerIdentity(GATEWAY_NAME, presented),
    };
    return new Promise(resolve => {
      const socket = connect(options);
      inflow.from(socket);
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEPALIVE_MS);
      const late = setTimeout(() => socket.destroy(), CONNECT_MS);
      socket.on('error', () => {});
      let isReached = false;
      socket.once('secureConnect', () => {
        isReached = true;
      });
      const refused = () => {
        clearTimeout(late);
        // The next connections need not find out the same; a check says when it is back.
        if (!isReached) this.is('not_ready');
        resolve(undefined);
      };
      socket.once('close', refused);
      void inflow.begun.then(() => {
        clearTimeout(late);
        socket.off('close', refused);
        resolve({ remote: socket, inflow });
      });
    });
  }

  /** With the certificate of now. */
  get client(): ControlClient {
    this.control ??= new ControlClient(this.address, this.identity());
    return this.control;
  }

  /** With another certificate, or at another gateway. */
  refresh(): void {
    this.control?.close();
    this.control = undefined;
  }

  async check(): Promise<void> {
    const isReady = await this.client.isReady().catch(() => undefined);
    this.misses = isReady === undefined ? this.misses + 1 : 0;
    this.is(isReady ? 'ready' : 'not_ready');
    // Several gateways may be behind one address: a new connection finds another one.
    if (!isReady) this.refresh();
    // Once: what begins later was let in by one that lives.
    if (this.misses === DEAD_AFTER) for (const tunnel of this.tunnels) tunnel.destroy();
  }

  private is(health: Health): void {
    if (this.health === health) return;
    this.health = health;
    const { host, port } = this.address;
    this.log.info({ gateway: `${host}:${port}`, health }, 'a gateway has changed');
  }

  close(): void {
    this.refresh();
    for (const tunnel of this.tunnels) tunnel.destroy();
  }
}

const contextOf = ({ key, certificate, authority }: Identity): SecureContext =>
  createSecureContext({ key, cert: certificate, ca: authority, minVersion: 'TLSv1.3' });

const RANK: Readonly<Record<Health, number>> = { ready: 0, unknown: 1, not_ready: 2 };

/** All addresses of the appliance. */
export class Gateways {
  private readonly all: readonly Gateway[];
  private timer: NodeJS.Timeout | undefined;
  private checking: Promise<unknown> | undefined;
  /** One for all connections: it is larger than all else that TLS has of them. */
  private context: SecureContext | undefined;

  constructor(addresses: readonly Listen[], identity: () => Identity, log: Logger) {
    const context = (): SecureContext => {
      this.context ??= contextOf(identity());
      return this.context;
    };
    this.all = addresses.map(address => new Gateway(address, identity, context, log));
  }

  /** The ready ones first, those with least to carry before the others. One that is not ready may be so by now. */
  inOrder(): Gateway[] {
    return [...this.all].sort((a, b) => RANK[a.health] - RANK[b.health] || a.tunnels.size - b.tunnels.size);
  }

  /** Why nothing can be carried. */
  get problem(): string | undefined {
    return this.all.some(({ health }) => health === 'ready') ? undefined : 'no gateway is ready';
  }

  async start(): Promise<void> {
    const round = () => {
      this.checking ??= Promise.all(this.all.map(gateway => gateway.check())).finally(() => {
        this.checking = undefined;
        this.count();
      });
      return this.checking;
    };
    await round();
    this.timer = setInterval(() => void round(), CHECK_MS);
  }

  /** There is another certificate. */
  refresh(): void {
    this.context = undefined;
    for (const gateway of this.all) gateway.refresh();
  }

  private count(): void {
    for (const health of Object.keys(RANK) as Health[])
      connectorGateways.set({ health }, this.all.filter(gateway => gateway.health === health).length);
  }

  stop(): void {
    clearInterval(this.timer);
    for (const gateway of this.all) gateway.close();
  }
}
