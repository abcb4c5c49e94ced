import { useMediaQuery } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';

interface HeadProps {
  head: string;
  /** Its name in the API's `sort`. */
  by: string;
  /** Of the list when the address says none. */
  usual: string;
  /** Whether the first of it are wanted first: names begin with a, times and sizes with the newest and largest. */
  descends?: boolean;
  number?: boolean;
}

/** The head of a column that the API can sort by. The order is a part of the address; it is asked for anew from its first page. */
export function SortedHead({ head, by, usual, descends, number }: HeadProps) {
  const [search, setSearch] = useSearchParams();
  // Cards have no heads; their order is chosen among the filters.
  const isTable = useMediaQuery('(min-width: 48em)', true, { getInitialValueInEffect: false });
  const sort = search.get('sort') || usual;
  const down = sort === `-${by}`;
  const isChosen = down || sort === by;
  const next = isChosen ? (down ? by : `-${by}`) : descends ? `-${by}` : by;
  const change = (): void =>
    setSearch(
      before => {
        const after = new URLSearchParams(before);
        // A cursor belongs to the order that it was made with.
        after.delete('cursor');
        if (next === usual) after.delete('sort');
        else after.set('sort', next);
        return after;
      },
      { replace: true },
    );
  let shown: ReactNode = head;
  if (isTable)
    shown = (
      <button type="button" className="sort" onClick={change}>
        {head}
        <span aria-hidden="true">{isChosen ? (down ? ' ↓' : ' ↑') : ' ↕'}</span>
      </button>
    );
  return (
    <th
      scope="col"
      {...{ role: 'columnheader' }}
      aria-sort={isChosen ? (down ? 'descending' : 'ascending') : 'none'}
      className={number ? 'number' : undefined}
    >
      {shown}
    </th>
  );
}
