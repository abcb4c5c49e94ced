import { existsSync, realpathSync } from 'node:fs';
import type { Home } from '../home.js';
import { holdersOf, named } from '../processes/holders.js';
import { loopDevicesBelow, namespacesWith } from '../processes/loop-devices.js';
import { mountsBelow } from '../processes/mounts.js';
import { isAlive, processesOf } from '../processes/process.js';
import { readState } from '../state.js';
import { livingTgtds } from '../tgt-processes.js';

/**
 * Processes, mounts and loop devices of a home, a line each; nothing but what the kernel has counts. A device that somebody's
 * mount namespace still has a copy of is theirs, and goes with it.
 */
export function remainsOf(home: Home): string[] {
  const living = new Map([...processesOf(home.path), ...livingTgtds(home).map(({ id }) => id)].map(id => [id.pid, id]));
  // What up mounts; other mounts below a home are somebody's, such as a disk of his with pools.
  const pool = home.file('pool');
  const own = existsSync(pool) ? realpathSync(pool) : pool;
  return [
    ...[...living.values()].filter(isAlive).map(id => `${named(id)}, runs`),
    ...mountsBelow(home.path)
      .filter(point => point === own)
      .map(describeMount),
    ...loopDevicesBelow(home.path)
      .filter(({ device }) => namespacesWith(device).length === 0)
      .map(({ device, file }) => `${device} is a loop device over ${file}`),
  ];
}

/** All that is mounted below its folders, whoever did it: none of them may be deleted. */
export const mountsOf = (home: Home): string[] =>
  foldersOf(home).flatMap(folder => {
    // The home may be a disk of its own.
    const own = existsSync(folder) ? realpathSync(folder) : folder;
    return mountsBelow(folder)
      .filter(point => point !== own)
      .map(describeMount);
  });

/** All folders that are deleted with a home. The home last: it knows the others. */
export function foldersOf(home: Home): string[] {
  const { dataOutside } = readState(home) ?? {};
  return [...new Set([dataOutside, home.run, home.path].filter(folder => folder !== undefined))];
}

function describeMount(point: string): string {
  const holders = holdersOf(point).map(named);
  return `${point} is mounted${holders.length === 0 ? '' : `, and in use by ${holders.join('; ')}`}`;
}
