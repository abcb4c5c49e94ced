import { LauncherError } from '../home.js';
import type { ApiClient } from './api-client.js';
import { EXIT } from './api-error.js';
import { type Columns, isTable, printable, showPage, tableLines } from './output.js';
import { watchChanges } from './watch-changes.js';

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
    lines: ({ items, next }) => [
      ...tableLines(items, shown),
      ...(next ? [`the first ${items.length}; --limit shows more`] : []),
    ],
    changes: (before, now) => changedRows(before?.items, now.items, isTable(shown) ? lineOf(shown) : jsonOf),
  });
}

type Told = 'is' | 'gone';
type Line<T> = (told: Told, item: T) => string;

/** Those that are new or not as they were, and those that are gone. Exported for its test. */
export function changedRows<T>(before: readonly T[] | undefined, now: readonly T[], line: Line<T>): string[] {
  const known = new Map(before?.map(item => [keyOf(item), item]));
  const there = new Set(now.map(keyOf));
  return [
    ...now
      .filter(item => JSON.stringify(known.get(keyOf(item))) !== JSON.stringify(item))
      .map(item => line('is', item)),
    ...[...known].filter(([key]) => !there.has(key)).map(([, item]) => line('gone', item)),
  ];
}

/** Ids are unique; what has none has a name, of its tenant. */
function keyOf(item: unknown): string {
  const { id, tenant, name } = item as { id?: string; tenant?: string; name?: string };
  return id ?? `${tenant ?? ''}/${name ?? JSON.stringify(item)}`;
}

const lineOf =
  <T>({ columns }: Pick<Columns<T>, 'columns'>): Line<T> =>
  (told, item) =>
    [...(told === 'gone' ? ['gone'] : []), ...Object.values(columns).map(cell => printable(cell(item)))].join('  ');

const jsonOf = (told: Told, item: unknown): string => JSON.stringify(told === 'gone' ? { gone: item } : item);
