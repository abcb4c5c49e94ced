import { ReplacedBucket } from '#backends/object-backend';
import { failureOf, type Handler, type Step } from '#operations/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database';
import { isStorageError, StorageError } from '#platform/errors';
import type { SecretBox } from '#platform/secrets';
import { sql } from '#platform/sql';
import { type AccessAtBackend, readAccess, readPolicies } from '#storage/accesses/access-at-backend';
import { grantAccess, narrowAccess, revokeAccess } from '#storage/accesses/access-operations';
import type { BackendDirectory } from '#storage/backend-directory';
import { desiredAccess, fingerprint } from '#storage/desired-state';

/**
 * A bucket's policy is not edited but generated: from all its grant rows, under the bucket's policy slot. The rows change
 * in the committed transaction before the policy is written, so whoever writes it next writes this change too, and a
 * crash in between loses nothing. Order of a revocation: rows, key, policies, principal (invariant O4).
 */
const MARK = sql(
  'access_mark_grants',
  `UPDATE trivet.bucket_grant SET state = $4 WHERE tenant_id = $1 AND access_id = $2 AND bucket_id = ANY ($3)`,
);
const WANTED = sql(
  'access_wanted_grants',
  `SELECT bucket_id AS id FROM trivet.bucket_grant WHERE tenant_id = $1 AND access_id = $2 AND state = 'wanted'`,
);
const END = sql(
  'access_end',
  `UPDATE trivet.access SET state = 'ready', stale = false, active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
const REMOVE = sql(
  'access_remove',
  `WITH grants AS (DELETE FROM trivet.bucket_grant WHERE tenant_id = $1 AND access_id = $2),
        secret AS (DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'access' AND owner_id = $2)
   UPDATE trivet.access SET state = 'gone', active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
/** The grants that a failed heal would have added, and those on what is gone; what else was there before it stays. */
const NOT_HEALED = sql(
  'access_not_healed',
  `WITH needless AS (
     DELETE FROM trivet.bucket_grant g USING trivet.bucket b
      WHERE g.tenant_id = $1 AND g.access_id = $2 AND b.tenant_id = g.tenant_id AND b.id = g.bucket_id
        AND (g.state IN ('wanted', 'removing') OR b.state = 'gone'))
   UPDATE trivet.access SET state = 'ready', stale = true, active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
/** The backend was not asked: it may have what the heal has added, which a revocation must still find. */
const HEAL_GIVEN_UP = sql(
  'access_heal_given_up',
  `WITH needless AS (
     DELETE FROM trivet.bucket_grant g USING trivet.bucket b
      WHERE g.tenant_id = $1 AND g.access_id = $2 AND b.tenant_id = g.tenant_id AND b.id = g.bucket_id AND b.state = 'gone'
   ), added AS (
     UPDATE trivet.bucket_grant g SET state = 'removing' FROM trivet.bucket b
      WHERE g.tenant_id = $1 AND g.access_id = $2 AND b.tenant_id = g.tenant_id AND b.id = g.bucket_id AND b.state <> 'gone'
        AND (g.state = 'wanted' OR g.bucket_id = ANY ($4)))
   UPDATE trivet.access SET state = 'ready', stale = true, active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
const NARROW = sql(
  'access_narrow',
  `UPDATE trivet.access
      SET desired = $4, fingerprint = $5, active_operation = nullif(active_operation, $3), updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);

/** Of registered buckets a release may take it as well. */
const NOT_REVOKED = sql(
  'access_not_revoked',
  `WITH grants AS (
     UPDATE trivet.bucket_grant g SET state = 'applied' FROM trivet.bucket b
      WHERE g.tenant_id = $1 AND g.access_id = $2 AND g.state = 'removing'
        AND b.tenant_id = g.tenant_id AND b.id = g.bucket_id AND b.origin = 'created')
   UPDATE trivet.access SET state = 'ready', stale = true, active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
/** What was denied already stays so until the next grant. */
const NOT_NARROWED = sql(
  'access_not_narrowed',
  `UPDATE trivet.access SET stale = true, active_operation = nullif(active_operation, $3), updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);

const KINDS = [grantAccess, revokeAccess, narrowAccess];
const bucketIds = (operation: LeasedOperation): readonly string[] =>
  KINDS.find(({ kind }) => kind === operation.kind)!.requestOf(operation).resources;
const rowOf = (operation: LeasedOperation) => [operation.tenantId, operation.resourceId] as const;

const isGone = (error: StorageError): boolean => error.kind === 'not_found' || error instanceof ReplacedBucket;

export class AccessHandlers {
  constructor(
    private readonly backends: BackendDirectory,
    private readonly secrets: SecretBox,
  ) {}

  all(): Handler[] {
    return [this.grant(), this.revoke(), this.narrow()];
  }

  private grant(): Handler {
    // An access that lived before, and was only to be healed, keeps its account and what it still has.
    const healing = (operation: LeasedOperation) => grantAccess.requestOf(operation).heal === true;
    const unlessHealing = (step: Step<AccessAtBackend>): Step<AccessAtBackend> => ({
      ...step,
      run: async (work, context) => (healing(context.operation) ? undefined : step.run(work, context)),
    });
    return grantAccess.handledBy<AccessAtBackend>({
      begin: async (tx, operation) => {
        const undoing = failureOf(operation) !== undefined;
        if (undoing) {
          const added = operation.progress.added as string[] | undefined;
          await this.mark(tx, operation, 'removing', healing(operation) ? (added ?? []) : bucketIds(operation));
        } else {
          await this.requireBuckets(tx, operation);
          if (healing(operation)) operation.progress.added ??= await this.wanted(tx, operation);
          await this.mark(tx, operation, 'applied');
        }
        return this.read(tx, operation);
      },
      steps: [this.putPrincipal(), this.putPolicies()],
      undo: [unlessHealing(this.removeKey()), this.putPolicies(), unlessHealing(this.removePrincipal())],
      succeed: (writer, operation) => {
        writer.write(END, [...rowOf(operation), operation.id]);
        return undefined;
      },
      fail: (writer, operation) => {
        if (healing(operation)) writer.write(NOT_HEALED, [...rowOf(operation), operation.id]);
        else writer.write(REMOVE, rowOf(operation));
      },
      giveUp: {
        leaves:
          'it is as if the call had never come, and what the operation made at the backend stays there; the key of an access that was to be put right may reach more buckets until those are revoked, or granted again',
        write: (writer, operation) => {
          const added = operation.progress.added ?? [];
          if (healing(operation)) writer.write(HEAL_GIVEN_UP, [...rowOf(operation), operation.id, added]);
          else writer.write(REMOVE, rowOf(operation));
        },
      },
    });
  }

  private revoke(): Handler {
    return revokeAccess.handledBy<AccessAtBackend>({
      begin: async (tx, operation) => {
        await this.mark(tx, operation, 'removing');
        return this.read(tx, operation);
      },
      steps: [this.removeKey(), this.putPolicies(), this.removePrincipal()],
      succeed: (writer, operation) => {
        writer.write(REMOVE, rowOf(operation));
        return undefined;
      },
      giveUp: {
        leaves:
          'the access is there again, and its key may still work: revoke it again, or grant it again to put right what is missing',
        write: (writer, operation) => {
          writer.write(NOT_REVOKED, [...rowOf(operation), operation.id]);
        },
      },
    });
  }

  /**
   * Takes some of its buckets from a principal that keeps others: those get a lasting Deny. `leaving` are their names,
   * those that were deleted meanwhile included.
   */
  private narrow(): Handler {
    return narrowAccess.handledBy<AccessAtBackend>({
      begin: async (tx, operation) => {
        await this.mark(tx, operation, 'revoked');
        return this.read(tx, operation);
      },
      steps: [this.putPolicies()],
      succeed: (writer, operation, work) => {
        const leaving = new Set(narrowAccess.requestOf(operation).leaving);
        const kept = work.desired.buckets.filter(({ bucketId }) => !leaving.has(bucketId));
        const desired = desiredAccess(work.desired.protocol, kept);
        writer.write(NARROW, [...rowOf(operation), operation.id, JSON.stringify(desired), fingerprint(desired)]);
        return undefined;
      },
      giveUp: {
        leaves:
          'the access has all its buckets on record; what the backend denies already stays denied until the next grant',
        write: (writer, operation) => {
          writer.write(NOT_NARROWED, [...rowOf(operation), operation.id]);
        },
      },
    });
  }

  private putPrincipal(): Step<AccessAtBackend> {
    return {
      name: 'principal',
      calls: ['putPrincipal'],
      run: async ({ uid, name, credentials }, { operation, call }) => {
        if (!credentials)
          throw new StorageError('internal', 'the access has no stored credentials', { retry: 'person' });
        const backend = await this.backends.open(operation.tenantId, operation.backendId);
        await call('putPrincipal', signal =>
          backend.putPrincipal({ uid, displayName: `trivet ${name}`, ...credentials }, signal),
        );
        return undefined;
      },
    };
  }

  private putPolicies(): Step<AccessAtBackend> {
    return {
      name: 'policies',
      calls: ['putGrants'],
      run: async ({ policies }, { operation, call }) => {
        const backend = await this.backends.open(operation.tenantId, operation.backendId);
        const granting = operation.kind === grantAccess.kind && failureOf(operation) === undefined;
        for (const { name, incarnation, identity, grants } of policies)
          try {
            await call('putGrants', signal => backend.putGrants({ name, incarnation, identity }, grants, signal));
          } catch (error) {
            // A bucket that is gone has no policy that could still allow anything.
            if (!granting && isStorageError(error) && isGone(error)) continue;
            if (error instanceof ReplacedBucket) throw error;
            if (isStorageError(error) && error.kind === 'failed_precondition')
              throw new StorageError(error.kind, error.message, { ...error, retry: 'person', cause: error });
            throw error;
          }
        return undefined;
      },
    };
  }

  private removeKey(): Step<AccessAtBackend> {
    return {
      name: 'remove-key',
      calls: ['removeKey'],
      run: async ({ uid, credentials }, { operation, call }) => {
        const backend = await this.backends.open(operation.tenantId, operation.backendId);
        if (credentials)
          await call('removeKey', signal => backend.removeKey({ uid, accessKeyId: credentials.accessKeyId }, signal));
        return undefined;
      },
    };
  }

  private removePrincipal(): Step<AccessAtBackend> {
    return {
      name: 'remove-principal',
      calls: ['removePrincipal'],
      run: async ({ uid }, { operation, call }) => {
        const backend = await this.backends.open(operation.tenantId, operation.backendId);
        await call('removePrincipal', signal => backend.removePrincipal(uid, signal));
        return undefined;
      },
    };
  }

  private async mark(
    tx: Tx,
    operation: LeasedOperation,
    state: 'applied' | 'revoked' | 'removing',
    buckets = bucketIds(operation),
  ): Promise<void> {
    await tx.query(MARK, [...rowOf(operation), buckets, state]);
  }

  /** Buckets that the access has not had yet. */
  private async wanted(tx: Tx, operation: LeasedOperation): Promise<string[]> {
    return (await tx.query<{ id: string }>(WANTED, rowOf(operation))).map(({ id }) => id);
  }

  /** The policy slots are ours now, so no bucket of them can be under creation or deletion. */
  private async requireBuckets(tx: Tx, operation: LeasedOperation): Promise<void> {
    const rows = await readPolicies(tx, operation.tenantId, bucketIds(operation));
    for (const { name, state } of rows) {
      if (state === 'ready') continue;
      const resource = `bucket ${name}`;
      if (state === 'creating') throw new StorageError('aborted', `${resource} is still being created`, { resource });
      throw new StorageError('not_found', `${resource} was deleted`, { resource });
    }
  }

  private read(tx: Tx, operation: LeasedOperation): Promise<AccessAtBackend> {
    return readAccess(tx, this.secrets, operation.tenantId, operation.resourceId, bucketIds(operation));
  }
}
