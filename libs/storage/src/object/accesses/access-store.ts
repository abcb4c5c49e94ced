import type { AccessMode, Grant } from '#backends/object-backend';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { Endpoint } from '#storage/object/endpoint';
import type { DesiredAccess } from '#storage/shared/desired-state';

export type AccessState = 'granting' | 'ready' | 'revoking' | 'gone';

/** `id` is null when no such access lives. */
export interface FoundAccess {
  serves: boolean;
  id: string | null;
  accountId: string;
  state: AccessState;
  fingerprint: Buffer;
  activeOperation: string | null;
  stale: boolean;
  sealed: Buffer | null;
}

export interface AccessRow {
  id: string;
  name: string;
  accountId: string;
  state: AccessState;
  fingerprint: Buffer;
  activeOperation: string | null;
  stale: boolean;
  desired: DesiredAccess;
}

/** When the key of what is desired is to be changed, counted from now; null: never by itself. */
export const ROTATE_AT = "now() + (desired #>> '{rotation,afterSeconds}')::bigint * interval '1 second'";

const FIND = sql(
  'access_find',
  `SELECT serves, id, account_id AS "accountId", state, fingerprint, active_operation AS "activeOperation",
          stale, sealed
     FROM trivet.find_access($1, $2, $3)`,
);
const FIND_AT = sql(
  'access_find_at',
  `SELECT true AS serves, a.id, a.account_id AS "accountId", a.state, a.fingerprint,
          a.active_operation AS "activeOperation", a.stale, a.desired, s.sealed
     FROM trivet.access a
     LEFT JOIN trivet.secret s
       ON s.tenant_id = a.tenant_id AND s.owner_table = 'access' AND s.owner_id = a.id AND s.name = 'credentials'
    WHERE a.tenant_id = $1 AND a.backend_id = $2 AND a.name = $3 AND a.state <> 'gone'`,
);
const SERVES = sql(
  'access_serves',
  `SELECT t.state = 'active' AND e.state = 'active' AS serves
     FROM trivet.endpoint e JOIN trivet.tenant t ON t.id = e.tenant_id
    WHERE e.tenant_id = $1 AND e.id = $2`,
);
const COLUMNS = `id, name, account_id AS "accountId", state, fingerprint, active_operation AS "activeOperation",
          stale OR coalesce(renew_at <= now(), false) AS stale, desired`;
const LOCK = sql(
  'access_lock',
  `SELECT ${COLUMNS} FROM trivet.access
    WHERE tenant_id = $1 AND backend_id = $2 AND name = $3 AND state <> 'gone' FOR UPDATE`,
);
const LOCK_ACCOUNT = sql(
  'access_lock_account',
  `SELECT ${COLUMNS} FROM trivet.access
    WHERE tenant_id = $1 AND backend_id = $2 AND account_id = $3 AND state <> 'gone' FOR UPDATE`,
);
const INSERT = sql(
  'access_insert',
  `WITH claimed AS (
     INSERT INTO trivet.access (tenant_id, id, backend_id, name, account_id, state, desired, fingerprint, active_operation,
                                rotate_at, renew_at)
     SELECT $1, $2, $3, $4, $5, 'granting', desired, $7, $8, ${ROTATE_AT},
            CASE WHEN desired #>> '{expiry,afterSeconds}' IS NOT NULL THEN now() END FROM (SELECT $6::jsonb AS desired) asked
     ON CONFLICT (tenant_id, backend_id, name) WHERE state <> 'gone' DO NOTHING
     RETURNING id
   ), sealed AS (
     INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed)
     SELECT $1, 'access', id, 'credentials', $9 FROM claimed WHERE $9::bytea IS NOT NULL
   )
   SELECT id FROM claimed`,
);
const SET_STATE = sql(
  'access_set_state',
  `UPDATE trivet.access SET state = $3, active_operation = $4, updated_at = now() WHERE tenant_id = $1 AND id = $2`,
);
const RESOLVE = sql(
  'access_resolve_buckets',
  `SELECT id, name FROM trivet.bucket
    WHERE tenant_id = $1 AND backend_id = $2 AND name = ANY ($3) AND state IN ('creating', 'ready')
    ORDER BY id FOR SHARE`,
);
/**
 * What an access has already it keeps while it waits to be healed: others write the same policies meanwhile. What leaves
 * it with a bucket that is let go of, it wants again.
 */
