import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { commandOf, identify, type ProcessId, pids } from './process.js';

const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);

/** Processes that keep a file system busy: by an open file, a mapped one, their program or the folder that they work in. */
export function holdersOf(folder: string): ProcessId[] {
  const real = realpathSync(folder);
  return pids()
    .filter(pid => pid !== process.pid && filesOf(pid).some(path => isBelow(path, real)))
    .map(identify)
    .filter(id => id !== undefined);
}

export const named = ({ pid }: Pick<ProcessId, 'pid'>): string => `${commandOf(pid)}, pid ${pid}`;

function filesOf(pid: number): string[] {
  const at = `/proc/${pid}`;
  const links = [`${at}/cwd`, `${at}/root`, `${at}/exe`];
  const found: string[] = [];
  try {
    links.push(...readdirSync(`${at}/fd`).map(fd => `${at}/fd/${fd}`));
    for (const line of readFileSync(`${at}/maps`, 'utf8').split('\n')) {
      const start = line.indexOf('/');
      if (start > 0) found.push(line.slice(start));
    }
  } catch {
    // Somebody else's, or gone.
  }
  for (const link of links)
    try {
      found.push(readlinkSync(link));
    } catch {
      // Closed meanwhile.
    }
  return found;
}
