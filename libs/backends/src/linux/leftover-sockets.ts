import { readFile } from 'node:fs/promises';

/** Of /proc/net/tcp: FIN_WAIT1, FIN_WAIT2, CLOSING and LAST_ACK, as processes leave their connections behind. */
const LEAVING = new Set(['04', '05', '0B', '09']);

/**
 * Whether the kernel still sends what processes that are gone have written: connections without a process, with bytes that nobody has
 * acknowledged. A killed process writes nothing any more, but what it had written before may arrive a minute later.
 * @param served ports whose clients do not count
 */
export async function hasLeftoverSockets(served: ReadonlySet<number>): Promise<boolean> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map(path => readFile(path, 'utf8').catch(() => '')),
  );
  return tables.some(table =>
    table
      .split('\n')
      .slice(1)
      .some(line => isLeftover(line, served)),
  );
}

/** `sl local remote st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode`, hexadecimal up to the queues. */
export function isLeftover(line: string, served: ReadonlySet<number>): boolean {
  const [, local = '', , state = '', queues = '', , , , , inode = ''] = line.trim().split(/\s+/);
  const [port, unsent] = [local.split(':')[1], queues.split(':')[0]].map(text => Number.parseInt(text ?? '0', 16));
  return LEAVING.has(state) && inode === '0' && unsent! > 0 && !served.has(port!);
}