const WANT = sql(
  'access_want_grants',
  `INSERT INTO trivet.bucket_grant (tenant_id, access_id, bucket_id, mode, state)
   SELECT $1, $2, bucket, mode, 'wanted' FROM unnest($3::uuid[], $4::text[]) AS wanted (bucket, mode)
   ON CONFLICT (tenant_id, access_id, bucket_id) DO UPDATE SET state = 'wanted' WHERE bucket_grant.state = 'removing'`,
);
const COUNT = sql(
  'access_count_grants',
  `SELECT g.bucket_id AS "bucketId", CASE g.state WHEN 'revoked' THEN 'revoked' ELSE g.mode END AS mode,
          sum(coalesce(cardinality(a.signed_as), 1))::int AS n
     FROM trivet.bucket_grant g JOIN trivet.access a ON a.tenant_id = g.tenant_id AND a.id = g.access_id
    WHERE g.tenant_id = $1 AND g.bucket_id = ANY ($2) AND g.state <> 'removing' AND g.access_id IS DISTINCT FROM $3
    GROUP BY 1, 2`,
);
const GRANTED = sql(
  'access_granted_buckets',
  `SELECT g.bucket_id AS id, b.name, g.state = 'revoked' AS revoked
     FROM trivet.bucket_grant g
     JOIN trivet.bucket b ON b.tenant_id = g.tenant_id AND b.id = g.bucket_id
    WHERE g.tenant_id = $1 AND g.access_id = $2 ORDER BY g.bucket_id`,
);

/** Whose access, and where. */
export type AccessOwner = Pick<Endpoint, 'tenantId' | 'backendId'>;

/** For calls that have no fast path which tells. */
export async function servesAccesses(tx: Tx, endpoint: Endpoint): Promise<boolean | undefined> {
  const [row] = await tx.query<{ serves: boolean }>(SERVES, [endpoint.tenantId, endpoint.id]);
  return row?.serves;
}

export async function findAccess(
  database: Database,
  endpoint: Endpoint,
  name: string,
): Promise<FoundAccess | undefined> {
  const [row] = await database.call<FoundAccess>(FIND, [endpoint.tenantId, endpoint.id, name]);
  return row;
}

/** Where no endpoint says whether it serves. */
export async function findAccessAt(
  database: Database,
  { tenantId, backendId }: AccessOwner,
  name: string,
): Promise<(FoundAccess & { desired: DesiredAccess }) | undefined> {
  const find = (tx: Tx) => tx.query<FoundAccess & { desired: DesiredAccess }>(FIND_AT, [tenantId, backendId, name]);
  const [row] = await database.withTenant(tenantId, find);
  return row;
}

export async function lockAccess(tx: Tx, endpoint: AccessOwner, name: string): Promise<AccessRow | undefined> {
  const [row] = await tx.query<AccessRow>(LOCK, [endpoint.tenantId, endpoint.backendId, name]);
  return row;
}

export async function lockAccount(tx: Tx, endpoint: AccessOwner, accountId: string): Promise<AccessRow | undefined> {
  const [row] = await tx.query<AccessRow>(LOCK_ACCOUNT, [endpoint.tenantId, endpoint.backendId, accountId]);
  return row;
}

/** Claims the name together with its sealed credentials, where there are any yet; false when it lives already. */
export async function insertAccess(
  tx: Tx,
  endpoint: AccessOwner,
  access: {
    id: string;
    name: string;
    accountId: string;
    desired: DesiredAccess;
    fingerprint: Buffer;
    operationId: string;
    sealed: Buffer | null;
  },
): Promise<boolean> {
  const rows = await tx.query(INSERT, [
    endpoint.tenantId,
    access.id,
    endpoint.backendId,
    access.name,
    access.accountId,
    JSON.stringify(access.desired),
    access.fingerprint,
    access.operationId,
    access.sealed,
  ]);
  return rows.length === 1;
}

export async function setAccessState(
  tx: Tx,
  endpoint: AccessOwner,
  accessId: string,
  state: AccessState,
  operationId: string | null,
): Promise<void> {
  await tx.query(SET_STATE, [endpoint.tenantId, accessId, state, operationId]);
}

export function resolveBuckets(tx: Tx, endpoint: AccessOwner, names: readonly string[]) {
  return tx.query<{ id: string; name: string }>(RESOLVE, [endpoint.tenantId, endpoint.backendId, names]);
}

export async function wantGrants(
  tx: Tx,
  endpoint: AccessOwner,
  accessId: string,
  grants: readonly { bucketId: string; mode: AccessMode }[],
): Promise<void> {
  const ids = grants.map(grant => grant.bucketId);
  await tx.query(WANT, [endpoint.tenantId, accessId, ids, grants.map(grant => grant.mode)]);
}

/** Of all accesses but one, if it is given; each counts as often as it has names that signatures open the bucket under. */
export function countGrants(tx: Tx, endpoint: AccessOwner, bucketIds: readonly string[], exceptOf: string | undefined) {
  const params = [endpoint.tenantId, bucketIds, exceptOf ?? null];
  return tx.query<{ bucketId: string; mode: Grant['mode']; n: number }>(COUNT, params);
}

/** Every bucket that an access has a row for, those with a lasting Deny included. */
export function grantedBuckets(tx: Tx, endpoint: AccessOwner, accessId: string) {
  return tx.query<{ id: string; name: string; revoked: boolean }>(GRANTED, [endpoint.tenantId, accessId]);
}
