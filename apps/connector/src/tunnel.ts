import type { Socket } from 'node:net';
import { connectorRefusalsTotal } from './connector-metrics.js';
import type { Gateway, Gateways, Reached } from './gateways.js';

/**
 * Carries one connection of a sidecar to one gateway, byte by byte: metadata, deadlines, cancellation, windows and goodbyes of HTTP/2 are
 * between caller and gateway. Nothing is sent before the gateway has spoken, so another one may be tried until then, and never
 * afterwards: when a gateway ends, so does the connection, and its calls are UNAVAILABLE to whoever waits for them.
 */
export async function carry(local: Socket, gateways: Gateways, name: string): Promise<void> {
  local.on('error', () => {});
  for (const gateway of gateways.inOrder()) {
    if (local.destroyed) return;
    const reached = await gateway.connect(name);
    if (reached) return join(local, reached, gateway);
  }
  connectorRefusalsTotal.inc({ reason: 'no_gateway' });
  local.destroy();
}

function join(local: Socket, { remote, inflow }: Reached, gateway: Gateway): void {
  gateway.tunnels.add(remote);
  remote.once('close', () => {
    gateway.tunnels.delete(remote);
    // What it said last still reaches the caller.
    inflow.end();
    local.destroySoon();
  });
  local.once('close', () => remote.destroySoon());
  if (local.destroyed) return void remote.destroy();
  local.pipe(remote);
  inflow.into(local);
}
