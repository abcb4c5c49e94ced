import type { Socket } from 'node:net';
import type { Config } from '#platform/config/config';
import { bindSocket } from '#platform/connections/unix-socket';
import type { Logger } from '#platform/logging/log';
import { endpointName } from '#protocol/enrolment';
import { connectorConnections, connectorRefusalsTotal } from './connector-metrics.js';
import type { Gateways } from './gateways.js';
import { carry } from './tunnel.js';

const MAX_CONNECTIONS = 256;

/** The UNIX sockets beside the sidecars, one for each endpoint that is served. */
export class Sockets {
  private readonly open = new Map<string, Set<Socket>>();

  constructor(
    private readonly tenantId: string,
    private readonly gateways: Gateways,
    private readonly log: Logger,
  ) {}

  /** @returns what closes it */
  async serve(endpoint: string, path: string, group: Config['TRIVET_CONNECTOR_SOCKET_GROUP']): Promise<() => void> {
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
    this.log.info({ socket: path, endpoint }, 'an endpoint is served');
    return () => {
      bound.release();
      for (const local of mine) local.destroy();
    };
  }

  /** How many connections each endpoint has. */
  counts(): Record<string, number> {
    return Object.fromEntries([...this.open].map(([endpoint, { size }]) => [endpoint, size]));
  }
}
