import { expect, it } from 'vitest';
import { z } from 'zod';
import { ROUTES } from '#admin/contract/index';

interface Pattern {
  source: string;
  says: string | undefined;
}

/** All patterns in a schema, with what each says of text that does not match. */
function patternsIn(part: unknown, seen = new Set<unknown>()): Pattern[] {
  if (typeof part !== 'object' || part === null || seen.has(part)) return [];
  seen.add(part);
  if ('_zod' in part) {
    const { def } = (part as z.ZodType)._zod;
    const found = patternsIn(def, seen);
    const { format, pattern, error } = def as { format?: string; pattern?: RegExp; error?: (issue: object) => string };
    return format === 'regex' ? [...found, { source: `${pattern}`, says: error?.({}) }] : found;
  }
  return Object.values(part).flatMap(value => patternsIn(value, seen));
}

it('finds a pattern wherever a schema has it, and tells one that says something from one that does not', () => {
  const mute = z.string().regex(/a/);
  const says = z.string().max(3).regex(/b/, 'expected b');
  const schema = z.strictObject({
    list: z.array(z.union([z.literal(1), mute.optional()])).max(2),
    map: z.record(z.string(), says.default('b').nullable()),
    piped: z.string().transform(Number).pipe(z.number()),
  });
  expect(patternsIn(schema)).toEqual([
    { source: '/a/', says: undefined },
    { source: '/b/', says: 'expected b' },
  ]);
});

it.each(ROUTES.map(route => [route.id, route] as const))(
  '%s says in words what it expects where a pattern does not match',
  (_, { params, query, body }) => {
    for (const { source, says } of patternsIn({ params, query, body }))
      expect(says, source).toMatch(/^expected [a-z0-9]/);
  },
);

it('there are such patterns', () => {
  expect(patternsIn(ROUTES.map(({ params, query, body }) => ({ params, query, body }))).length).toBeGreaterThan(5);
});
