import '#platform/config/form-words';
import type { z } from 'zod';
import type { FieldError } from '#admin/problems/problems';

/** RFC 6901. */
export const pointerOf = (path: readonly PropertyKey[]): string =>
  path.map(part => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** What a schema has against a value, each by its place; of a choice, what the form has against it that comes nearest. */
export function fieldErrors(issues: readonly z.core.$ZodIssue[], at: readonly PropertyKey[]): FieldError[] {
  return issues.flatMap(issue => {
    const path = [...at, ...issue.path];
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map(key => ({ pointer: pointerOf([...path, key]), message: 'there is no such field' }));
    if (issue.code === 'invalid_union' && issue.errors.length > 0)
      return issue.errors
        .map(branch => fieldErrors(branch, path))
        .reduce((nearest, other) => (other.length < nearest.length ? other : nearest));
    return [{ pointer: pointerOf(path), message: issue.message }];
  });
}

/** Deeper than anything that is described here, and flat enough for whatever walks it afterwards. */
const MAX_DEPTH = 32;

/**
 * Text that no database stores as it is, nesting that means nothing, and a name that schemas of maps pass over without a word:
 * refused before anybody looks at the rest.
 */
export function unfit(sent: unknown, where: string): FieldError[] {
  const found: FieldError[] = [];
  const left: { value: unknown; path: readonly PropertyKey[] }[] = [{ value: sent, path: [where] }];
  for (let next = left.pop(); next; next = left.pop()) {
    const { value, path } = next;
    if (path.length > MAX_DEPTH) return [{ pointer: `/${where}`, message: `nested deeper than ${MAX_DEPTH} levels` }];
    if (typeof value === 'string' && !isStorable(value)) found.push({ pointer: pointerOf(path), message: NO_TEXT });
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, item] of Object.entries(value)) {
      if (!isStorable(key)) found.push({ pointer: pointerOf(path), message: NO_TEXT });
      if (key === '__proto__') found.push({ pointer: pointerOf([...path, key]), message: 'there is no such field' });
      left.push({ value: item, path: [...path, key] });
    }
  }
  return found;
}

const NO_TEXT = 'holds a character that is no text: NUL or half of a surrogate pair';
const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

/** Numbers of a query are text, and say what they seem to: not `0x10`, not ` 5 `, which would pass for numbers too. */
export function oddNumbers(schema: z.ZodObject, sent: Readonly<Record<string, unknown>>, where: string): FieldError[] {
  return Object.entries(sent)
    .filter(([key, text]) => isNumber(schema.shape[key]) && !/^\d+$/.test(String(text)))
    .map(([key]) => ({ pointer: pointerOf([where, key]), message: 'write a whole number in digits' }));
}

function isNumber(schema: z.core.$ZodType | undefined): boolean {
  const { def } = (schema as z.ZodType | undefined) ?? {};
  const { innerType } = (def ?? {}) as { innerType?: z.ZodType };
  return innerType ? isNumber(innerType) : def?.type === 'number';
}
