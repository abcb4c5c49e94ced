import { existsSync, readFileSync, realpathSync } from 'node:fs';

/** Mount points at or below a folder. */
export function mountsBelow(folder: string, mountInfo = readFileSync('/proc/self/mountinfo', 'utf8')): string[] {
  if (!existsSync(folder)) return [];
  const real = realpathSync(folder);
  return mountInfo
    .split('\n')
    .map(line => line.split(' ')[4])
    .filter(point => point !== undefined)
    .map(point =>
      point.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    )
    .filter(point => point === real || point.startsWith(`${real}/`));
}

export const isMounted = (folder: string): boolean =>
  existsSync(folder) && mountsBelow(folder).includes(realpathSync(folder));

/** Options with which the file system of a folder is mounted. */
export function optionsOf(folder: string, mountInfo = readFileSync('/proc/self/mountinfo', 'utf8')): string[] {
  const real = realpathSync(folder);
  let longest = '';
  let options: string[] = [];
  for (const line of mountInfo.split('\n')) {
    // Optional fields end with a dash; the file system's own options are last.
    const [point = '', own = ''] = line.split(' ').slice(4);
    const isAbove = point === '/' || real === point || real.startsWith(`${point}/`);
    if (point === '' || !isAbove || point.length < longest.length) continue;
    longest = point;
    options = [...own.split(','), ...(line.split(' ').at(-1) ?? '').split(',')];
  }
  return options;
}
