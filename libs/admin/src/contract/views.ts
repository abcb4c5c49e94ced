import { z } from 'zod';
import { id, listOf, newName } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const tag = 'views';
const access = { scope: 'self' } as const;

/** As JSON: of the 4 kB that a column takes, so that its blanks and marks fit in whatever it is written as. */
const MOST_BYTES = 3_000;
const isSmall = (value: unknown): boolean => new TextEncoder().encode(JSON.stringify(value)).length <= MOST_BYTES;

const list = z
  .string()
  .regex(/^[a-z][a-z/-]{0,63}$/, 'expected the path of the page of a list, without its tenant')
  .meta({ description: 'Path of the page of the list, without its tenant', examples: ['volumes', 'all/volumes'] });
const query = z
  .record(
    z.string().regex(/^[a-zA-Z]{1,32}$/, 'expected the name of a parameter: at most 32 letters'),
    z.string().max(400),
  )
  .refine(asked => Object.keys(asked).length <= 32, 'expected 32 at most')
  .refine(isSmall, `expected ${MOST_BYTES} bytes at most`)
  .meta({
    description: 'Filters, order and number of rows, as the address of the page has them',
    examples: [{ state: 'ready', sort: '-size' }],
  });
const columns = z
  .array(z.string().min(1).max(64))
  .min(1)
  .max(64)
  .refine(isSmall, `expected ${MOST_BYTES} bytes at most`)
  .nullable()
  .meta({ description: 'Heads of the columns that are shown; null: all' });

const view = z
  .object({
    id,
    list,
    name: z.string().meta({ description: 'As its user calls it' }),
    query: z.record(z.string(), z.string()).meta({ description: 'Filters, order and number of rows' }),
    columns,
  })
  .meta({ id: 'View', description: 'A list as a person wants to see it again' });
export type ViewReply = z.output<typeof view>;

const one = z.strictObject({ view: id });

/** Each user has his own; nobody sees those of another. */
export const viewRoutes = {
  list: route({
    id: 'listViews',
    method: 'GET',
    path: '/session/views',
    tag,
    summary: 'Views of lists that you have saved',
    access,
    query: z.strictObject({ list: list.optional() }),
    status: 200,
    reply: listOf(view),
    examples: [{ name: 'all' }],
  }),
  create: route({
    id: 'createView',
    method: 'POST',
    path: '/session/views',
    tag,
    summary: 'Save a view of a list: its filters, order and columns',
    access,
    body: z.strictObject({ list, name: newName, query, columns: columns.default(null) }),
    status: 201,
    reply: view,
    refusals: [409],
    examples: [
      {
        name: 'the largest volumes',
        body: { list: 'volumes', name: 'largest', query: { sort: '-size' }, columns: ['Name', 'Size'] },
      },
    ],
  }),
  change: route({
    id: 'changeView',
    method: 'PATCH',
    path: '/session/views/{view}',
    tag,
    summary: 'Rename a view, or save another state of its list',
    access,
    params: one,
    body: z.strictObject({ name: newName.optional(), query: query.optional(), columns: columns.optional() }),
    status: 200,
    reply: view,
    refusals: [409],
    examples: [{ name: 'rename', params: { view: '{view}' }, body: { name: 'the largest' } }],
  }),
  delete: route({
    id: 'deleteView',
    method: 'DELETE',
    path: '/session/views/{view}',
    tag,
    summary: 'Forget a view',
    access,
    params: one,
    status: 204,
    examples: [{ name: 'one', params: { view: '{view}' } }],
  }),
};
