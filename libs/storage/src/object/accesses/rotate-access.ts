import { defineOperation } from '#operations/definitions/define-operation';
import { failureOf, type Handling, type Step } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import { encodeSealed, type SecretBox } from '#platform/crypto/secrets';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import { ROTATE_AT } from '#storage/object/accesses/access-store';
import {
  type AccessRequest,
  accessSlots,
  putPrincipal,
  readAccessOf,
  rowOf,
} from '#storage/object/accesses/access-work';
import { neverInForce, rightsOf } from '#storage/object/accesses/grant-access';
import {
  isSigned,
  known,
  putNames,
  RENEW_AT,
  SIGN_UNDER,
  SIGN_UNDER_NEXT,
  signedAnew,
  takeNames,
  withSignature,
} from '#storage/object/accesses/signatures';
import {
  type AccessCredentials,
  type AccessNeeds,
  credentialsPlace,
  type KeyName,
  newCredentials,
} from '#storage/object/rights/credentials';
import { untilInForce } from '#storage/object/rights/until-in-force';

export interface RotateAccessRequest extends AccessRequest {
  /** So long the key that was is let in after Grant answers the next one. */
  graceSeconds: number;
}

const KEEP_NEXT = sql(
  'access_keep_next_key',
  `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'access', $2, 'next', $3)
   ON CONFLICT (tenant_id, owner_table, owner_id, name) DO UPDATE SET sealed = EXCLUDED.sealed`,
);
const SWITCH = sql(
  'access_switch_keys',
  `WITH former AS (
     INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'access', $2, 'former', $5)
     ON CONFLICT (tenant_id, owner_table, owner_id, name) DO UPDATE SET sealed = EXCLUDED.sealed
   ), next AS (
     DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'access' AND owner_id = $2 AND name = 'next'
   ), current AS (
     UPDATE trivet.secret SET sealed = $4
      WHERE tenant_id = $1 AND owner_table = 'access' AND owner_id = $2 AND name = 'credentials'
   )
   UPDATE trivet.access
      SET key_operation = NULL, former_until = now() + $6 * interval '1 second', rotate_at = ${ROTATE_AT},
          renew_at = ${RENEW_AT},
          updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND key_operation = $3`,
);
/** By itself it is tried again in an hour. */
const NOT_ROTATED = sql(
  'access_not_rotated',
  `WITH next AS (
     DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'access' AND owner_id = $2 AND name = 'next'
   )
   UPDATE trivet.access
      SET key_operation = NULL, stale = stale OR $4, renew_at = ${RENEW_AT}, updated_at = now(),
          rotate_at = CASE WHEN rotate_at <= now() THEN now() + interval '1 hour' ELSE rotate_at END
    WHERE tenant_id = $1 AND id = $2 AND key_operation = $3`,
);

/**
 * Another key for an access: a second one beside the first, which Grant answers once the store lets it in. The first one stays
 * until its time is over, and then goes by an operation of its own (retire-key.ts). Until the switch is committed nobody has
 * heard of the new key, so whatever ends the operation before takes it away; afterwards nothing can fail any more.
 *
 * Where the store signs, both are names at the bucket (signatures.ts). With no grace the new one stands in place of the first, so
 * that it needs no room beside it. When they end is not changed: that is for who asks for the access again.
 */
export const rotateAccess = defineOperation('access.rotate', {
  resourceKind: 'access',
  class: 'fast',
  slots: (id, request: RotateAccessRequest) => accessSlots(id, request),
  carriedOut: (needs: AccessNeeds): Handling<AccessAtBackend, RotateAccessRequest> => ({
    begin: async (tx, operation) => {
      const work = await readAccessOf(tx, needs.secrets, operation);
      if (failureOf(operation)) {
        if (isSigned(work)) await tx.query(SIGN_UNDER, [...rowOf(operation), takeNames(work, known(work))]);
      } else if (!work.credentials) throw notKept(work.name);
      else if (work.next?.signedAs)
        await tx.query(signUnder(operation), [...rowOf(operation), takeNames(work, standing(operation, work))]);
      return work;
    },
    steps: [issueNext(needs), putBoth(needs), nextSigned(needs), letIn(needs)],
    undo: [takeNextAway(needs), putNames(needs, { grants: true })],
    succeed: (writer, operation, work) => {
      const keys = [
        sealedKey(needs.secrets, operation, work.next!, 'credentials'),
        sealedKey(needs.secrets, operation, work.credentials!, 'former'),
      ];
      writer.write(SWITCH, [...rowOf(operation), operation.id, ...keys, operation.request.graceSeconds]);
      return undefined;
    },
    fail: (writer, operation) => writer.write(NOT_ROTATED, [...rowOf(operation), operation.id, false]),
    giveUp: {
      leaves:
        'the key is the one that it was; a change without grace may have ended it already, until the next Grant. The store may have another one beside it, which nobody has and the next Grant takes away',
      write: (writer, operation) => writer.write(NOT_ROTATED, [...rowOf(operation), operation.id, true]),
    },
  }),
});

