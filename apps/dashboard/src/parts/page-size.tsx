import { NativeSelect } from '@mantine/core';
import { useSearchParams } from 'react-router';

const SIZES = ['25', '50', '100', '200'] as const;
const USUAL = '50';
export const PAGE_SIZE = { least: 25, usual: 50 } as const;

/** Rows of a page of a list; a part of the address. */
export function usePageSize(): number {
  const [search] = useSearchParams();
  return Number(SIZES.find(size => size === search.get('limit')) ?? USUAL);
}

/** A page with another number of rows begins where this one does. */
export function PageSize() {
  const [, setSearch] = useSearchParams();
  const size = usePageSize();
  return (
    <NativeSelect
      size="xs"
      aria-label="Rows on a page"
      value={String(size)}
      data={SIZES.map(value => ({ value, label: `${value} rows` }))}
      onChange={({ currentTarget: { value } }) =>
        setSearch(
          before => {
            const after = new URLSearchParams(before);
            if (value === USUAL) after.delete('limit');
            else after.set('limit', value);
            return after;
          },
          { replace: true },
        )
      }
    />
  );
}
