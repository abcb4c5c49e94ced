import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';

/** What is not of our ids' form names nothing: the driver takes any answer but 404 for an outage (docs/callers.md#look-ups). */
export function ourId(what: string, given: string): string {
  if (!isUuid(given)) throw unknownId(what, given);
  return given;
}

const MAX_SHOWN = 100;

export const unknownId = (what: string, given: string): StorageError =>
  new StorageError('not_found', `${what} with id ${given.slice(0, MAX_SHOWN).toWellFormed()} not found.`);
