/**
 * Portals of pools that another storage host serves: an initiator that comes to this host's own is told where to go (standby-session.ts).
 * Without it a node whose driver begins with the wrong host finds nothing, and none ever gets a session that could follow the pool.
 *
 * In the worker, since nothing is lost with it: who is sent away needs it no more. Of several workers of a host one has the port. tgtd needs
 * the port itself when the host gets the pool: a portal is closed before that, with all that is connected to it.
 */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { isHostAddress } from '#backends/linux/moving-address';
import { PduReader } from '#backends/tgt/iscsi-pdu';
import { canonicalPortal, splitPortal } from '#backends/tgt/portals';
import { type StandbyGuide, StandbySession } from '#backends/tgt/standby-session';
import { createLogger } from '#platform/logging/log';

const log = createLogger('exports');

/** Of one portal; a thousand volumes of a lost host come within seconds, and are gone in some ms each. */
const MAX_CONNECTIONS = 256;
/** Of one address: a node logs in for one volume after the other. */
const MAX_OF_ADDRESS = 64;
/** A discovery of ten thousand targets in segments of 8 KiB takes some hundred. */
const MAX_UNITS = 1_000;
/** A login or a discovery is over by then. */
const CONNECTION_MS = 15_000;
const MAX_BYTES = 65_536;

interface Open {
  server: Server;
  sockets: Set<Socket>;
  /** As it was named last. */
  guide: StandbyGuide;
  owner: string;
}

/** Of this process, by portal: whoever opens a backend once more must find them. */
const open = new Map<string, Open>();

/** Those that were opened for it and are open still: of a registration that may have others by now. */
export const standbyPortalsOf = (owner: string): string[] =>
  [...open].filter(([, one]) => one.owner === owner).map(([portal]) => portal);

/** Those of `portals` that are this host's addresses, and free, from now on. A repeat opens what was taken before. */
export async function openStandbyPortals(portals: readonly string[], guide: StandbyGuide, owner = ''): Promise<void> {
  for (const portal of portals.map(canonicalPortal)) {
    const known = open.get(portal);
    if (known) Object.assign(known, { guide, owner });
    if (known || !isHostAddress(splitPortal(portal).address)) continue;
    const sockets = new Set<Socket>();
    const server = createServer(socket => {
      const { remoteAddress } = socket;
      const ofAddress = [...sockets].filter(other => other.remoteAddress === remoteAddress);
      if (ofAddress.length >= MAX_OF_ADDRESS) return void socket.destroy();
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      serve(socket, new StandbySession(portal, one.guide));
    });
    server.maxConnections = MAX_CONNECTIONS;
    const one: Open = { server, sockets, guide, owner };
    open.set(portal, one);
    try {
      await listening(server, splitPortal(portal));
      server.unref();
    } catch (error) {
      open.delete(portal);
      const { code, message } = error as NodeJS.ErrnoException;
      // Another worker of this host has it, or a daemon that just ends.
      if (code !== 'EADDRINUSE') log.warn({ portal, reason: message }, 'initiators are not sent on from here');
    }
  }
}

/** When it resolves the ports are free. */
export async function closeStandbyPortals(portals: readonly string[]): Promise<void> {
  await Promise.all(
    portals.map(canonicalPortal).map(async portal => {
      const one = open.get(portal);
      if (!one) return;
      open.delete(portal);
      const closed = new Promise<void>(resolve => one.server.close(() => resolve()));
      for (const socket of one.sockets) socket.destroy();
      await closed;
    }),
  );
}

function listening(server: Server, { address, port }: { address: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address, port, ipv6Only: true }, () => {
      server.off('error', reject);
      server.on('error', error => log.warn({ err: error }, 'a portal accepts nobody'));
      resolve();
    });
  });
}

/** Nothing more is read while something is to be answered, or the answer is not taken: whoever asks much waits himself. */
function serve(socket: Socket, session: StandbySession): void {
  const reader = new PduReader();
  let bytes = 0;
  let units = 0;
  const timer = setTimeout(() => socket.destroy(), CONNECTION_MS).unref();
  const answer = async () => {
    for (let pdu = reader.next(); pdu; pdu = reader.next()) {
      const reply = ++units <= MAX_UNITS ? await session.answer(pdu) : undefined;
      if (!reply || socket.destroyed) return void socket.destroy();
      const isTaken = socket.write(reply.unit);
      if (reply.ends) return void socket.end();
      if (!isTaken) await once(socket, 'drain');
    }
    socket.resume();
  };
  socket.unref();
  socket.setNoDelay(true);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {});
  socket.on('data', chunk => {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) return void socket.destroy();
    reader.push(chunk);
    socket.pause();
    answer().catch(() => void socket.destroy());
  });
}
