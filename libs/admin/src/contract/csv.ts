/**
 * Items of a list as CSV (RFC 4180), for spreadsheets. The one file of the contract whose values the page takes, too: it
 * imports nothing.
 */
export function csvOf(items: readonly object[]): string {
  if (items.length === 0) return '';
  const rows = items.map(item => new Map(cellsOf(item)));
  const heads = new Set(rows.flatMap(row => [...row.keys()]));
  // Of `condition`, which is null or an object: its parts stand in columns of their own.
  for (const head of [...heads]) if ([...heads].some(other => other.startsWith(`${head}.`))) heads.delete(head);
  const line = (cells: readonly string[]): string => `${cells.map(quoted).join(',')}\r\n`;
  return [[...heads], ...rows.map(row => [...heads].map(head => row.get(head) ?? ''))].map(line).join('');
}

/** `volume: { name }` is the column `volume.name`; several words stand in one cell, other arrays as JSON. */
function* cellsOf(item: object, above = ''): Generator<[head: string, text: string]> {
  for (const [name, value] of Object.entries(item)) {
    const head = above + name;
    if (Array.isArray(value)) yield [head, value.some(isObject) ? JSON.stringify(value) : value.join(' ')];
    else if (isObject(value)) yield* cellsOf(value, `${head}.`);
    else yield [head, String(value ?? '')];
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** A spreadsheet takes what begins so for a formula, which somebody may have called a volume: before it stands a quote. */
const FORMULA = /^[=+\-@\t\r]/;

function quoted(text: string): string {
  const cell = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
