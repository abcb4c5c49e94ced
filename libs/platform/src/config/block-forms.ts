import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';

/** A setting that lists things. */
const listOf = <T>(
  separator: string | RegExp,
  parse: (item: string, issue: (message: string) => void) => T | undefined,
) =>
  z.string().transform((text, context) => {
    const items = text
      .split(separator)
      .map(item => item.trim())
      .filter(item => item !== '');
    const issue = (message: string): void => context.addIssue({ code: 'custom', message });
    return items.map(item => parse(item, issue)).filter(item => item !== undefined);
  });

/**
 * `name=/absolute/path`, separated by commas, in the order in which they are offered: the first one is the default. A
 * comma inside a path is one that no `name=/` follows.
 */
export const pools = listOf(/,(?=\s*[A-Za-z0-9][A-Za-z0-9._-]*=\/|\s*$)/, (item, issue) => {
  const [, name, path] = /^([A-Za-z0-9][A-Za-z0-9._-]{0,62})=(.+)$/.exec(item) ?? [];
  if (name !== undefined && path !== undefined && isAbsolute(path)) return { name, path: normalize(path) };
  issue(`expected name=/absolute/path, got ${JSON.stringify(item)}`);
  return undefined;
}).superRefine((found, context) => {
  for (const key of ['name', 'path'] as const) {
    const values = found.map(pool => pool[key]);
    if (new Set(values).size < values.length)
      context.addIssue({ code: 'custom', message: `two pools have one ${key}` });
  }
});

/** `pool=address:port`, or `address:port` for the first pool. An address of IPv6 stands in brackets. */
export const portals = listOf(',', (item, issue) => {
  const [, pool, address, digits] = /^(?:([^=]+)=)?(\[[0-9a-fA-F:.]+\]|[^:=\s]+):(\d{1,5})$/.exec(item) ?? [];
  const port = Number(digits);
  if (address !== undefined && port > 0 && port <= 65_535) return { pool, portal: `${address}:${port}` };
  issue(`expected pool=address:port or address:port, got ${JSON.stringify(item)}`);
  return undefined;
});

/**
 * `VENDOR/PRODUCT`, as INQUIRY gives them: 8 and 16 printable characters of ASCII, filled up with blanks, so none at the ends.
 * No comma: it would end tgtd's parameter.
 */
export const scsiIdentity = z
  .string()
  .regex(
    /^(?! )[ -+\--.0-~]{1,8}(?<! )\/(?! )[ -+\--~]{1,16}(?<! )$/,
    'expected VENDOR/PRODUCT of at most 8 and 16 characters',
  )
  .transform(text => {
    const at = text.indexOf('/');
    return { vendor: text.slice(0, at), product: text.slice(at + 1) };
  });
