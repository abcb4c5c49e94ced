import { z } from 'zod';

/** Forms that several resources share. Names are as in JSON; times are RFC 3339; sizes are decimal text, exact to the byte. */
export const id = z.uuid().meta({ id: 'Id', description: 'Identity; never used again for another object' });
export const time = z.iso.datetime({ offset: true }).meta({ id: 'Time', description: 'RFC 3339' });
export const bytes = z
  .string()
  .regex(/^\d{1,19}$/, 'expected bytes in digits, without unit')
  .meta({ id: 'Bytes', description: 'Bytes, as decimal text: exact beyond 2^53', examples: ['10737418240'] });
export const count = z.int().nonnegative();

export const tenantName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'expected 1 to 63 of a-z, 0-9 and -, a letter or digit first')
  .meta({ description: 'Name of a tenant', examples: ['acme'] });
/** Names in paths and filters: whatever was stored may be looked for. */
export const name = z.string().min(1).max(253).meta({ description: 'Name, as people and drivers call it' });
export const backendName = name.meta({ description: 'Name of the backend' });
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const ONE_LINE = /^[^\u0000-\u0020\u007f][^\u0000-\u001f\u007f]*$/;
/** Of what is made: a list, a log line and a table hold it on one line. */
export const newName = z
  .string()
  .max(200)
  .regex(ONE_LINE, 'expected text without control characters that begins with no blank')
  .meta({ description: 'No control characters, and no blank at its begin' });
export const reason = z.string().trim().min(1).max(500).meta({ description: 'Why; kept in the audit log' });

export const ofTenant = z.strictObject({ tenant: tenantName });

export const MAX_PAGE = 200;
export const partOfName = z.string().max(100).optional().meta({ description: 'Part of the name' });
export const ORDER = { description: 'Order; with - from the end' };
/** Every list has these. The cursor is opaque, and belongs to the same filters and order. */
export const paging = {
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(50).meta({ description: 'Items of a page, at most' }),
  cursor: z.string().max(4_000).optional().meta({ description: '`next` of the page before' }),
};

export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item).meta({ description: 'Those of this page, in the order that was asked for' }),
    next: z.string().nullable().meta({ description: 'Cursor of the page that follows; null at the end' }),
  });

/** Of what comes whole. */
export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ items: z.array(item).meta({ description: 'All of them' }) });

/** What an audit of ours or a backend says of an object. */
export const condition = z
  .object({
    type: z.string().meta({ description: 'Stable; for programs' }),
    message: z.string().meta({ description: 'For people' }),
    at: time.optional(),
  })
  .nullable()
  .meta({ description: 'What is wrong with it; null when nothing is' });

/** RFC 9457. */
export const problem = z
  .object({
    type: z.string().meta({ description: 'Address of the page about this code' }),
    title: z.string().meta({ description: 'What kind of refusal it is, for people' }),
    status: z.int().meta({ description: 'The HTTP status' }),
    detail: z.string().meta({ description: 'What happened, to which object, and what to do' }),
    instance: z.string().meta({ description: 'Quote it to whoever runs the appliance' }),
    code: z.string().meta({ description: 'Stable; for programs' }),
    retryable: z.boolean().meta({ description: 'The same call may succeed later' }),
    operation: z.string().nullable().meta({ description: 'Address of the operation that it is about' }),
    errors: z
      .array(
        z.object({
          pointer: z.string().meta({ description: 'Place of the field' }),
          message: z.string().meta({ description: 'What is wrong with it' }),
        }),
      )
      .optional()
      .meta({ description: 'Each wrong field by its JSON pointer: /body/name, /query/limit, /path/tenant' }),
  })
  .meta({ id: 'Problem' });
export type Problem = z.output<typeof problem>;
