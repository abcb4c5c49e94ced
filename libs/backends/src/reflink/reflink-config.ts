import { isAbsolute } from 'node:path';
import { z } from 'zod';

const portal = z.string().regex(/^(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/, 'expected address:port');
export const poolConfig = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'expected letters, digits, dots, dashes and underscores'),
  /** Its root. Several pools may be folders of one file system; each then reports the numbers of all of it. */
  path: z.string().refine(isAbsolute, 'expected an absolute path'),
  portals: z.array(portal).default([]),
  withoutChap: z.boolean().default(false),
  within: z
    .strictObject({ path: z.string().refine(isAbsolute, 'expected an absolute path'), ownerId: z.uuid() })
    .optional(),
});
const unique = (values: readonly string[]): boolean => new Set(values).size === values.length;

export const reflinkConfig = z.strictObject({
  pools: z
    .array(poolConfig)
    .refine(pools => unique(pools.map(({ name }) => name)), 'two pools have one name')
    .refine(pools => unique(pools.map(({ path }) => path)), 'two pools have one path'),
  /** What callers may name it by, besides its name. Nothing is connected to at them. */
  addresses: z.array(z.string()).default([]),
  exporter: z.discriminatedUnion('kind', [
    /** `folder`: sockets, pid files and fences of tgtd; a short path. */
    z.strictObject({ kind: z.literal('tgt'), folder: z.string().refine(isAbsolute, 'expected an absolute path') }),
    z.strictObject({ kind: z.literal('none') }),
  ]),
});
export type ReflinkConfig = z.output<typeof reflinkConfig>;
