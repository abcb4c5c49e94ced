/**
 * Rights that belong to principals do not go with a bucket. They are taken away, and the store goes by that, before the name is
 * free: whoever has it next must not find them. So they are taken from a bucket that was seen empty; one that is filled before
 * everybody is refused gives them back.
 */
import type { Grant } from '#backends/object-backend';
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

export const readHolders = (tx: Tx, operation: LeasedOperation): Promise<Holder[]> =>
  tx.query<Holder>(HOLDERS, rowOf(operation));

export function takeRights<Request extends { deletePolicy: 'retain' | 'purge'; wasReady: boolean }>({
  backends,
  secrets,
}: AccessNeeds): Step<{ holders: readonly Holder[] }, Request> {
  return {
    name: 'rights',
    where: 'rightsOfPrincipals',
    calls: ['isBucketEmpty', 'putGrants', 'isInForce'],
    portioned: true,
    async run({ holders }, context) {
      const { operation, progress, call } = context;
      const backend = await backends.open(operation.tenantId, operation.backendId);
      if (!backend.traits().rightsOfPrincipals || holders.length === 0) return undefined;
      const { deletePolicy, wasReady } = operation.request;
      const ref = bucketRef(operation);
      const put = (uid: string, grants: readonly Grant[]) =>
        call('putGrants', signal => backend.putGrants(ref, grants, signal, [uid]));
      const giveBack = async () => {
        for (const { uid, mode } of holders)
          try {
            if (mode !== null) await put(uid, [{ uid, mode }]);
          } catch (error) {
            // The user is gone.
            if (!isStorageError(error) || error.kind !== 'not_found') throw error;
          }
      };
      if (deletePolicy === 'retain' && !(await call('isBucketEmpty', signal => backend.isBucketEmpty(ref, signal)))) {
        if (progress.rightsTaken === true) await giveBack();
        throw notEmpty(ref.name, wasReady);
      }
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
      return undefined;
    },
  };
}

const stillOpen = (name: string): StorageError =>
  new StorageError(
    'failed_precondition',
    `the object store goes on letting holders of accesses into bucket ${name}: take away the groups and policies that Trivet did not give to their users`,
    { resource: `bucket ${name}` },
  );
