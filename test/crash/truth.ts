import { decodeSealed } from '#platform/crypto/secrets';
import type { TestAppliance } from '#test/support/appliance';
import { wrongTallies } from '#test/support/tallies';

interface BucketRow {
  tenant_id: string;
  id: string;
  name: string;
  origin: 'created' | 'registered';
  state: string;
  active_operation: string | null;
}

interface AccessRow {
  tenant_id: string;
  id: string;
  name: string;
  account_id: string;
  state: string;
  active_operation: string | null;
  /** Its keys, by their names. */
  keys: Record<string, string>;
  key_operation: string | null;
  signed_as: string[] | null;
}

interface PromisedKey {
  accessKeyId: string;
  secretAccessKey: string;
  token?: string;
  signedAs?: string;
}

/** What Postgres promises and the store holds; two of them are equal when nothing is lost, doubled or left behind. */
interface Holdings {
  buckets: string[];
  principals: string[];
  grants: string[];
}

/**
 * Compares Postgres with the store itself after everything has ended. Empty: each bucket that is promised exists once
 * with its own incarnation, each account with exactly its promised key, each grant exactly; and nothing else does.
 */
export async function mismatches(appliance: TestAppliance): Promise<string[]> {
  const { database } = appliance;
  const open = await database.query<{ kind: string; resource_name: string; state: string; error: unknown }>(
    "SELECT kind, resource_name, state, error FROM trivet.operation WHERE finished_at IS NULL OR state IN ('pending', 'running')",
  );
  const problems = open.map(o => `${o.kind} ${o.resource_name} is ${o.state}: ${JSON.stringify(o.error)}`);
  const left = await database.query<{ what: string }>(
    `SELECT 'slot of ' || operation_id AS what FROM trivet.operation_slot
      UNION ALL SELECT 'grant of a gone access ' || a.name FROM trivet.bucket_grant g JOIN trivet.access a ON a.id = g.access_id
                 WHERE a.state = 'gone'
      UNION ALL SELECT 'grant on a gone bucket ' || b.name FROM trivet.bucket_grant g JOIN trivet.bucket b ON b.id = g.bucket_id
                 WHERE b.state = 'gone'
      UNION ALL SELECT 'secret of ' || owner_id FROM trivet.secret s
                 WHERE owner_table = 'access'
                   AND NOT EXISTS (SELECT FROM trivet.access a WHERE a.id = s.owner_id AND a.state <> 'gone')`,
  );
  problems.push(...left.map(({ what }) => `${what} is left`));
  problems.push(...(await wrongTallies(database)));
  const [promised, held] = [await promises(appliance, problems), holdings(appliance)];
  for (const part of ['buckets', 'principals', 'grants'] as const) {
    const [theirs, ours] = [new Set(held[part]), new Set(promised[part])];
    problems.push(...promised[part].filter(one => !theirs.has(one)).map(one => `promised but not there: ${one}`));
    problems.push(...held[part].filter(one => !ours.has(one)).map(one => `there but not promised: ${one}`));
  }
  return problems;
}

async function promises(appliance: TestAppliance, problems: string[]): Promise<Holdings> {
  const { database, secrets } = appliance;
  const buckets = await database.query<BucketRow>("SELECT * FROM trivet.bucket WHERE state <> 'gone' ORDER BY name");
  const accesses = await database.query<AccessRow>(
    `SELECT a.*, (SELECT json_object_agg(s.name, encode(s.sealed, 'base64')) FROM trivet.secret s
                   WHERE s.tenant_id = a.tenant_id AND s.owner_table = 'access' AND s.owner_id = a.id) AS keys
       FROM trivet.access a WHERE a.state <> 'gone'`,
  );
  for (const row of [...buckets, ...accesses])
    if (row.state !== 'ready' || row.active_operation !== null)
      problems.push(`${row.name} is ${row.state}, active ${row.active_operation}`);
  for (const row of accesses)
    if (row.key_operation !== null || row.keys.next) problems.push(`the keys of ${row.name} are still being changed`);
  const grants = await database.query<{ bucket: string; uid: string; mode: string; state: string }>(
    `SELECT b.name AS bucket, named.uid, g.state, CASE g.state WHEN 'revoked' THEN 'revoked' ELSE g.mode END AS mode
       FROM trivet.bucket_grant g JOIN trivet.bucket b ON b.id = g.bucket_id JOIN trivet.access a ON a.id = g.access_id
            CROSS JOIN unnest(coalesce(a.signed_as, ARRAY[a.account_id])) AS named (uid)`,
  );
  for (const grant of grants)
    if (grant.state !== 'applied' && grant.state !== 'revoked')
      problems.push(`grant of ${grant.uid} on ${grant.bucket} is ${grant.state}`);
  return {
    buckets: buckets.filter(row => row.origin === 'created').map(row => bucketText(row.name, row.id, 1)),
    principals: accesses.flatMap(row => {
      const keys = Object.entries(row.keys).map(([column, sealed]) => {
        const place = { tenantId: row.tenant_id, table: 'access', rowId: row.id, column };
        return JSON.parse(secrets.openText(decodeSealed(Buffer.from(sealed, 'base64')), place)) as PromisedKey;
      });
      const signed = keys.flatMap(({ token, signedAs = row.account_id }) => (token === undefined ? [] : [signedAs]));
      if (signed.length === 0) return [principalText(row.account_id, keys.map(keyText))];
      const names = row.signed_as ?? [row.account_id];
      if (signed.toSorted().join() !== names.toSorted().join())
        problems.push(`${row.name} has signatures under ${signed.join()}, and stands under ${names.join()}`);
      return [];
    }),
    grants: grants.map(grantText),
  };
}

function holdings({ fake }: TestAppliance): Holdings {
  return {
    buckets: fake!
      .buckets()
      .filter(bucket => bucket.owner !== 'foreign')
      .map(bucket => bucketText(bucket.name, bucket.incarnation, bucket.configured)),
    principals: fake!.principals().map(({ uid, keys }) => principalText(uid, keys.map(keyText))),
    grants: fake!.allGrants().map(grantText),
  };
}

const keyText = (key: { accessKeyId: string; secretAccessKey: string }): string =>
  `${key.accessKeyId}:${key.secretAccessKey}`;
const principalText = (uid: string, keys: readonly string[]): string => `${uid} with ${keys.toSorted().join(', ')}`;
const bucketText = (name: string, incarnation: string | null, configured: number): string =>
  `bucket ${name} of ${incarnation}, configured ${configured}`;
const grantText = ({ bucket, uid, mode }: { bucket: string; uid: string; mode: string }): string =>
  `${uid} ${mode} on ${bucket}`;
