const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** For people; scripts get the exact number. */
export function humanBytes(bytes: string | bigint | number): string {
  let rest = Number(bytes);
  let unit = 0;
  while (rest >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit++;
  }
  return `${Number.isInteger(rest) ? rest : rest.toFixed(1)} ${UNITS[unit]}`;
}
