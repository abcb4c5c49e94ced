import { LauncherError } from '../home.js';
import type { ApiClient } from './api-client.js';
import { EXIT } from './api-error.js';
import { type Columns, isTable, printable, showPage, tableLines } from './output.js';
import { watchChanges } from './watch-changes.js';

/** `next`: there are more than these. */
type ListPage<T> = { items: readonly T[]; next?: string | null };

interface Listed<T> extends Columns<T> {
  watch?: boolean;
  /** Of what they are listed; undefined: of all that whoever asks may see. */
  tenant: string | undefined;
}

/** A list, once; or drawn anew when something changes, and where that is no terminal a line for each of its rows that does. */
export async function showList<T>(api: ApiClient, read: () => Promise<ListPage<T>>, listed: Listed<T>): Promise<void> {
  const { watch, tenant, ...shown } = listed;
  if (!watch) return showPage(await read(), shown);
  if (listed.output === 'csv') throw new LauncherError('--watch shows a table, or JSON a line; not csv', EXIT.usage);
  await watchChanges<ListPage<T>>(api, {
    query: tenant === undefined ? {} : { tenant },
    read,
    json: !isTable(shown),
    lines: ({ items }) => tableLines(items, shown),
    foot: ({ items, next }) => (next ? [`the first ${items.length}; --limit shows more`] : []),
    changes: (before, now) => changedRows(before?.items, now, isTable(shown) ? lineOf(shown) : jsonOf),
  });
}

type Told = 'is' | 'gone';
type Line<T> = (told: Told, item: T) => string;

/**
 * Those that are new or not as they were, and those that are gone: none of a list that goes on behind its limit, where a row
 * that is missing may have moved. Exported for its test.
 */
export function changedRows<T>(
  before: readonly T[] | undefined,
  { items, next }: ListPage<T>,
  line: Line<T>,
): string[] {
  const known = keyed(before ?? []);
  const now = keyed(items);
  const changed = [...now].filter(([key, item]) => !known.has(key) || saidOf(known.get(key)) !== saidOf(item));
  const gone = next ? [] : [...known].filter(([key]) => !now.has(key));
  return [...changed.map(([, item]) => line('is', item)), ...gone.map(([, item]) => line('gone', item))];
}

/** What tells rows apart that have no id. */
const IDENTITY = ['tenant', 'month', 'kind', 'backend', 'pool', 'name'] as const;

function keyed<T>(items: readonly T[]): Map<string, T> {
  const found = new Map<string, T>();
  for (const item of items) {
    const { id, ...row } = item as { id?: unknown } & Record<string, unknown>;
    const key = JSON.stringify(id ?? IDENTITY.map(name => row[name]));
    let free = key;
    for (let n = 1; found.has(free); n++) free = `${key} ${n}`;
    found.set(free, item);
  }
  return found;
}

/** When something was last looked at, heard of or used: that alone is no change. */
const LOOKS = new Set(['checkedAt', 'lastSeen', 'seenAt', 'lastUsedAt']);
const saidOf = (item: unknown): string => JSON.stringify(item, (name, value) => (LOOKS.has(name) ? undefined : value));

const lineOf =
  <T>({ columns }: Pick<Columns<T>, 'columns'>): Line<T> =>
  (told, item) =>
    [...(told === 'gone' ? ['gone'] : []), ...Object.values(columns).map(cell => printable(cell(item)))].join('  ');

const jsonOf = (told: Told, item: unknown): string => JSON.stringify(told === 'gone' ? { gone: item } : item);
