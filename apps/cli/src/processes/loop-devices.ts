import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';

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
