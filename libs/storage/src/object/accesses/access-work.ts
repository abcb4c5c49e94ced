import { MissingPrincipal, ReplacedBucket } from '#backends/object-backend';
import type { Slot } from '#operations/accepting/accept';
import { failureOf, type Step } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import { type AccessAtBackend, readAccess } from '#storage/object/accesses/access-at-backend';
import { BUCKET_SLOTS } from '#storage/object/buckets/bucket-slots';
import type { AccessCredentials } from '#storage/object/rights/credentials';
import type { ObjectNeeds } from '#storage/shared/backend-directory';

/**
 * A bucket's policy is not edited but generated: from all its grant rows, under the bucket's policy slot. The rows change
 * in the committed transaction before the policy is written, so whoever writes it next writes this change too, and a
 * crash in between loses nothing. Order of a revocation: rows, key, policies, principal (invariant O4).
 */
export interface AccessRequest {
  /** The buckets whose policies it writes. */
  resources: readonly string[];
}

/** Of what ends or makes an access: it, and the policies of its buckets. */
export const accessSlots = (accessId: string, { resources }: AccessRequest): Slot[] => [
  { resource: accessId, slot: 'lifecycle', own: true },
  ...resources.map(resource => ({ resource, slot: BUCKET_SLOTS.policy, own: false })),
];

const MARK = sql(
  'access_mark_grants',
  `UPDATE trivet.bucket_grant SET state = $4 WHERE tenant_id = $1 AND access_id = $2 AND bucket_id = ANY ($3)`,
);
export const REMOVE = sql(
  'access_remove',
  `WITH grants AS (DELETE FROM trivet.bucket_grant WHERE tenant_id = $1 AND access_id = $2),
        secret AS (DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'access' AND owner_id = $2)
   UPDATE trivet.access
      SET state = 'gone', active_operation = NULL, key_operation = NULL, former_until = NULL, rotate_at = NULL, signed_as = NULL,
          expires_at = NULL, renew_at = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);

/** It is issued later, or there is none. */
export const NO_KEY = { accessKeyId: '', secretAccessKey: '' };

export const rowOf = (operation: LeasedOperation) => [operation.tenantId, operation.resourceId] as const;

/** All that open what the access opens. */
export const keysOf = ({ credentials, former, next }: AccessAtBackend): AccessCredentials[] =>
  [credentials, former, next].filter(key => key !== undefined);

const isGone = (error: StorageError): boolean => error.kind === 'not_found' || error instanceof ReplacedBucket;

export function putPrincipal(
  { backends }: ObjectNeeds,
  /** The key, and the one that is let in beside it. */
  keysOf: (work: AccessAtBackend) => readonly (AccessCredentials | undefined)[] = work => [
    work.credentials,
    work.former,
  ],
): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'principal',
    calls: ['putPrincipal'],
    run: async (work, { operation, call }) => {
      const { uid, name } = work;
      const { serviceAccount: trusts } = work.desired;
      const [stored, other] = keysOf(work);
      const beside = other ? [other] : [];
      // Whom it lets in may have changed since the last access without a key went, and not while this one lives.
      const backend = await backends.open(operation.tenantId, operation.backendId, { fresh: trusts !== undefined });
      const credentials = stored ?? ((trusts || backend.traits().issuesKeys) && NO_KEY);
      if (!credentials) throw new StorageError('internal', 'the access has no stored credentials', { retry: 'person' });
      await call('putPrincipal', signal =>
        backend.putPrincipal({ uid, displayName: `trivet ${name}`, ...credentials, beside, trusts }, signal),
      );
      return undefined;
    },
  };
}

export function putPolicies(
  { backends }: ObjectNeeds,
  { grants }: { grants: boolean },
): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'policies',
    calls: ['putGrants'],
    run: async ({ uid, policies }, { operation, call }) => {
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const granting = grants && failureOf(operation) === undefined;
      for (const { name, incarnation, identity, grants: statements } of policies)
        try {
          await call('putGrants', signal =>
            backend.putGrants({ name, incarnation, identity }, statements, signal, [uid]),
          );
        } catch (error) {
          // A bucket that is gone has no policy that could still allow anything.
          if (!granting && isStorageError(error) && isGone(error)) continue;
          if (granting && error instanceof MissingPrincipal)
            // It was there a moment ago: the repeat makes it, if it has gone.
            throw new StorageError('aborted', `${error.message}, or not everywhere yet`, {
              resource: error.resource,
              cause: error,
            });
          if (error instanceof ReplacedBucket) throw error;
          if (isStorageError(error) && error.kind === 'failed_precondition')
            throw new StorageError(error.kind, error.message, { ...error, retry: 'person', cause: error });
          throw error;
        }
      return undefined;
    },
  };
}

export function removeKey({ backends }: ObjectNeeds): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'remove-key',
    calls: ['removeKey'],
    run: async (work, { operation, call }) => {
      const { uid } = work;
      const backend = await backends.open(operation.tenantId, operation.backendId);
      for (const { accessKeyId } of backend.traits().issuesKeys ? [NO_KEY] : keysOf(work))
        await call('removeKey', signal => backend.removeKey({ uid, accessKeyId }, signal));
      return undefined;
    },
  };
}

export function removePrincipal({ backends }: ObjectNeeds): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'remove-principal',
    calls: ['removePrincipal'],
    run: async ({ uid }, { operation, call }) => {
      const backend = await backends.open(operation.tenantId, operation.backendId);
      await call('removePrincipal', signal => backend.removePrincipal(uid, signal));
      return undefined;
    },
  };
}

export async function mark(
  tx: Tx,
  operation: LeasedOperation<AccessRequest>,
  state: 'applied' | 'revoked' | 'removing',
  buckets = operation.request.resources,
): Promise<void> {
  await tx.query(MARK, [...rowOf(operation), buckets, state]);
}

export function readAccessOf(
  tx: Tx,
  secrets: SecretBox,
  operation: LeasedOperation<AccessRequest>,
): Promise<AccessAtBackend> {
  return readAccess(tx, secrets, operation.tenantId, operation.resourceId, operation.request.resources);
}
