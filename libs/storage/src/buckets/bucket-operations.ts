import type { BucketSpec } from '#backends/object-backend';
import type { Slot } from '#operations/accept';
import { defineOperation } from '#operations/define-operation';

/** Create and delete exclude everything else at a bucket; a grant takes its policy alone. */
export const BUCKET_SLOTS = { lifecycle: 'lifecycle', policy: 'policy' } as const;

const wholeBucket = (bucketId: string): Slot[] =>
  Object.values(BUCKET_SLOTS).map(slot => ({ resource: bucketId, slot, own: true }));

export interface CreateBucketRequest {
  spec: BucketSpec;
}

export const createBucket = defineOperation<CreateBucketRequest>('bucket.create', {
  resourceKind: 'bucket',
  class: 'fast',
  slots: wholeBucket,
});

export interface DeleteBucketRequest {
  deletePolicy: BucketSpec['deletePolicy'];
  /** One that never became so cannot go back to it. */
  wasReady: boolean;
  /** Its tenant is being removed. */
  draining?: boolean;
}

export const deleteBucket = defineOperation<DeleteBucketRequest>('bucket.delete', {
  resourceKind: 'bucket',
  class: 'fast',
  slots: wholeBucket,
  negates: () => [createBucket],
});

export interface ReleaseBucketRequest {
  deletePolicy: BucketSpec['deletePolicy'];
  wasReady: boolean;
  /** The grants that leave were marked when it was accepted. */
  marked?: boolean;
  /** It is not registered any more afterwards. */
  forget?: boolean;
}

/** Our grants leave a registered bucket, which stays as it is (invariant O7). */
export const releaseBucket = defineOperation<ReleaseBucketRequest>('bucket.release', {
  resourceKind: 'bucket',
  class: 'fast',
  slots: wholeBucket,
});
