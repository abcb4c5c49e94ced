/**
 * Which right of Trivet's own a refused request needed: what the store says, or else what the request was for. The rest of a
 * store's words goes no further than the log.
 */
import { StorageError } from '#platform/errors';

const ASKED_FOR = new WeakMap<object, string>();

/** `right` as the store's own documentation spells it. */
export async function needing<T>(right: string, request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (typeof error === 'object' && error !== null) ASKED_FOR.set(error, right);
    throw error;
  }
}

/** What the store says. @param words find it there */
export const saidOf = (error: unknown, words: RegExp): string | undefined =>
  words.exec((error as Error | null)?.message ?? '')?.[1];

export function hintOf(error: unknown, words: RegExp): string {
  const right = saidOf(error, words) ?? ASKED_FOR.get(error as object);
  return right === undefined
    ? 'Trivet’s own rights do not suffice: docs/buckets.md names all that it needs'
    : `Trivet needs the right ${right}`;
}

export const lacking = (where: string, rights: readonly string[]): StorageError =>
  new StorageError('permission_denied', `Trivet lacks ${where}: ${rights.join(', ')}`);
