/**
 * Where the store signs, an access has no key but names at its buckets, under which signatures open them: its account's, or one
 * drawn for each later signature. They stand in its row, since whoever writes the policy of a bucket writes those of all accesses.
 */
import type { ObjectBackend } from '#backends/object-backend';
import type { Step } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import { type AccessRequest, putPolicies, rowOf } from '#storage/object/accesses/access-work';
import type { AccessCredentials } from '#storage/object/rights/credentials';
import type { ObjectNeeds } from '#storage/shared/backend-directory';

/** Nobody is told of the present key from now on, which these names do not let in: a Grant waits for what changes it. */
export const SIGN_UNDER_NEXT = sql(
  'access_sign_under_next',
  'UPDATE trivet.access SET signed_as = $3, renew_at = now() WHERE tenant_id = $1 AND id = $2',
);
export const SIGN_UNDER = sql(
  'access_sign_under',
  'UPDATE trivet.access SET signed_as = $3 WHERE tenant_id = $1 AND id = $2',
);

const MOVE_END = sql(
  'access_move_end',
  `UPDATE trivet.access SET expires_at = date_trunc('second', now()) + $3 * interval '1 second'
    WHERE tenant_id = $1 AND id = $2`,
);

/** From then on a Grant makes it later: in the second half of its time, and at once where a worker of a release before has set none. */
export const RENEW_AT = `CASE WHEN desired #>> '{expiry,afterSeconds}' IS NOT NULL
       THEN coalesce(expires_at - (desired #>> '{expiry,afterSeconds}')::bigint * interval '0.5 second', now()) END`;

/** Without a bucket there is no token, but a name from the first change on. */
export const isSigned = ({ credentials }: AccessAtBackend): boolean =>
  credentials?.token !== undefined || credentials?.signedAs !== undefined;

/** What may open the buckets when no change is under way: a former one that has ended, or was to end at once, does not come back. */
export const known = ({ credentials, former, formerHolds }: AccessAtBackend) => [
  credentials,
  formerHolds ? former : undefined,
];

/** The names of these keys, for the row; what was read of its policies says them, too. */
export function takeNames(work: AccessAtBackend, keys: readonly (AccessCredentials | undefined)[]): string[] {
  const { uid } = work;
  const signedAs = keys.flatMap(key => (key ? [key.signedAs ?? uid] : []));
  work.policies = work.policies.map(policy => ({
    ...policy,
    grants: policy.grants.map(grant => (grant.uid === uid ? { ...grant, signedAs } : grant)),
  }));
  return signedAs;
}

/** No other one of the account has it. */
export const signedAnew = (uid: string, key: AccessCredentials): AccessCredentials => ({
  ...key,
  signedAs: `${uid}-${key.accessKeyId.slice(-8)}`,
});

/** The same key with what opens its bucket, and until when; itself where the store does not sign. */
export function withSignature(
  backend: ObjectBackend,
  { uid, policies: [policy] }: AccessAtBackend,
  key: AccessCredentials,
): AccessCredentials {
  if (!backend.traits().signs || !policy) return key;
  const { endsAt } = policy.grants.find(grant => grant.uid === uid) ?? {};
  // JSON of PostgreSQL has the time zone of its session.
  const expiresAt = endsAt && new Date(endsAt).toISOString();
  return { ...key, token: backend.signAccess(policy.name, key.signedAs ?? uid), expiresAt };
}

/** Moves the end on before the policies are read and written: whoever writes them next writes this, too. */
export async function moveEnd(tx: Tx, operation: LeasedOperation<{ lastsSeconds?: number }>): Promise<void> {
  const { lastsSeconds } = operation.request;
  if (lastsSeconds !== undefined) await tx.query(MOVE_END, [...rowOf(operation), lastsSeconds]);
}

/** Writes the names where keys have been changed. */
export function putNames(needs: ObjectNeeds, { grants }: { grants: boolean }): Step<AccessAtBackend, AccessRequest> {
  const step = putPolicies(needs, { grants });
  return {
    ...step,
    name: 'names',
    where: 'signs',
    run: async (work, context) => {
      const { tenantId, backendId } = context.operation;
      const backend = await needs.backends.open(tenantId, backendId);
      return backend.traits().signs ? step.run(work, context) : undefined;
    },
  };
}
