import type { BucketSpec } from '#backends/object-backend';
import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling, Step } from '#operations/definitions/handler';
import { setSql, sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { wholeBucket } from '#storage/object/buckets/bucket-slots';
import { bucketRef, removeBucket, rowOf } from '#storage/object/buckets/bucket-work';
import type { ObjectNeeds } from '#storage/shared/backend-directory';

export interface CreateBucketRequest {
  spec: BucketSpec;
}

/**
 * A bucket carries the user's name at the backend, so the name cannot tell whose it is. What tells is a pair: "seen
 * absent", committed here before the create call, and the incarnation tag there, written right after it. After a crash
 * between the two an untagged, empty bucket of our own user is ours if and only if we had seen the name absent
 * (invariant O1).
 */
const SEEN_ABSENT = setSql(
  'bucket_seen_absent',
  'UPDATE trivet.bucket SET seen_absent = true WHERE tenant_id = $1 AND id = ANY ($2)',
);
const CREATED = setSql(
  'bucket_created',
  `UPDATE trivet.bucket SET state = 'ready', active_operation = NULL, updated_at = now(), audited_at = now()
    WHERE tenant_id = $1 AND id = ANY ($2) AND active_operation = ANY ($3)`,
);
const NOT_CREATED = sql(
  'bucket_not_created',
  `UPDATE trivet.bucket SET state = 'gone', active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

export const createBucket = defineOperation('bucket.create', {
  resourceKind: 'bucket',
  class: 'fast',
  slots: (id, _: CreateBucketRequest) => wholeBucket(id),
  carriedOut: makeBucket,
});

function makeBucket({ backends }: ObjectNeeds): Handling<undefined, CreateBucketRequest> {
  const inspect: Step<undefined, CreateBucketRequest> = {
    name: 'inspect',
    calls: ['inspectBucket'],
    async run(_, { operation, progress, call }) {
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const found = await call('inspectBucket', signal => backend.inspectBucket(operation.resourceName, signal));
      const ours =
        (found.state === 'ours' && found.incarnation === operation.resourceId) ||
        (found.state === 'untagged' && found.empty && progress.seenAbsent === true);
      if (!ours && found.state !== 'absent')
        throw new StorageError(
          'already_exists',
          `bucket ${operation.resourceName} exists at the backend and was not made by this call; it is left as it is`,
          { resource: `bucket ${operation.resourceName}` },
        );
      progress.seenAbsent = progress.seenAbsent === true || found.state === 'absent';
      progress.exists = ours;
      return undefined;
    },
  };
  const create: Step<undefined, CreateBucketRequest> = {
    name: 'create',
    calls: ['createBucket'],
    point: (writer, operation) => {
      writer.write(SEEN_ABSENT, rowOf(operation));
    },
    async run(_, { operation, progress, call }) {
      if (progress.exists === true) return undefined;
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const { spec } = operation.request;
      await call('createBucket', signal => backend.createBucket(bucketRef(operation), spec, signal));
      return undefined;
    },
  };
  const configure: Step<undefined, CreateBucketRequest> = {
    name: 'configure',
    calls: ['configureBucket'],
    async run(_, { operation, call }) {
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const { spec } = operation.request;
      await call('configureBucket', signal => backend.configureBucket(bucketRef(operation), spec, signal));
      return undefined;
    },
  };
  return {
    steps: [inspect, create, configure],
    undo: [removeBucket(backends)],
    succeed(writer, operation) {
      writer.write(CREATED, [...rowOf(operation), operation.id]);
      return undefined;
    },
    fail(writer, operation) {
      writer.write(NOT_CREATED, [...rowOf(operation), operation.id]);
    },
  };
}
