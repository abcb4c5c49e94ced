import { createHash } from 'node:crypto';
import type { Tx } from '#platform/database/database';
import { type Statement, sql } from '#platform/database/sql';
import { invalid } from '#platform/errors';

/**
 * Lists in pages. A page begins behind the place at which the one before it ended, whatever was inserted or deleted
 * meanwhile: nothing comes twice, nothing that was there all the time is missed, and the last page costs what the first does.
 */
export interface PageRequest {
  limit: number;
  /** The place of the last row that was shown. */
  after?: Place;
}

/** Values of the order's columns, as Postgres writes them. */
export type Place = readonly string[];

export interface PageOf<Row> {
  rows: Row[];
  /** Undefined: there are no more. */
  next: Place | undefined;
}

export interface OrderColumn {
  /** Never NULL. */
  sql: string;
  type: 'text' | 'uuid' | 'bigint';
}

/** The columns together are unique; the last one is an id, mostly. */
export interface Order {
  columns: readonly OrderColumn[];
  descending?: boolean;
}

export type Sort<Key extends string> = Key | `-${Key}`;

/** `-` is from the end. */
export function orderOf<Key extends string>(columns: Record<Key, Order['columns']>, sort: Sort<Key>): Order {
  const descending = sort.startsWith('-');
  return { columns: columns[(descending ? sort.slice(1) : sort) as Key], descending };
}

/** Also what a caller made up must not reach the database as an error of its own. */
const FORMS: Record<OrderColumn['type'], RegExp> = {
  text: /^[^\0]*$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  bigint: /^(\d{1,18}|[1-8]\d{18})$/,
};

/**
 * A SELECT whose conditions and order vary. Its text is made of what stands in the code alone; whatever came from a caller is
 * a parameter. It has no name, so no plan of it is kept, and its limit is written out: for a parameter the planner assumes a
 * tenth of all rows, and sorts them.
 */
export class ListQuery {
  private readonly values: unknown[] = [];
  private readonly conditions: string[] = [];

  /** `?` stands for the values, in their order. One that is undefined: there is no such condition. */
  where(condition: string, ...values: readonly unknown[]): this {
    if (values.includes(undefined)) return this;
    let at = 0;
    this.conditions.push(condition.replace(/\?/g, () => this.parameter(values[at++])));
    return this;
  }

  /** A value that something else than a condition needs, such as a join; give it before the first page is read. */
  parameter(value: unknown): string {
    return `$${this.values.push(value)}`;
  }

  /** @param select `SELECT ... FROM ...`, up to its WHERE */
  statement(select: string, order: Order, { limit, after }: PageRequest): readonly [Statement, readonly unknown[]] {
    const { columns, descending } = order;
    if (after) {
      const fits = after.length === columns.length && columns.every(({ type }, n) => FORMS[type].test(after[n]!));
      if (!fits) throw invalid('cursor', 'it is not one that a page of this list gave');
      const given = columns.map(({ type }, n) => `${this.parameter(after[n])}::text::${type}`);
      this.conditions.push(
        `(${columns.map(column => column.sql).join(', ')}) ${descending ? '<' : '>'} (${given.join(', ')})`,
      );
    }
    const place = `ARRAY[${columns.map(column => `${column.sql}::text`).join(', ')}] AS "pagePlace"`;
    const where = this.conditions.length > 0 ? `WHERE ${this.conditions.join(' AND ')}` : '';
    const by = columns.map(column => `${column.sql}${descending ? ' DESC' : ''}`).join(', ');
    const whole = `${select.replace(/^SELECT /, `SELECT ${place}, `)} ${where} ORDER BY ${by} LIMIT ${Math.trunc(limit) + 1}`;
    return [sql('', whole), this.values];
  }

  /**
   * How many there are, up to one more than `most`, what they hold together, and which they are (as `digestOf`).
   * @param from `FROM ...`, up to its WHERE
   */
  totals(from: string, { id, bytes }: Counted, most: number): readonly [Statement, readonly unknown[]] {
    const where = this.conditions.length > 0 ? `WHERE ${this.conditions.join(' AND ')}` : '';
    const some = `SELECT ${id} AS id, ${bytes ?? '0'} AS bytes ${from} ${where} LIMIT ${Math.trunc(most) + 1}`;
    const text = `SELECT count(*)::int AS count, coalesce(sum(bytes), 0)::text AS bytes,
         encode(sha256(convert_to(coalesce(string_agg(id::text, ',' ORDER BY id), ''), 'UTF8')), 'hex') AS digest
    FROM (${some}) AS counted`;
    return [sql('', text), this.values];
  }
}

/** Expressions over a row that is counted. */
export interface Counted {
  id: string;
  /** Absent: nothing has a size. */
  bytes?: string;
}

/** Of a list: whoever asks for them waits no longer because it is long. */
export interface Totals {
  /** At most as many as are counted. */
  count: number;
  /** There are more than `count`. */
  more: boolean;
  /** Decimal text; null when not all were counted, or nothing has a size. */
  bytes: string | null;
  /** Which they are; null when not all were counted. */
  digest: string | null;
}

/** Which things these are: SHA-256, in hex, of their ids in their order with commas between. Two sets of as many have two. */
export const digestOf = (ids: Iterable<string>): string =>
  createHash('sha256')
    .update([...ids].sort().join(','))
    .digest('hex');

/** So many rows are counted. */
export const MOST_COUNTED = 10_000;

/** @param from `FROM ...`, up to its WHERE */
export async function readTotals(
  tx: Pick<Tx, 'query'>,
  query: ListQuery,
  from: string,
  counted: Counted,
  most = MOST_COUNTED,
): Promise<Totals> {
  const [statement, values] = query.totals(from, counted, most);
  const [row] = await tx.query<{ count: number; bytes: string; digest: string }>(statement, values);
  const { count, bytes, digest } = row!;
  if (count > most) return { count: most, more: true, bytes: null, digest: null };
  return { count, more: false, bytes: counted.bytes === undefined ? null : bytes, digest };
}

interface Placed {
  pagePlace: string[];
}

/** One page. A cursor that was made up: `invalid_argument`, field `cursor`. */
export async function readPage<Row>(
  tx: Pick<Tx, 'query'>,
  query: ListQuery,
  select: string,
  order: Order,
  request: PageRequest,
): Promise<PageOf<Row>> {
  const [statement, values] = query.statement(select, order, request);
  const rows = await tx.query<Row & Placed>(statement, values);
  const more = rows.length > request.limit;
  if (more) rows.length = request.limit;
  return { rows, next: more ? rows.at(-1)!.pagePlace : undefined };
}

/** For `LIKE`: what a person typed is looked for as it stands. */
export const containing = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : `%${text.replace(/[\\%_]/g, '\\$&')}%`;
