import { useRead } from '../api/read';
import { showBytes } from './amounts';
import { type BulkActions, filterOf } from './choosing';

/** No event has them read again. */
const EVERY_MS = 10_000;

/** How many there are on all pages, and what they hold; a long list is not counted to its end. */
export function ListTotals({ bulk, wanted }: { bulk: BulkActions; wanted: Record<string, unknown> }) {
  const { tenant, totals, noun } = bulk;
  const read = useRead(totals, { params: { tenant }, query: filterOf(bulk, wanted) as never }, { every: EVERY_MS });
  const data = read.data?.data;
  if (!data) return null;
  const { count, more, bytes } = data;
  const held = bytes === null ? '' : `, ${showBytes(bytes)} together`;
  return (
    <p className="dimmed" role="status">
      {more ? 'More than ' : ''}
      {count.toLocaleString('en')} {count === 1 && !more ? noun[0] : noun[1]}
      {held}
    </p>
  );
}
