import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '#platform/config/config';
import { type BoundSocket, bindSocket } from '#platform/connections/unix-socket';
import type { Logger } from '#platform/logging/log';
import { endpointName } from '#protocol/enrolment';
import { connectorConnections, connectorRefusalsTotal } from './connector-metrics.js';
import type { Gateways } from './gateways.js';
import { carry } from './tunnel.js';

const MAX_CONNECTIONS = 256;

/** The UNIX sockets beside the sidecars, one for each endpoint that is served. */
export class Sockets {
  private readonly open = new Map<string, Set<Socket>>();
  private readonly listening: BoundSocket[] = [];

  constructor(
    private readonly tenantId: string,
    private readonly gateways: Gateways,
    private readonly log: Logger,
  ) {}

  async serve(endpoint: string, path: string, group: Config['TRIVET_CONNECTOR_SOCKET_GROUP']): Promise<void> {
    const name = endpointName({ tenantId: this.tenantId, endpoint });
    const mine = new Set<Socket>();
    this.open.set(endpoint, mine);
    const bound = await bindSocket({ path, group, setting: 'TRIVET_CONNECTOR_SOCKETS' }, local => {
      if (mine.size >= MAX_CONNECTIONS) {
        connectorRefusalsTotal.inc({ reason: 'too_many' });
        local.destroy();
        return;
      }
      mine.add(local);
      connectorConnections.inc();
      local.once('close', () => {
        mine.delete(local);
        connectorConnections.dec();
      });
      void carry(local, this.gateways, name);
    });
    this.listening.push(bound);
    this.log.info({ socket: path, endpoint }, 'an endpoint is served');
  }

  /** Takes no more connections. Those that are open cannot be told: they go on until their callers end, or for `graceMs`. */
  async close(graceMs: number): Promise<void> {
    for (const bound of this.listening) bound.release();
    const left = [...this.open.values()].flatMap(connections => [...connections]);
    const ended = left.map(local => new Promise(resolve => local.once('close', resolve)));
    await Promise.race([Promise.all(ended), delay(graceMs, undefined, { ref: false })]);
    for (const local of left) local.destroy();
  }

  /** How many connections each endpoint has. */
  counts(): Record<string, number> {
    return Object.fromEntries([...this.open].map(([endpoint, { size }]) => [endpoint, size]));
  }
}
