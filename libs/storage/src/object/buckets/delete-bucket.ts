import type { BucketSpec } from '#backends/object-backend';
import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling, Step, Writer } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { wholeBucket } from '#storage/object/buckets/bucket-slots';
import { bucketRef, GONE, KEPT, type Removal, removeBucket, rowOf } from '#storage/object/buckets/bucket-work';
import { createBucket } from '#storage/object/buckets/create-bucket';
import { type Holding, readHolding, takeRights } from '#storage/object/buckets/take-rights';
import type { AccessNeeds } from '#storage/object/rights/credentials';

export interface DeleteBucketRequest {
  deletePolicy: BucketSpec['deletePolicy'];
  /** One that never became so cannot go back to it. */
  wasReady: boolean;
  /** Its tenant is being removed. */
  draining?: boolean;
}

interface Deletion extends Removal, Holding {}

const WAS_SEEN_ABSENT = sql(
  'bucket_was_seen_absent',
  'SELECT seen_absent AS "seenAbsent" FROM trivet.bucket WHERE tenant_id = $1 AND id = $2',
);
/**
 * Accesses that had it live on with their other buckets; their next Grant looks again. One that is being granted, or put
 * right, may wait for us, and finds out by itself whether the bucket is still there: the lock tells which is first.
 */
const FORGET_GRANTS = sql(
  'bucket_forget_grants',
  `WITH idle AS MATERIALIZED (
     SELECT a.id FROM trivet.access a
      WHERE a.tenant_id = $1 AND a.state <> 'granting'
        AND a.id IN (SELECT access_id FROM trivet.bucket_grant WHERE tenant_id = $1 AND bucket_id = $2)
      ORDER BY a.id FOR UPDATE
   ), forgotten AS (
     DELETE FROM trivet.bucket_grant g USING idle
      WHERE g.tenant_id = $1 AND g.bucket_id = $2 AND g.access_id = idle.id
     RETURNING g.access_id
   )
   UPDATE trivet.access SET stale = true FROM forgotten
    WHERE tenant_id = $1 AND id = forgotten.access_id`,
);

export const deleteBucket = defineOperation('bucket.delete', {
  resourceKind: 'bucket',
  class: 'fast',
  slots: (id, _: DeleteBucketRequest) => wholeBucket(id),
  negates: () => [createBucket],
  carriedOut: removeWhole,
});

/** Of a tenant that is being removed no bucket becomes ready again: what no repeat can remove waits for a person. */
const parkedWhenDraining = (step: Step<Deletion, DeleteBucketRequest>): Step<Deletion, DeleteBucketRequest> => ({
  ...step,
  async run(work, context) {
    try {
      return await step.run(work, context);
    } catch (error) {
      if (!(error instanceof StorageError) || error.retry !== 'never' || context.operation.request.draining !== true)
        throw error;
      const { kind, message, resource } = error;
      throw new StorageError(kind, message, { resource, retry: 'person', cause: error });
    }
  },
});

/** Rights may have been taken and not given back: the next Grant looks again. */
const DOUBT_GRANTS = sql(
  'bucket_doubt_grants',
  `WITH holding AS MATERIALIZED (
     SELECT a.id FROM trivet.access a
      WHERE a.tenant_id = $1 AND a.id IN (SELECT access_id FROM trivet.bucket_grant WHERE tenant_id = $1 AND bucket_id = $2)
      ORDER BY a.id FOR UPDATE
   )
   UPDATE trivet.access SET stale = true FROM holding WHERE tenant_id = $1 AND access.id = holding.id`,
);

function keep(writer: Writer, operation: LeasedOperation): void {
  if (operation.progress.rightsTaken === true) writer.write(DOUBT_GRANTS, rowOf(operation));
  writer.write(KEPT, [...rowOf(operation), operation.id]);
}

function removeWhole(needs: AccessNeeds): Handling<Deletion, DeleteBucketRequest> {
  const { backends } = needs;
  const empty: Step<Deletion, DeleteBucketRequest> = {
    name: 'empty',
    calls: ['inspectBucket', 'emptyBucket'],
    portioned: true,
    async run(_, { operation, call }) {
      const { deletePolicy } = operation.request;
      if (deletePolicy !== 'purge') return undefined;
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const ref = bucketRef(operation);
      const found = await call('inspectBucket', signal => backend.inspectBucket(ref.name, signal));
      if (found.state !== 'ours' || found.incarnation !== ref.incarnation) return undefined;
      const { done } = await call('emptyBucket', signal => backend.emptyBucket(ref, signal));
      return done ? undefined : 'again';
    },
  };
  const remove = removeBucket<DeleteBucketRequest>(backends, ({ wasReady }) => wasReady) as Step<
    Deletion,
    DeleteBucketRequest
  >;
  return {
    async begin(tx, operation) {
      const [row] = await tx.query<{ seenAbsent: boolean }>(WAS_SEEN_ABSENT, rowOf(operation));
      return { origin: 'created', seenAbsent: row?.seenAbsent === true, ...(await readHolding(tx, operation)) };
    },
    steps: [empty, takeRights<DeleteBucketRequest>(needs), remove].map(parkedWhenDraining),
    succeed(writer, operation) {
      writer.write(FORGET_GRANTS, rowOf(operation));
      writer.write(GONE, [...rowOf(operation), operation.id]);
      return undefined;
    },
    fail: keep,
    giveUp: {
      leaves:
        'a bucket that was ready is so again, with the objects that it still has: delete it again at any time. One that never became ready is forgotten, and what the backend has of it stays there',
      write(writer, operation) {
        // The audit says if the backend has it no more.
        if (operation.request.wasReady) keep(writer, operation);
        else writer.write(GONE, [...rowOf(operation), operation.id]);
      },
    },
  };
}
