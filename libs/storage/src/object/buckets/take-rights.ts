/**
 * Rights that belong to principals do not go with a bucket. They are taken away, and the store goes by that, before the name is
 * free: whoever has it next must not find them. So they are taken from a bucket that was seen empty; one that is filled before
 * everybody is refused gives them back. Who has no key cannot be asked for: there it is waited for a fixed time.
 */
import { type Grant, KEYLESS } from '#backends/object-backend';
import type { Step } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import { bucketRef, notEmpty, rowOf } from '#storage/object/buckets/bucket-work';
import { type AccessNeeds, openCredentials } from '#storage/object/rights/credentials';
import { untilInForce } from '#storage/object/rights/until-in-force';

/** Of an access to the bucket. */
export interface Holder {
  accessId: string;
  uid: string;
  /** What it has there by what is recorded; null: nothing, or nothing yet. */
  mode: Grant['mode'] | null;
  sealed: Buffer | null;
}

const HOLDERS = sql(
  'bucket_holders',
  `SELECT a.id AS "accessId", a.account_id AS uid, s.sealed,
          CASE g.state WHEN 'applied' THEN g.mode WHEN 'revoked' THEN 'revoked' END AS mode
     FROM trivet.bucket_grant g
     JOIN trivet.access a ON a.tenant_id = g.tenant_id AND a.id = g.access_id
     LEFT JOIN trivet.secret s ON s.tenant_id = a.tenant_id AND s.owner_table = 'access' AND s.owner_id = a.id
                              AND s.name = 'credentials'
    WHERE g.tenant_id = $1 AND g.bucket_id = $2
    ORDER BY a.account_id`,
);

/** Accesses without a key that went a moment ago, whichever buckets they had: one may have been taken from them before. Their revocation was not waited for. */
const SINCE_KEYLESS = sql(
  'bucket_since_keyless',
  `SELECT extract(epoch FROM now())::float8 * 1000 AS "now",
          extract(epoch FROM now() - max(updated_at))::float8 * 1000 AS "keylessGoneMs"
     FROM trivet.access
    WHERE tenant_id = $1 AND state = 'gone' AND updated_at > now() - interval '10 minutes' AND desired ? 'serviceAccount'
      AND backend_id = $2`,
);

/** Who had rights, and by the database's clock: since when nobody has any who has no key. */
export interface Holding {
  holders: readonly Holder[];
  /** Milliseconds since the epoch, at the beginning of this attempt. */
  now: number;
  /** Of this process, at the same moment. */
  readAt: number;
  /** null: none has gone. */
  keylessGoneMs: number | null;
}

export async function readHolding(tx: Tx, operation: LeasedOperation): Promise<Holding> {
  const holders = await tx.query<Holder>(HOLDERS, rowOf(operation));
  const since = [operation.tenantId, operation.backendId];
  const [row] = await tx.query<{ now: number; keylessGoneMs: number | null }>(SINCE_KEYLESS, since);
  return { holders, ...row!, readAt: performance.now() };
}

export function takeRights<Request extends { deletePolicy: 'retain' | 'purge'; wasReady: boolean }>({
  backends,
  secrets,
}: AccessNeeds): Step<Holding, Request> {
  return {
    name: 'rights',
    where: 'rightsOfPrincipals',
    calls: ['isBucketEmpty', 'putGrants', 'isInForce'],
    portioned: true,
    async run({ holders, ...since }, context) {
      const { operation, progress, call } = context;
      const backend = await backends.open(operation.tenantId, operation.backendId);
      const { rightsOfPrincipals, keylessLateMs = 0 } = backend.traits();
      if (!rightsOfPrincipals || (holders.length === 0 && since.keylessGoneMs === null)) return undefined;
      const now = () => since.now + performance.now() - since.readAt;
      const { deletePolicy, wasReady } = operation.request;
      const ref = bucketRef(operation);
      const put = (uid: string, grants: readonly Grant[]) =>
        call('putGrants', signal => backend.putGrants(ref, grants, signal, [uid]));
      const giveBack = async () => {
        delete progress.rightsTakenAt;
        for (const { uid, mode } of holders)
          try {
            if (mode !== null) await put(uid, [{ uid, mode }]);
          } catch (error) {
            // The user is gone.
            if (!isStorageError(error) || error.kind !== 'not_found') throw error;
          }
      };
      if (deletePolicy === 'retain' && !(await call('isBucketEmpty', signal => backend.isBucketEmpty(ref, signal)))) {
        if (progress.rightsTakenAt !== undefined) {
          // Forgotten first: whoever takes them again waits from then on.
          delete progress.rightsTakenAt;
          return 'again';
        }
        if (progress.rightsTaken === true) await giveBack();
        throw notEmpty(ref.name, wasReady);
      }
      // Who goes after that has no rights here: it is among the holders, or lost the bucket before.
      progress.firstLookAt ??= since.now;
      if (since.keylessGoneMs !== null)
        requireSince(Math.min(since.now - since.keylessGoneMs, Number(progress.firstLookAt)), now(), keylessLateMs);
      if (holders.length === 0) return undefined;
      if (progress.rightsTaken !== true) {
        // Committed first: who takes over knows that there is something to give back.
        progress.rightsTaken = true;
        return 'again';
      }
      for (const { uid } of holders) await put(uid, []);
      const questions = holders.flatMap(({ accessId, sealed }) => {
        // Nobody knows a key that is not kept.
        if (!sealed) return [];
        const key = openCredentials(secrets, operation.tenantId, accessId, sealed);
        return [{ key, expected: [{ bucket: ref.name, mode: 'revoked' as const }] }];
      });
      await untilInForce(backend, questions, context, async () => {
        await giveBack();
        return stillOpen(ref.name);
      });
      if (holders.some(({ uid }) => uid.startsWith(KEYLESS))) {
        progress.rightsTakenAt ??= now();
        requireSince(Number(progress.rightsTakenAt), now(), keylessLateMs);
      }
      return undefined;
    },
  };
}

function requireSince(taken: number, now: number, lateMs: number): void {
  if (now - taken < lateMs)
    throw new StorageError(
      'aborted',
      `service accounts may have had rights here a moment ago, and the object store may go by them for ${lateMs / 1_000} seconds`,
    );
}

const stillOpen = (name: string): StorageError =>
  new StorageError(
    'failed_precondition',
    `the object store goes on letting holders of accesses into bucket ${name}: take away the groups and policies that Trivet did not give to their users`,
    { resource: `bucket ${name}` },
  );
