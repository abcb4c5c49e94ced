import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { fieldErrors, oddNumbers, unfit } from '#admin/problems/field-errors';

const pointersOf = (schema: z.ZodType, value: unknown): string[] =>
  fieldErrors(schema.safeParse(value).error?.issues ?? [], ['body']).map(({ pointer }) => pointer);

describe('what a schema has against a value', () => {
  const either = z.strictObject({
    source: z.union([
      z.strictObject({ kind: z.literal('new'), size: z.int() }),
      z.strictObject({ kind: z.literal('copy'), of: z.string(), fields: z.array(z.string()) }),
    ]),
  });

  it('is said by its place', () => {
    const schema = z.strictObject({ list: z.array(z.strictObject({ name: z.string() })) });
    expect(pointersOf(schema, { list: [{ name: 'a' }, { name: 1, 'a/b~c': 2 }] })).toEqual([
      '/body/list/1/name',
      '/body/list/1/a~1b~0c',
    ]);
    expect(pointersOf(schema, undefined)).toEqual(['/body']);
  });

  it('is said of the form that comes nearest, where there is a choice', () => {
    expect(pointersOf(either, { source: { kind: 'new', size: 1, unknown: 1 } })).toEqual(['/body/source/unknown']);
    expect(pointersOf(either, { source: { kind: 'copy', of: 'x', fields: [1] } })).toEqual(['/body/source/fields/0']);
  });
});

describe('what is refused before anybody looks', () => {
  it.each([
    ['a\0b', '/body'],
    [{ a: ['x', '\ud800'] }, '/body/a/1'],
    [{ 'k\0': 1 }, '/body'],
  ])('text that cannot be stored: %j', (value, pointer) => {
    expect(unfit(value, 'body').map(error => error.pointer)).toEqual([pointer]);
  });

  it('a name that would be passed over', () => {
    expect(unfit(JSON.parse('{"config":{"__proto__":[]}}'), 'body').map(error => error.pointer)).toEqual([
      '/body/config/__proto__',
    ]);
  });

  it('nesting without sense or end', () => {
    let value: unknown = 'x';
    for (let level = 0; level < 500_000; level++) value = [value];
    expect(unfit(value, 'body')).toEqual([{ pointer: '/body', message: 'nested deeper than 32 levels' }]);
  });

  it('and nothing else', () => {
    expect(unfit({ a: [null, 1, true, '', '\u{1f600}', { b: 'ü\n' }] }, 'body')).toEqual([]);
    expect(unfit(undefined, 'body')).toEqual([]);
  });
});

it('numbers of a query are in digits', () => {
  const schema = z.strictObject({ limit: z.coerce.number().int().default(1), size: z.string().optional() });
  const odd = (limit: unknown) => oddNumbers(schema, { limit, size: 'x' }, 'query').map(({ pointer }) => pointer);
  for (const text of ['0x10', '1e2', ' 5', '+5', '5.0', '', '-1', ['1', '2']])
    expect(odd(text), `${text}`).toEqual(['/query/limit']);
  expect(odd('10')).toEqual([]);
  expect(oddNumbers(schema, { unknown: 'x' }, 'query')).toEqual([]);
});
