import '#platform/config/form-words';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const said = (form: z.ZodType, value: unknown): string | undefined => form.safeParse(value).error?.issues[0]?.message;

describe('what a form has against a value', () => {
  it.each<[string, z.ZodType, unknown, string]>([
    ['nothing', z.string(), undefined, 'required'],
    ['a number for text', z.string(), 1, 'expected text'],
    ['text for a number', z.number(), 'x', 'expected a number'],
    ['a part of a whole', z.int(), 1.5, 'expected a whole number'],
    ['another word', z.enum(['a', 'b']), 'c', 'expected one of a, b'],
    ['no address', z.url(), 'x', 'expected an address, such as https://storage.example.net'],
    ['no id', z.uuid(), 'x', 'expected an id, which is a UUID'],
    ['no time', z.iso.datetime(), 'x', 'expected a time as of RFC 3339, such as 2026-01-02T03:04:05Z'],
    ['too short', z.string().min(8), 'x', 'expected at least 8 characters'],
    ['too many', z.array(z.string()).max(1), ['a', 'b'], 'expected at most 1 entries'],
    ['too small', z.number().gt(0), 0, 'expected more than 0'],
    ['an unknown field', z.strictObject({}), { a: 1 }, 'there is no such field: a'],
    ['none of its forms', z.union([z.string(), z.number()]), true, 'it has none of the forms that it may have'],
    ['words of its own', z.string().regex(/^a$/, 'expected an a'), 'b', 'expected an a'],
  ])('is said in our words: %s', (_, form, value, words) => expect(said(form, value)).toBe(words));
});
