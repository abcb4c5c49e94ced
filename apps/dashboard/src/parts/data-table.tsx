import { Button, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';
import { ChooseRow, type Choosing } from './choosing';
import { PAGE_SIZE, PageSize, usePageSize } from './page-size';
import { SortedHead } from './sorted-head';

export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** Numbers stand right. */
  number?: boolean;
  /** Sentences and long names: not squeezed by the others. */
  wide?: boolean;
  /** The list can be sorted by it, under this name in the API. */
  sort?: string;
  /** The largest or newest come first when it is chosen. */
  descends?: boolean;
}

interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  empty: ReactNode;
  /** Of the filters or the page before; the answer to these is under way. */
  stale?: boolean;
  /** Of the list when the address says none; absent: it has one order. */
  usualSort?: string;
  /** Each row can be chosen, in its first cell. */
  choosing?: Choosing;
}

/** Styles of narrow screens take the roles of table elements away, so they are said. */
const as = (role: string): { role: string } => ({ role });

/** A table; on a narrow screen each row is a card with named values. */
export function DataTable<T>({ label, columns, rows, keyOf, empty, stale, usualSort, choosing }: TableProps<T>) {
  if (rows.length === 0) return <>{empty}</>;
  return (
    <div className={stale ? 'table-scroll stale' : 'table-scroll'} aria-busy={stale}>
      <table className="data-table" aria-label={label} {...as('table')}>
        <thead {...as('rowgroup')}>
          <tr {...as('row')}>
            {columns.map(({ head, number, sort, descends }) =>
              sort !== undefined && usualSort !== undefined ? (
                <SortedHead key={head} head={head} by={sort} usual={usualSort} descends={descends} number={number} />
              ) : (
                <th key={head} scope="col" {...as('columnheader')} className={number ? 'number' : undefined}>
                  {head}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody {...as('rowgroup')}>
          {rows.map(row => (
            <tr key={keyOf(row)} {...as('row')}>
              {columns.map(({ head, cell, number, wide }, at) => (
                <td
                  key={head}
                  data-head={head}
                  {...as('cell')}
                  className={number ? 'number' : wide ? 'wide' : undefined}
                >
                  {choosing && at === 0 ? (
                    <span className="row-actions">
                      <ChooseRow choosing={choosing} row={row} />
                      {cell(row)}
                    </span>
                  ) : (
                    cell(row)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Pages follow each other by cursors; the way back is the browser's. */
export function Pager({ next, shown }: { next: string | null; shown: number }) {
  const [search, setSearch] = useSearchParams();
  const cursor = search.get('cursor');
  const go = (to: string | null): void => {
    window.scrollTo(0, 0);
    setSearch(before => {
      const after = new URLSearchParams(before);
      if (to === null) after.delete('cursor');
      else after.set('cursor', to);
      return after;
    });
  };
  const size = usePageSize();
  // Whoever asked for fewer or more can ask for another number, also where all are shown.
  if (cursor === null && next === null && size === PAGE_SIZE.usual && shown <= PAGE_SIZE.least) return null;
  return (
    <Group component="nav" aria-label="Pages of the list" gap="xs">
      <Button variant="default" size="xs" disabled={cursor === null} onClick={() => go(null)}>
        First page
      </Button>
      <Button variant="default" size="xs" disabled={next === null} onClick={() => go(next)}>
        Next page
      </Button>
      <PageSize />
      <span className="dimmed">{shown} on this page</span>
    </Group>
  );
}
