import { type BucketSpec, ReplacedBucket } from '#backends/object-backend';
import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { leaveBucket } from '#storage/object/buckets/bucket-grants';
import type { BucketPolicy } from '#storage/object/buckets/bucket-policies';
import { readPolicies } from '#storage/object/buckets/bucket-policies';
import { wholeBucket } from '#storage/object/buckets/bucket-slots';
import { GONE, KEPT, rowOf } from '#storage/object/buckets/bucket-work';
import type { ObjectNeeds } from '#storage/shared/backend-directory';

const log = createLogger('bucket');

export interface ReleaseBucketRequest {
  deletePolicy: BucketSpec['deletePolicy'];
  wasReady: boolean;
  /** The grants that leave were marked when it was accepted. */
  marked?: boolean;
  /** It is not registered any more afterwards. */
  forget?: boolean;
}

/** After what LEAVE has set the policy is without it; a Grant that came meanwhile wants it again, and keeps it. */
const FORGET_LEFT = sql(
  'bucket_forget_left',
  `DELETE FROM trivet.bucket_grant WHERE tenant_id = $1 AND bucket_id = $2 AND state = 'removing'`,
);

/**
 * A registered bucket: our grants leave it, it stays as it is (invariant O7). After COSI's Delete it may be claimed again;
 * an administrator's deletion ends the registration too. Which grants leave was settled when the Delete was accepted; the
 * policy is written from the rows, so that a later Grant keeps its statement whichever of the two runs first.
 */
export const releaseBucket = defineOperation('bucket.release', {
  resourceKind: 'bucket',
  class: 'fast',
  slots: (id, _: ReleaseBucketRequest) => wholeBucket(id),
  carriedOut: ({ backends }: ObjectNeeds): Handling<BucketPolicy, ReleaseBucketRequest> => ({
    async begin(tx, operation) {
      const [tenantId, bucketId] = rowOf(operation);
      const forget = operation.request.forget === true;
      // A narrowing that was under way has its Deny by now; a bucket that is registered no more has no grants at all, and
      // of what earlier releases of Trivet accepted nothing is marked.
      const marked = operation.request.marked === true && !forget;
      await leaveBucket(tx, tenantId, bucketId, marked ? 'revoked' : 'all');
      const [policy] = await readPolicies(tx, tenantId, [bucketId]);
      return forget ? { ...policy!, grants: [] } : policy!;
    },
    steps: [
      {
        name: 'policy',
        calls: ['putGrants'],
        async run({ name, identity, grants, whose }, { operation, call }) {
          const backend = await backends.open(operation.tenantId, operation.backendId);
          try {
            await call('putGrants', signal => backend.putGrants({ name, identity }, grants, signal, whose));
          } catch (error) {
            const gone = error instanceof StorageError && error.kind === 'not_found';
            if (!gone && !(error instanceof ReplacedBucket)) throw error;
          }
          log.info(
            { bucket: name },
            'a registered bucket is let go: our grants have left its policy, nothing else was touched',
          );
          return undefined;
        },
      },
    ],
    succeed(writer, operation) {
      // The bucket before its grants, as a Grant takes them.
      writer.write(operation.request.forget === true ? GONE : KEPT, [...rowOf(operation), operation.id]);
      writer.write(FORGET_LEFT, rowOf(operation));
      return undefined;
    },
    giveUp: {
      leaves: 'the bucket is registered as before; statements of this appliance may be left in its policy',
      write(writer, operation) {
        writer.write(KEPT, [...rowOf(operation), operation.id]);
      },
    },
  }),
});
