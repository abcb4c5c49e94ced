import { type BucketSpec, ReplacedBucket } from '#backends/object-backend';
import type { Handler, Step } from '#operations/handler';
import type { LeasedOperation } from '#operations/operation';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/log';
import { setSql, sql } from '#platform/sql';
import { type BucketPolicy, readPolicies } from '#storage/accesses/access-at-backend';
import { leaveBucket } from '#storage/accesses/access-store';
import type { BackendDirectory } from '#storage/backend-directory';
import { createBucket, deleteBucket, releaseBucket } from '#storage/buckets/bucket-operations';
import type { BucketOrigin } from '#storage/buckets/bucket-store';

const log = createLogger('bucket');

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
const WAS_SEEN_ABSENT = sql(
  'bucket_was_seen_absent',
  'SELECT seen_absent AS "seenAbsent" FROM trivet.bucket WHERE tenant_id = $1 AND id = $2',
);

const rowOf = (operation: LeasedOperation) => [operation.tenantId, operation.resourceId] as const;
const bucketRef = (operation: LeasedOperation) => ({
  name: operation.resourceName,
  incarnation: operation.resourceId,
});

export function createBucketHandler(backends: BackendDirectory): Handler {
  const inspect: Step<undefined> = {
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
  const create: Step<undefined> = {
    name: 'create',
    calls: ['createBucket'],
    point: (writer, operation) => {
      writer.write(SEEN_ABSENT, rowOf(operation));
    },
    async run(_, { operation, progress, call }) {
      if (progress.exists === true) return undefined;
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const { spec } = createBucket.requestOf(operation);
      await call('createBucket', signal => backend.createBucket(bucketRef(operation), spec, signal));
      return undefined;
    },
  };
  const configure: Step<undefined> = {
    name: 'configure',
    calls: ['configureBucket'],
    async run(_, { operation, call }) {
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const { spec } = createBucket.requestOf(operation);
      await call('configureBucket', signal => backend.configureBucket(bucketRef(operation), spec, signal));
      return undefined;
    },
  };
  return createBucket.handledBy<undefined>({
    steps: [inspect, create, configure],
    undo: [removeStep(backends)],
    succeed(writer, operation) {
      writer.write(CREATED, [...rowOf(operation), operation.id]);
      return undefined;
    },
    fail(writer, operation) {
      writer.write(NOT_CREATED, [...rowOf(operation), operation.id]);
    },
  });
}

/** What a removal needs to know of the bucket. */
interface Removal {
  origin: BucketOrigin;
  seenAbsent: boolean;
}

/**
 * Removes what carries our incarnation, or what only we can have made; anything else under that name stays. Serves
 * Delete, and Create whose later steps cannot succeed.
 */
function removeStep(backends: BackendDirectory): Step<unknown> {
  return {
    name: 'remove',
    calls: ['inspectBucket', 'configureBucket', 'deleteBucket'],
    async run(work, { operation, progress, call }) {
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const ref = bucketRef(operation);
      const found = await call('inspectBucket', signal => backend.inspectBucket(ref.name, signal));
      const seenAbsent = progress.seenAbsent === true || (work as Removal | undefined)?.seenAbsent === true;
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
      const wasReady = operation.kind === deleteBucket.kind && deleteBucket.requestOf(operation).wasReady;
      if (outcome === 'not_empty')
        throw new StorageError(
          'failed_precondition',
          `bucket ${ref.name} still holds objects: empty it first, or create buckets with deletePolicy=purge`,
          // One that never became ready cannot go back to being so.
          { resource: `bucket ${ref.name}`, retry: wasReady ? 'never' : 'person' },
        );
      return undefined;
    },
  };
}

const GONE = sql(
  'bucket_gone',
  `UPDATE trivet.bucket SET state = 'gone', active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
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
const KEPT = sql(
  'bucket_kept',
  `UPDATE trivet.bucket SET state = 'ready', active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

/** Of a tenant that is being removed no bucket becomes ready again: what no repeat can remove waits for a person. */
const parkedWhenDraining = (step: Step<Removal>): Step<Removal> => ({
  ...step,
  async run(work, context) {
    try {
      return await step.run(work, context);
    } catch (error) {
      if (
        !(error instanceof StorageError) ||
        error.retry !== 'never' ||
        deleteBucket.requestOf(context.operation).draining !== true
      )
        throw error;
      const { kind, message, resource } = error;
      throw new StorageError(kind, message, { resource, retry: 'person', cause: error });
    }
  },
});

export function deleteBucketHandler(backends: BackendDirectory): Handler {
  const empty: Step<Removal> = {
    name: 'empty',
    calls: ['inspectBucket', 'emptyBucket'],
    portioned: true,
    async run(_, { operation, call }) {
      const { deletePolicy } = deleteBucket.requestOf(operation);
      if (deletePolicy !== 'purge') return undefined;
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const ref = bucketRef(operation);
      const found = await call('inspectBucket', signal => backend.inspectBucket(ref.name, signal));
      if (found.state !== 'ours' || found.incarnation !== ref.incarnation) return undefined;
      const { done } = await call('emptyBucket', signal => backend.emptyBucket(ref, signal));
      return done ? undefined : 'again';
    },
  };
  return deleteBucket.handledBy<Removal>({
    async begin(tx, operation) {
      const [row] = await tx.query<{ seenAbsent: boolean }>(WAS_SEEN_ABSENT, rowOf(operation));
      return { origin: 'created', seenAbsent: row?.seenAbsent === true };
    },
    steps: [empty, removeStep(backends) as Step<Removal>].map(parkedWhenDraining),
    succeed(writer, operation) {
      writer.write(FORGET_GRANTS, rowOf(operation));
      writer.write(GONE, [...rowOf(operation), operation.id]);
      return undefined;
    },
    fail(writer, operation) {
      writer.write(KEPT, [...rowOf(operation), operation.id]);
    },
    giveUp: {
      leaves:
        'a bucket that was ready is so again, with the objects that it still has: delete it again at any time. One that never became ready is forgotten, and what the backend has of it stays there',
      write(writer, operation) {
        // The audit says if the backend has it no more.
        writer.write(deleteBucket.requestOf(operation).wasReady ? KEPT : GONE, [...rowOf(operation), operation.id]);
      },
    },
  });
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
export function releaseBucketHandler(backends: BackendDirectory): Handler {
  return releaseBucket.handledBy<BucketPolicy>({
    async begin(tx, operation) {
      const [tenantId, bucketId] = rowOf(operation);
      const forget = releaseBucket.requestOf(operation).forget === true;
      // A narrowing that was under way has its Deny by now; a bucket that is registered no more has no grants at all, and
      // of what earlier releases of Trivet accepted nothing is marked.
      const marked = releaseBucket.requestOf(operation).marked === true && !forget;
      await leaveBucket(tx, tenantId, bucketId, marked ? 'revoked' : 'all');
      const [policy] = await readPolicies(tx, tenantId, [bucketId]);
      return forget ? { ...policy!, grants: [] } : policy!;
    },
    steps: [
      {
        name: 'policy',
        calls: ['putGrants'],
        async run({ name, identity, grants }, { operation, call }) {
          const backend = await backends.open(operation.tenantId, operation.backendId);
          try {
            await call('putGrants', signal => backend.putGrants({ name, identity }, grants, signal));
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
      writer.write(releaseBucket.requestOf(operation).forget === true ? GONE : KEPT, [
        ...rowOf(operation),
        operation.id,
      ]);
      writer.write(FORGET_LEFT, rowOf(operation));
      return undefined;
    },
    giveUp: {
      leaves: 'the bucket is registered as before; statements of this appliance may be left in its policy',
      write(writer, operation) {
        writer.write(KEPT, [...rowOf(operation), operation.id]);
      },
    },
  });
}
