import type { PipeTransform } from '@nestjs/common';
import { z } from 'zod';
import { unexpectedArgument } from '#csp/csp-errors';
import { invalid } from '#platform/errors';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export interface UnwrappedBody {
  body: Record<string, unknown>;
  enveloped: boolean;
}

/** The request's object, be it bare as the driver sends it or inside the specification's `data`. */
export function unwrap(body: unknown): UnwrappedBody {
  if (!isObject(body)) throw invalid('request body', 'expected a JSON object');
  if (!Object.hasOwn(body, 'data')) return { body, enveloped: false };
  if (!isObject(body.data)) throw invalid('data', 'expected a JSON object');
  return { body: body.data, enveloped: true };
}

/** Checks the request's object against the schema; throws `invalid_argument` that names the field. */
export function parseBody<S extends z.ZodType>(schema: S, body: Record<string, unknown>): z.output<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue?.code === 'unrecognized_keys') throw unexpectedArgument(String(issue.keys[0]));
  throw invalid(issue?.path.join('.') || 'request body', issue?.message ?? 'not understood');
}

/** `@Body(bodyOf(schema))`: what the schema makes of the request's object. */
export function bodyOf<S extends z.ZodType>(schema: S): PipeTransform<unknown, z.output<S>> {
  return { transform: value => parseBody(schema, unwrap(value).body) };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Text that a database, a log line and a JSON reply can hold; `lines`: with line ends and tabs. */
export const text = (max: number, { lines = false } = {}) =>
  z
    .string({ error: 'expected text' })
    .refine(value => value.length <= max, `must not have more than ${max} characters`)
    .refine(value => value.isWellFormed(), 'is not well-formed text')
    .refine(value => !CONTROL.test(lines ? value.replace(/[\t\r\n]/g, '') : value), 'must not hold control characters');

export const MAX_NAME = 255;

/** What is not, names nothing, and must not reach a statement: databases hold no NUL. */
export const isName = (value: string): boolean => name.safeParse(value).success;

const MAX_DESCRIPTION = 4_096;

export const name = text(MAX_NAME).refine(value => value.trim() !== '', 'required, must not be empty');
export const description = text(MAX_DESCRIPTION, { lines: true });
/** An id in a body; whether it is one of ours is another question. */
export const id = text(MAX_NAME);
