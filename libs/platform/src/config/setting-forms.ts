/** Forms that several settings have. */
import { z } from 'zod';
import { ADDRESS_FORM, parseAddress } from '#platform/config/database-address';

/** sun_path holds 108 bytes with its end; beyond that Node says only EADDRINUSE. */
export const MAX_SOCKET_PATH = 107;

export const listen = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'expected host:port')
  .transform(value => {
    const at = value.lastIndexOf(':');
    return { host: value.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(value.slice(at + 1)) };
  })
  .refine(({ port }) => port <= 65_535, 'expected a port up to 65535');
export type Listen = z.output<typeof listen>;

export const postgresUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//, { error: 'expected postgresql://user:password@host:port/database', abort: true })
  .refine(text => parseAddress(text) !== undefined, `expected ${ADDRESS_FORM}; target_session_attrs is read-write`);

export const unixEndpoint = z
  .string()
  .regex(/^unix:\/\/\/.+\.sock$/, 'expected unix:///absolute/path/name.sock')
  .transform(value => value.slice('unix://'.length))
  .refine(path => Buffer.byteLength(path) <= MAX_SOCKET_PATH, {
    error: issue => {
      const length = Buffer.byteLength(String(issue.input));
      return `expected a socket path of at most ${MAX_SOCKET_PATH} bytes, got ${length}`;
    },
  });

/** Node's timers fire at once beyond this. */
const MAX_TIMER_MS = 2_147_483_647;
/** A longer value is no number that somebody mistyped; it may be a secret in the wrong place. */
const MAX_SHOWN = 16;

/** @param unit what is counted, for the message */
export const wholeNumber = (unit: string, fallback: number, { min = 1, max = MAX_TIMER_MS } = {}) =>
  z
    .string()
    .transform((text, context) => {
      const value = text.trim() === '' ? Number.NaN : Number(text);
      if (Number.isInteger(value) && value >= min && value <= max) return value;
      const got = text.length > MAX_SHOWN ? `${text.length} characters` : JSON.stringify(text);
      context.addIssue(`expected a whole number of ${unit} from ${min} to ${max}, got ${got}`);
      return z.NEVER;
    })
    .default(fallback);
export const duration = (fallback: number, within?: { min?: number; max?: number }) =>
  wholeNumber('milliseconds', fallback, within);
export const flag = z
  .enum(['0', '1'])
  .default('0')
  .transform(value => value === '1');

export const hostAndPort = z.string().regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'expected host:port');

/** As RFC 1123 has them. */
export const resourceName = (expected: string) => z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, expected);
