import { readFile } from 'node:fs/promises';

/** Of /proc/net/tcp: FIN_WAIT1, FIN_WAIT2, CLOSING and LAST_ACK, as processes leave their connections behind. */
const LEAVING = new Set(['04', '05', '0B', '09']);
const LISTENING = '0A';

/**
 * Whether the kernel still sends what processes that are gone have written: connections without a process, with bytes that nobody has
 * acknowledged. A killed process writes nothing any more, but what it had written before may arrive a minute later. Connections of
 * clients to what listens here, or did, do not count: nobody writes to a store by them.
 * @param portals ports of daemons that were killed
 */
export async function hasLeftoverSockets(portals: readonly number[]): Promise<boolean> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map(path => readFile(path, 'utf8').catch(() => '')),
  );
  return hasLeftovers(
    tables.flatMap(table => table.split('\n').slice(1)),
    portals,
  );
}

/** Of lines as of /proc/net/tcp. */
export function hasLeftovers(lines: readonly string[], portals: readonly number[]): boolean {
  const sockets = lines.map(parse);
  const listening = sockets.filter(({ state }) => state === LISTENING).map(({ port }) => port);
  const served = new Set([...listening, ...portals]);
  return sockets.some(
    ({ state, inode, unsent, port }) => LEAVING.has(state) && inode === '0' && unsent > 0 && !served.has(port),
  );
}

/** `sl local remote st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode`, hexadecimal up to the queues. */
function parse(line: string): { state: string; inode: string; unsent: number; port: number } {
  const [, local = '', , state = '', queues = '', , , , , inode = ''] = line.trim().split(/\s+/);
  const [port, unsent] = [local.split(':')[1], queues.split(':')[0]].map(text => Number.parseInt(text ?? '0', 16));
  return { state, inode, unsent: unsent!, port: port! };
}