const notKept = (name: string): StorageError =>
  new StorageError('failed_precondition', `the key of access ${name} is not kept: revoke it, and grant it again`, {
    resource: `access ${name}`,
  });

/** Sealed and committed before it is used: a key whose secret was lost with a worker is taken away by the next step. */
function issueNext({ backends, secrets }: AccessNeeds): Step<AccessAtBackend, RotateAccessRequest> {
  return {
    name: 'key',
    where: 'issuesKeys',
    calls: ['issueKey'],
    portioned: true,
    run: async (work, { operation, call, write }) => {
      const backend = await backends.open(operation.tenantId, operation.backendId);
      work.traits = backend.traits();
      if (!work.traits.issuesKeys || work.next) return undefined;
      const { uid, credentials } = work;
      work.next = await call('issueKey', signal => backend.issueKey(uid, signal, credentials?.accessKeyId));
      write(KEEP_NEXT, [...rowOf(operation), sealedKey(secrets, operation, work.next, 'next')]);
      return 'again';
    },
  };
}

/**
 * Committed before the store hears of it, too, where it takes what is chosen. The new key is the one that must stand: the other
 * may be what somebody took away there.
 */
const putBoth = (needs: AccessNeeds): Step<AccessAtBackend, RotateAccessRequest> => ({
  ...putPrincipal(needs, ({ credentials, next }) => [next, credentials]),
  point: (writer, operation, work) => {
    if (work.next) return;
    work.next = newCredentials(work.traits!);
    if (work.traits!.signs) {
      work.next = signedAnew(work.uid, work.next);
      writer.write(signUnder(operation), [...rowOf(operation), takeNames(work, standing(operation, work))]);
    }
    writer.write(KEEP_NEXT, [...rowOf(operation), sealedKey(needs.secrets, operation, work.next, 'next')]);
  },
});

const signUnder = ({ request }: LeasedOperation<RotateAccessRequest>) =>
  request.graceSeconds > 0 ? SIGN_UNDER : SIGN_UNDER_NEXT;

/** What opens the buckets from now on, the one that is to come first. */
const standing = ({ request }: LeasedOperation<RotateAccessRequest>, { next, credentials }: AccessAtBackend) =>
  request.graceSeconds > 0 ? [next, credentials] : [next];

function nextSigned(needs: AccessNeeds): Step<AccessAtBackend, AccessRequest> {
  const step = putNames(needs, { grants: true });
  const run: typeof step.run = async (work, context) => {
    const again = await step.run(work, context);
    const { tenantId, backendId } = context.operation;
    work.next = withSignature(await needs.backends.open(tenantId, backendId), work, work.next!);
    return again;
  };
  return { ...step, run };
}

/** The store has what is kept, if that is anything. */
function takeNextAway(needs: AccessNeeds): Step<AccessAtBackend, RotateAccessRequest> {
  const step = putPrincipal(needs);
  return { ...step, run: async (work, context) => (work.credentials ? step.run(work, context) : undefined) };
}

const sealedKey = (
  secrets: SecretBox,
  { tenantId, resourceId }: LeasedOperation,
  key: AccessCredentials,
  name: KeyName,
): Buffer => encodeSealed(secrets.seal(JSON.stringify(key), credentialsPlace(tenantId, resourceId, name)));

function letIn({ backends }: AccessNeeds): Step<AccessAtBackend, RotateAccessRequest> {
  return {
    name: 'let-in',
    where: 'late',
    calls: ['isInForce'],
    run: async (work, context) => {
      const { tenantId, backendId } = context.operation;
      if (failureOf(context.operation) || !work.next) return undefined;
      const backend = await backends.open(tenantId, backendId);
      const questions = [{ key: work.next, expected: rightsOf(work) }];
      await untilInForce(backend, questions, context, () => neverInForce(work.name));
      return undefined;
    },
  };
}
