import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { pids } from './process.js';

export interface LoopDevice {
  /** As /dev/loop0. */
  device: string;
  file: string;
}

/** Loop devices over files below a folder, deleted files included. */
export function loopDevicesBelow(folder: string, blockDevices = '/sys/block'): LoopDevice[] {
  if (!existsSync(folder) || !existsSync(blockDevices)) return [];
  const real = realpathSync(folder);
  return readdirSync(blockDevices)
    .filter(name => name.startsWith('loop'))
    .flatMap(name => {
      try {
        const file = readFileSync(`${blockDevices}/${name}/loop/backing_file`, 'utf8').trimEnd();
        return file.startsWith(`${real}/`) ? [{ device: `/dev/${name}`, file }] : [];
      } catch {
        // It has no file, now or ever.
        return [];
      }
    });
}

/**
 * A process of each other mount namespace in which a device is still mounted: a namespace that was made meanwhile has a copy
 * of every mount, which an unmount here may not reach. The device goes with it.
 */
export function namespacesWith(device: string): number[] {
  const seen = new Set([namespaceOf(process.pid)]);
  return pids().filter(pid => {
    const namespace = namespaceOf(pid);
    if (namespace === undefined || seen.has(namespace)) return false;
    seen.add(namespace);
    return sourcesOf(pid).includes(device);
  });
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`);
  } catch {
    return undefined;
  }
}

function sourcesOf(pid: number): (string | undefined)[] {
  try {
    const lines = readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n');
    return lines.map(line => line.split(' - ')[1]?.split(' ')[1]);
  } catch {
    return [];
  }
}
