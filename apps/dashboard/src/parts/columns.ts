import { useSearchParams } from 'react-router';
import type { Column } from './data-table';

/** Those that the address names, and the first, which leads to the row's own page; all when it names none. */
export function useShownColumns<T>(columns: readonly Column<T>[]): readonly Column<T>[] {
  const [search] = useSearchParams();
  const asked = search.get('columns')?.split(',');
  return asked ? columns.filter(({ head }, at) => at === 0 || asked.includes(head)) : columns;
}
