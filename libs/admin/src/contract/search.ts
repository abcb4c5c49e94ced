import { z } from 'zod';
import { tenantName } from '#admin/contract/common';
import { route } from '#admin/contract/route';

export const FOUND_KINDS = [
  'tenant',
  'volume',
  'snapshot',
  'bucket',
  'access',
  'host',
  'backend',
  'operation',
] as const;

const found = z
  .object({
    id: z.string().meta({ description: 'Its id' }),
    name: z.string().meta({ description: 'Its name; of an operation its kind' }),
    tenant: tenantName.meta({ description: 'Name of the tenant whose it is' }),
    state: z.string().nullable().meta({ description: 'Its state; null of what has none' }),
    detail: z.string().nullable().meta({
      description: 'What tells it from others of its name: its backend, its volume, what an operation is about',
    }),
  })
  .meta({ id: 'Found' });

export const searchRoutes = {
  search: route({
    id: 'search',
    method: 'GET',
    path: '/search',
    tag: 'search',
    summary: 'Find things by the beginning of a name, by id, serial number, initiator or address',
    description:
      'Of what the caller may see. A text fits a name that begins with it, letter for letter; an id also where it is the end of a handle or of the name of a target; initiators, addresses and serial numbers fit whole.',
    access: { scope: 'any', role: 'viewer' },
    query: z.strictObject({
      q: z.string().trim().max(253).default('').meta({ description: 'What is looked for; nothing fits an empty one' }),
      limit: z.coerce.number().int().min(1).max(20).default(5).meta({ description: 'How many of each kind, at most' }),
    }),
    status: 200,
    reply: z.object({
      groups: z
        .array(
          z.object({
            kind: z.enum(FOUND_KINDS).meta({ description: 'What they are' }),
            items: z.array(found).meta({ description: 'In the order of their names' }),
            more: z.boolean().meta({ description: 'There are others of the kind that fit' }),
          }),
        )
        .meta({ description: 'Kinds of which something fits' }),
    }),
    examples: [{ name: 'by a name', query: { q: 'orders' } }],
  }),
};
