import type { BucketSpec } from '#backends/object-backend';
import type { Step } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { BucketOrigin } from '#storage/object/buckets/bucket-store';
import type { BackendDirectory } from '#storage/shared/backend-directory';

export const rowOf = (operation: LeasedOperation) => [operation.tenantId, operation.resourceId] as const;
export const bucketRef = (operation: LeasedOperation) => ({
  name: operation.resourceName,
  incarnation: operation.resourceId,
});

export const GONE = sql(
  'bucket_gone',
  `UPDATE trivet.bucket SET state = 'gone', active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
export const KEPT = sql(
  'bucket_kept',
  `UPDATE trivet.bucket SET state = 'ready', active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

export const notEmpty = (name: string, wasReady: boolean): StorageError =>
  new StorageError(
    'failed_precondition',
    `bucket ${name} still holds objects: empty it first, or create buckets with deletePolicy=purge`,
    // One that never became ready cannot go back to being so.
    { resource: `bucket ${name}`, retry: wasReady ? 'never' : 'person' },
  );
/** The next attempt looks first, and gives the rights back. */
const filledMeanwhile = (name: string): StorageError =>
  new StorageError('aborted', `bucket ${name} was written to while it was deleted; try again`, {
    resource: `bucket ${name}`,
  });

/** What a removal needs to know of the bucket. */
export interface Removal {
  origin: BucketOrigin;
  seenAbsent: boolean;
}

/**
 * Removes what carries our incarnation, or what only we can have made; anything else under that name stays. Serves
 * Delete, and Create whose later steps cannot succeed.
 */
export function removeBucket<Request extends object>(
  backends: BackendDirectory,
  wasReady: (request: Request) => boolean = () => false,
): Step<Removal | undefined, Request> {
  return {
    name: 'remove',
    calls: ['inspectBucket', 'configureBucket', 'deleteBucket'],
    async run(work, { operation, progress, call }) {
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const ref = bucketRef(operation);
      const found = await call('inspectBucket', signal => backend.inspectBucket(ref.name, signal));
      const seenAbsent = progress.seenAbsent === true || work?.seenAbsent === true;
      const ours =
        (found.state === 'ours' && found.incarnation === ref.incarnation) ||
        (found.state === 'untagged' && found.empty && seenAbsent);
      if (!ours) return undefined;
      if (found.state === 'untagged') {
        // deleteBucket goes by the tag; without it there is nothing that it would dare to delete.
        const spec: BucketSpec = { versioning: false, objectLock: false, tags: {}, deletePolicy: 'retain' };
        await call('configureBucket', signal => backend.configureBucket(ref, spec, signal));
      }
      const outcome = await call('deleteBucket', signal => backend.deleteBucket(ref, signal));
      if (outcome === 'not_empty')
        throw progress.rightsTaken === true
          ? filledMeanwhile(ref.name)
          : notEmpty(ref.name, wasReady(operation.request));
      return undefined;
    },
  };
}
