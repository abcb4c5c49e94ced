import { z } from 'zod';

/** What a bigint column and the driver's int64 hold. */
const MAX_BYTES = 2n ** 63n - 1n;

/**
 * Bytes as a positive whole number or its digits: the driver sends a number, the specification's example text. Exact to
 * the byte; numbers beyond 2^53 reach this as text.
 */
export const byteSize = z.unknown().transform((given, context): bigint => {
  const digits = typeof given === 'number' && Number.isSafeInteger(given) ? String(given) : given;
  const size = typeof digits === 'string' && /^\d{1,19}$/.test(digits) ? BigInt(digits) : 0n;
  if (size > 0n && size <= MAX_BYTES) return size;
  context.addIssue({ code: 'custom', message: 'must be a positive whole number of bytes' });
  return z.NEVER;
});

/** A JSON number whatever its size: the driver decodes an int64, and compares it with what it asked for. */
export function sizeNumber(size: bigint): number {
  const number = Number(size);
  return Number.isSafeInteger(number) ? number : ((JSON as RawJson).rawJSON(size.toString()) as number);
}

/** Of the language, but not yet of TypeScript's library. */
type RawJson = typeof JSON & { rawJSON(text: string): unknown };
