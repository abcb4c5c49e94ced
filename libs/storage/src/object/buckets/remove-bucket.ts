import type { Caller } from '#operations/accepting/caller';
import { requireSuccess, type Submits, type Submitted } from '#operations/accepting/operations';
import type { Tx } from '#platform/database/database';
import { hasLaterGrants, leaveBucket, lockHolders } from '#storage/object/buckets/bucket-grants';
import { lockBucket, setBucketState } from '#storage/object/buckets/bucket-store';
import { deleteBucket } from '#storage/object/buckets/delete-bucket';
import { releaseBucket } from '#storage/object/buckets/release-bucket';

export interface Removal {
  /** Of that name only this one. */
  incarnation?: string;
  /** A registered one is not known here any more, either. */
  forget?: boolean;
}

/** The incarnation that is to be removed once more after what was joined. */
type Again = string | undefined;

export async function removeBucket(
  operations: Submits,
  caller: Caller,
  name: string,
  { incarnation, forget = false }: Removal = {},
): Promise<Submitted<void>> {
  const { tenantId } = caller;
  const resource = `bucket ${name}`;
  const first = (tx: Tx) => lockHolders(tx, caller, name);
  const { value: again, operation } = await operations.submit<Again>(
    caller,
    async (tx, begin, operationId) => {
      const row = await lockBucket(tx, caller, name);
      if (!row || (incarnation !== undefined && row.id !== incarnation)) return { value: undefined };
      if (row.state === 'deleting') return { value: undefined, join: row.activeOperation ?? undefined };
      const registered = row.origin === 'registered';
      if (registered && row.activeOperation) {
        // It takes what was there when it was accepted, and may have read already what stays.
        const again = forget || (await hasLaterGrants(tx, tenantId, row.id));
        return { value: again ? row.id : undefined, join: row.activeOperation };
      }
      const stays = registered && !forget;
      if (registered) await leaveBucket(tx, tenantId, row.id, 'all');
      await setBucketState(tx, caller, row.id, stays ? 'ready' : 'deleting', operationId);
      const { deletePolicy } = row.desired.spec;
      const subject = { resourceId: row.id, resourceName: name };
      const request = { deletePolicy, wasReady: row.state === 'ready' };
      if (registered) await begin(releaseBucket, { ...subject, request: { ...request, marked: true, forget } });
      else await begin(deleteBucket, { ...subject, request, class: deletePolicy === 'purge' ? 'destroy' : 'fast' });
      return { value: undefined };
    },
    first,
  );
  // What is not done with the joined one has not been accepted.
  requireSuccess(operation, resource, { accepted: again === undefined });
  return again === undefined
    ? { value: undefined, operation }
    : removeBucket(operations, caller, name, { incarnation: again, forget });
}
