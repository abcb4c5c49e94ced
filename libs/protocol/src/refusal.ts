import { randomUUID } from 'node:crypto';
import { isStorageError } from '#platform/errors';

/** Bounded, so that no echoed input makes a header or a log line too long; and no half of a character, which gRPC cannot send. */
export const bounded = (text: string, max: number): string =>
  (text.length > max ? `${text.slice(0, max - 1)}…` : text).toWellFormed();

/** The status with which Nest and Fastify refuse a request before a handler runs: body too large, not JSON, no such route. */
export function clientFault(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { statusCode, status } = error as { statusCode?: unknown; status?: unknown };
  const number = typeof status === 'number' ? status : statusCode;
  return typeof number === 'number' && number >= 400 && number < 500 ? number : undefined;
}

/** What a caller learns of a defect: what we say of `error` ourselves, if we do, and an id to quote. The cause is for the log alone. */
export function defect(error: unknown, errorId: string = randomUUID()): { message: string; errorId: string } {
  const message = isStorageError(error) ? `${error.message} (quote ${errorId})` : `internal error, quote ${errorId}`;
  return { message, errorId };
}
