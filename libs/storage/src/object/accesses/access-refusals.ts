/** What an access is not given for: another one, or another change, has its name. */
import { StorageError } from '#platform/errors';
import type { KeyState } from '#storage/object/accesses/key-changes';
import type { GrantRequest } from '#storage/object/object-storage';
import type { AccessPlace, DesiredAccess } from '#storage/shared/desired-state';

/** Whoever asks under the name of another one's access is not told its key. */
export const otherDoor = (resource: string, { issued }: DesiredAccess): StorageError =>
  new StorageError(
    'already_exists',
    issued
      ? `${resource} was granted to a driver, which has its key: issue one of another name`
      : `${resource} was issued by a person, who has its key: ask for one of another name`,
    { resource },
  );

/** Told by the names that the caller knows, of which one may stand for several places. */
export function otherRequest(
  resource: string,
  places: readonly AccessPlace[],
  names: GrantRequest['fields'],
): StorageError {
  const fields = [...new Set(places.map(place => names[place]))].join(', ');
  return new StorageError('already_exists', `${resource} exists with another request: ${fields}`, { resource });
}

export function otherChange(resource: string, { operation, operationGrace, parked }: KeyState): StorageError {
  const under =
    operationGrace === null
      ? `the former key of ${resource} is being ended by operation ${operation}`
      : `the key of ${resource} is being changed with a grace of ${operationGrace} seconds by operation ${operation}`;
  return parked
    ? new StorageError('failed_precondition', `${under}, which waits for an operator: retry or resolve it first`, {
        resource,
      })
    : new StorageError('aborted', `${under}; try again when that is over`, { resource });
}
