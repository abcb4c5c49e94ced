import type { Right } from '#backends/object-backend';
import { defineOperation } from '#operations/definitions/define-operation';
import { failureOf, type Handling, type Step } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import { encodeSealed } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { type AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import {
  type AccessRequest,
  accessSlots,
  mark,
  putPolicies,
  putPrincipal,
  REMOVE,
  readAccessOf,
  removeKey,
  removePrincipal,
  rowOf,
} from '#storage/object/accesses/access-work';
import {
  isSigned,
  known,
  moveEnd,
  RENEW_AT,
  SIGN_UNDER,
  takeNames,
  withSignature,
} from '#storage/object/accesses/signatures';
import { readPolicies } from '#storage/object/buckets/bucket-policies';
import { type AccessNeeds, credentialsPlace } from '#storage/object/rights/credentials';
import { untilInForce } from '#storage/object/rights/until-in-force';

export interface GrantAccessRequest extends AccessRequest {
  /** It lives, and is only put right. */
  heal?: boolean;
  /** It has no key, so what the store has of it opens buckets without anybody having been told. */
  keyless?: boolean;
  /** What it opens ends by itself, so long after now. */
  lastsSeconds?: number;
}

const WANTED = sql(
  'access_wanted_grants',
  `SELECT bucket_id AS id FROM trivet.bucket_grant WHERE tenant_id = $1 AND access_id = $2 AND state = 'wanted'`,
);
const END = sql(
  'access_end',
  `UPDATE trivet.access SET state = 'ready', stale = false, active_operation = NULL, renew_at = ${RENEW_AT},
          updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
const RESEAL = sql(
  'access_reseal',
  `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'access', $2, 'credentials', $3)
   ON CONFLICT (tenant_id, owner_table, owner_id, name) DO UPDATE SET sealed = EXCLUDED.sealed`,
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
/** The backend was not asked: it may have what the operation has added, which a revocation must still find. */
const GIVEN_UP = sql(
  'access_grant_given_up',
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

export const grantAccess = defineOperation('access.grant', {
  resourceKind: 'access',
  class: 'fast',
  slots: (id, request: GrantAccessRequest) => accessSlots(id, request),
  carriedOut: makeAccess,
});

function makeAccess(needs: AccessNeeds): Handling<AccessAtBackend, GrantAccessRequest> {
  // An access that lived before, and was only to be healed, keeps its account and what it still has.
  const healing = (operation: LeasedOperation<GrantAccessRequest>) => operation.request.heal === true;
  const unlessHealing = (step: Step<AccessAtBackend, AccessRequest>): Step<AccessAtBackend, GrantAccessRequest> => ({
    ...step,
    run: async (work, context) => (healing(context.operation) ? undefined : step.run(work, context)),
  });
  return {
    begin: async (tx, operation) => {
      const undoing = failureOf(operation) !== undefined;
      if (undoing) {
        const added = operation.progress.added as string[] | undefined;
        await mark(tx, operation, 'removing', healing(operation) ? (added ?? []) : operation.request.resources);
      } else {
        await requireBuckets(tx, operation);
        if (healing(operation) || operation.request.keyless) operation.progress.added ??= await wanted(tx, operation);
        await mark(tx, operation, 'applied');
        await moveEnd(tx, operation);
      }
      const work = await readAccessOf(tx, needs.secrets, operation);
      // One that is only to come goes, as a key beside it does that nobody knows.
      if (healing(operation) && isSigned(work))
        await tx.query(SIGN_UNDER, [...rowOf(operation), takeNames(work, known(work))]);
      return work;
    },
    steps: [
      putPrincipal(needs),
      thenSigned(needs, putPolicies(needs, { grants: true })),
      signatureLetIn(needs),
      haveKey(needs),
    ],
    undo: [
      unlessHealing(removeKey(needs)),
      putPolicies(needs, { grants: true }),
      unlessHealing(removePrincipal(needs)),
    ],
    succeed: (writer, operation, work) => {
      if (work.resealed) writer.write(RESEAL, [...rowOf(operation), work.resealed]);
      writer.write(END, [...rowOf(operation), operation.id]);
      return undefined;
    },
    fail: (writer, operation) => {
      if (healing(operation)) writer.write(NOT_HEALED, [...rowOf(operation), operation.id]);
      else writer.write(REMOVE, rowOf(operation));
    },
    giveUp: {
      leaves:
        'it is as if the call had never come, and what the operation made at the backend stays there, with a key that nobody was told; an access that was to be put right, or one of a service account, stays and may reach what was to be added until that is revoked, or granted again',
      write: (writer, operation) => {
        const { added } = operation.progress;
        // A key that nobody was told opens nothing; whoever needs none is let in by what is there.
        const stays = healing(operation) || (operation.request.keyless && added !== undefined);
        if (stays) writer.write(GIVEN_UP, [...rowOf(operation), operation.id, added ?? []]);
        else writer.write(REMOVE, rowOf(operation));
      },
    },
  };
}

/**
 * Where the store issues keys. Last, so that what is repeated before it issues none. What was issued is sealed and committed
 * before it is used; a key whose secret was lost with a worker is taken away by the next one.
 */
function haveKey({ backends, secrets }: AccessNeeds): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'key',
    where: 'issuesKeys',
    calls: ['holdsPrincipal', 'issueKey', 'isInForce'],
    portioned: true,
    run: async (work, context) => {
      const { operation, call, write } = context;
      const backend = await backends.open(operation.tenantId, operation.backendId);
      if (!backend.traits().issuesKeys || work.desired.serviceAccount) return undefined;
      const { uid, name, credentials, former, issued } = work;
      const beside = [former ?? []].flat();
      const known =
        credentials !== undefined &&
        (issued ||
          (await call('holdsPrincipal', signal =>
            backend.holdsPrincipal({ uid, displayName: name, ...credentials, beside }, signal),
          )));
      if (!known) {
        const key = await call('issueKey', signal => backend.issueKey(uid, signal, former?.accessKeyId));
        const place = credentialsPlace(operation.tenantId, operation.resourceId);
        write(RESEAL, [...rowOf(operation), encodeSealed(secrets.seal(JSON.stringify(key), place))]);
        work.credentials = key;
        work.issued = true;
        return 'again';
      }
      await untilInForce(backend, [{ key: credentials, expected: rightsOf(work) }], context, () => neverInForce(name));
      return undefined;
    },
  };
}

/** What its key is to open, by the policies that were read. */
export const rightsOf = ({ uid, policies }: AccessAtBackend): Right[] =>
  policies.flatMap(({ name: bucket, grants }) =>
    grants.filter(grant => grant.uid === uid).map(({ mode }) => ({ bucket, mode })),
  );

export const neverInForce = (name: string): StorageError =>
  new StorageError(
    'failed_precondition',
    `the object store does not let the key of access ${name} do what it was granted: a permissions boundary, a policy of the bucket or of the account forbids it`,
    { resource: `access ${name}` },
  );

/** What the store signs is worth nothing before its names stand, and the same each time: a crash before it is kept loses nothing. */
function thenSigned(
  { backends, secrets }: AccessNeeds,
  step: Step<AccessAtBackend, AccessRequest>,
): Step<AccessAtBackend, AccessRequest> {
  const run: typeof step.run = async (work, context) => {
    const again = await step.run(work, context);
    const { tenantId, backendId, resourceId } = context.operation;
    const { credentials } = work;
    if (!credentials) return again;
    const key = withSignature(await backends.open(tenantId, backendId), work, credentials);
    if (key.token === credentials.token && key.expiresAt === credentials.expiresAt) return again;
    work.credentials = key;
    work.resealed = encodeSealed(secrets.seal(JSON.stringify(key), credentialsPlace(tenantId, resourceId)));
    return again;
  };
  return { ...step, run };
}

/** Where it signs: the other stores that see rights late are asked with the key that they issued. */
function signatureLetIn({ backends }: AccessNeeds): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'let-in',
    where: 'signs',
    calls: ['isInForce'],
    run: async (work, context) => {
      const { tenantId, backendId } = context.operation;
      const backend = await backends.open(tenantId, backendId);
      const { credentials: key, name } = work;
      if (!backend.traits().signs || !key) return undefined;
      await untilInForce(backend, [{ key, expected: rightsOf(work) }], context, () => neverInForce(name));
      return undefined;
    },
  };
}

/** Buckets that the access has not had yet. */
async function wanted(tx: Tx, operation: LeasedOperation): Promise<string[]> {
  return (await tx.query<{ id: string }>(WANTED, rowOf(operation))).map(({ id }) => id);
}

/** The policy slots are ours now, so no bucket of them can be under creation or deletion. */
async function requireBuckets(tx: Tx, operation: LeasedOperation<GrantAccessRequest>): Promise<void> {
  const rows = await readPolicies(tx, operation.tenantId, operation.request.resources);
  for (const { name, state } of rows) {
    if (state === 'ready') continue;
    const resource = `bucket ${name}`;
    if (state === 'creating') throw new StorageError('aborted', `${resource} is still being created`, { resource });
    throw new StorageError('not_found', `${resource} was deleted`, { resource });
  }
}
