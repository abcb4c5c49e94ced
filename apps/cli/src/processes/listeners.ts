import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { commandOf, markOf, pids } from './process.js';

const LISTEN = '0A';
/** Loopback and all addresses, as /proc/net has them. */
const HERE = new Set(['0100007F', '00000000', '0'.repeat(32), '0000000000000000FFFF00000100007F']);

/** Sockets that take connections to a port of 127.0.0.1; undefined where the kernel does not tell. */
function socketsAt(port: number): Set<string> | undefined {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  const found = new Set<string>();
  for (const table of ['tcp', 'tcp6']) {
    let text: string;
    try {
      text = readFileSync(`/proc/self/net/${table}`, 'utf8');
    } catch {
      if (table === 'tcp') return undefined;
      continue;
    }
    for (const line of text.split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      const [address = '', at] = local.split(':');
      if (state === LISTEN && at === wanted && HERE.has(address)) found.add(`socket:[${inode}]`);
    }
  }
  return found;
}

/** Undefined: not ours to look at. */
function socketsOf(pid: number): string[] | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
      try {
        return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
      } catch {
        return [];
      }
    });
  } catch {
    return undefined;
  }
}

/** Whether that very process takes the connections to a port of 127.0.0.1: nothing is told to whoever else does. */
export function listensAt(pid: number, port: number): boolean {
  const open = socketsAt(port);
  if (open === undefined) return true;
  if (open.size === 0) return false;
  const own = socketsOf(pid);
  return own === undefined || own.some(socket => open.has(socket));
}

/** Who else takes them, for a message; undefined when nobody does. */
export function strangerAt(pid: number | undefined, port: number): string | undefined {
  const open = socketsAt(port);
  if (open === undefined || open.size === 0) return undefined;
  const own = pid === undefined ? [] : socketsOf(pid);
  if (own === undefined || own.some(socket => open.has(socket))) return undefined;
  for (const other of pids()) {
    if (!socketsOf(other)?.some(socket => open.has(socket))) continue;
    const home = markOf(other);
    return `${commandOf(other)}, pid ${other}${home === undefined ? '' : `, of ${home}`}`;
  }
  return "another user's program";
}
