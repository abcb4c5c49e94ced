import { describe, expect, it } from 'vitest';
import { containing, digestOf, ListQuery, type Order, orderOf, readPage } from '#platform/database/keyset';

const ID = '018f0000-0000-7000-8000-000000000001';
const BY_NAME: Order = {
  columns: [
    { sql: 't.name', type: 'text' },
    { sql: 't.id', type: 'uuid' },
  ],
};
const SELECT = 'SELECT t.id FROM things t';

describe('a list', () => {
  it('begins behind a place, and says no value in its text', () => {
    const query = new ListQuery().where('t.a = ?', 1).where('t.b = ?', undefined).where('t.c BETWEEN ? AND ?', 2, 3);
    const [{ name, text }, values] = query.statement(SELECT, BY_NAME, { limit: 10, after: ['x', ID] });
    expect(name).toBe('');
    expect(text).toBe(
      'SELECT ARRAY[t.name::text, t.id::text] AS "pagePlace", t.id FROM things t WHERE t.a = $1 AND t.c BETWEEN $2 AND $3 ' +
        'AND (t.name, t.id) > ($4::text::text, $5::text::uuid) ORDER BY t.name, t.id LIMIT 11',
    );
    expect(values).toEqual([1, 2, 3, 'x', ID]);
  });

  it('goes backwards by a minus before the order', () => {
    const order = orderOf({ name: BY_NAME.columns }, '-name');
    const [{ text }] = new ListQuery().statement(SELECT, order, { limit: 1, after: ['x', ID] });
    expect(text).toContain('(t.name, t.id) < (');
    expect(text).toContain('ORDER BY t.name DESC, t.id DESC');
  });

  it.each([[[]], [['x']], [['x', 'no-id']], [['x\0', ID]], [['x', ID, ID]]])('begins at no place like %j', after => {
    const statement = () => new ListQuery().statement(SELECT, BY_NAME, { limit: 1, after });
    expect(statement).toThrowError(expect.objectContaining({ kind: 'invalid_argument', field: 'cursor' }));
  });

  it.each(['-1', '9223372036854775808', '1e3', ''])('has no place of the number %j', number => {
    const order: Order = { columns: [{ sql: 't.n', type: 'bigint' }] };
    expect(() => new ListQuery().statement(SELECT, order, { limit: 1, after: [number] })).toThrow();
  });

  it('has a next page only when there is a row beyond', async () => {
    const rows = [1, 2, 3].map(id => ({ id, pagePlace: [String(id)] }));
    const read = (limit: number) =>
      readPage({ query: async () => rows.slice(0, limit + 1) as never[] }, new ListQuery(), SELECT, BY_NAME, { limit });
    expect(await read(3)).toMatchObject({ rows: [{ id: 1 }, { id: 2 }, { id: 3 }], next: undefined });
    expect(await read(2)).toMatchObject({ rows: [{ id: 1 }, { id: 2 }], next: ['2'] });
  });
});

it('what a person types means itself', () => {
  expect(containing('50%_a\\b')).toBe('%50\\%\\_a\\\\b%');
  expect(containing(undefined)).toBeUndefined();
});

it('a digest is of which things there are, in whatever order they come', () => {
  const [a, b, c] = ['0a', '1b', '2c'];
  expect(digestOf([b!, a!])).toBe(digestOf(new Set([a!, b!])));
  expect(digestOf([a!, b!])).not.toBe(digestOf([a!, c!]));
  expect(digestOf([])).toMatch(/^[0-9a-f]{64}$/);
});
