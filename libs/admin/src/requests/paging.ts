import { createHash } from 'node:crypto';
import { Refusal } from '#admin/problems/problems';
import type { AdminCall } from '#admin/requests/admin-call';
import type { PageOf, PageRequest, Place } from '#platform/database/keyset';
import { isStorageError } from '#platform/errors';

interface PagingQuery {
  limit: number;
  cursor?: string | undefined;
}

/**
 * One page of a list. `read` gives the rows behind a place in the order and with the filters of the call; a cursor is such
 * a place, and is refused (400) when it comes with another order, other filters or another list than its own.
 */
export async function answerPage<Row, Item>(
  call: AdminCall,
  read: (request: PageRequest) => Promise<PageOf<Row>>,
  show: (row: Row) => Item,
): Promise<{ items: Item[]; next: string | null }> {
  const { limit, cursor, ...filters } = call.query as unknown as PagingQuery;
  const list = JSON.stringify([call.contract.id, call.params ?? {}, Object.entries(filters).sort()]);
  const after = cursor === undefined ? undefined : placeOf(cursor, list);
  const { rows, next } = await read(after ? { limit, after } : { limit }).catch(error => {
    throw isStorageError(error) && error.field === 'cursor' ? badCursor() : error;
  });
  return { items: rows.map(show), next: next ? cursorOf(next, list) : null };
}

const cursorOf = (place: Place, list: string): string =>
  Buffer.from(JSON.stringify([printOf(list), ...place])).toString('base64url');

function placeOf(cursor: string, list: string): Place {
  let sent: unknown;
  try {
    sent = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw badCursor();
  }
  if (!Array.isArray(sent) || !sent.every(value => typeof value === 'string')) throw badCursor();
  const [print, ...place] = sent as string[];
  if (print !== printOf(list)) throw badCursor();
  return place;
}

const printOf = (list: string): string => createHash('sha256').update(list).digest('base64url').slice(0, 8);

const badCursor = (): Refusal => {
  const message = 'it is not the `next` of a page of this list with these filters: begin again without it';
  return new Refusal('invalid_argument', `/query/cursor: ${message}`, [{ pointer: '/query/cursor', message }]);
};
