/** How changes of the key of an access begin: asked for, or because their time has come. */
import type { Begin } from '#operations/accepting/operations';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { type AccessOwner, type AccessRow, grantedBuckets, ROTATE_AT } from '#storage/object/accesses/access-store';
import { retireKey } from '#storage/object/accesses/retire-key';
import { rotateAccess } from '#storage/object/accesses/rotate-access';

export interface KeyState {
  /** What changes its keys now. */
  operation: string | null;
  /** The grace of that, in seconds; null: it ends the former key, and gives no other. */
  operationGrace: number | null;
  formerUntil: Date | null;
  formerEnds: boolean;
  rotates: boolean;
  /** The change waits for an operator. */
  parked: boolean;
  /** What it opens has ended by itself. */
  ended: Date | null;
  backendKind: string;
}

const READ = sql(
  'access_read_keys',
  `SELECT a.key_operation AS operation, (o.request ->> 'graceSeconds')::int AS "operationGrace", a.former_until AS "formerUntil", b.kind AS "backendKind",
          coalesce(o.state = 'needs_attention', false) AS parked,
          coalesce(a.former_until <= now(), false) AS "formerEnds", coalesce(a.rotate_at <= now(), false) AS rotates,
          CASE WHEN a.expires_at <= now() THEN a.expires_at END AS ended
     FROM trivet.access a JOIN trivet.backend b ON b.tenant_id = a.tenant_id AND b.id = a.backend_id
     LEFT JOIN trivet.operation o ON o.tenant_id = a.tenant_id AND o.id = a.key_operation
    WHERE a.tenant_id = $1 AND a.id = $2`,
);
const BEGIN = sql(
  'access_begin_key_change',
  'UPDATE trivet.access SET key_operation = $3, updated_at = now() WHERE tenant_id = $1 AND id = $2',
);

const POSTPONE = sql(
  'access_postpone_rotation',
  `UPDATE trivet.access SET rotate_at = ${ROTATE_AT}, updated_at = now() WHERE tenant_id = $1 AND id = $2`,
);

/** Nobody has what is to be changed: it has ended. Counted anew. */
export const postponeRotation = (tx: Tx, { tenantId }: Place, { id }: AccessRow) => tx.query(POSTPONE, [tenantId, id]);

/** Of an access that is locked. */
export async function readKeys(tx: Tx, tenantId: string, accessId: string): Promise<KeyState> {
  const [row] = await tx.query<KeyState>(READ, [tenantId, accessId]);
  return row!;
}

type Place = AccessOwner & { operationId: string };

export async function beginRotation(
  tx: Tx,
  begin: Begin,
  place: Place,
  row: AccessRow,
  graceSeconds: number,
): Promise<void> {
  const resources = await claim(tx, place, row);
  const after = { graceSeconds };
  await begin(rotateAccess, {
    resourceId: row.id,
    resourceName: row.name,
    after,
    request: { resources, graceSeconds },
  });
}

export async function beginRetirement(tx: Tx, begin: Begin, place: Place, row: AccessRow): Promise<void> {
  const resources = await claim(tx, place, row);
  await begin(retireKey, { resourceId: row.id, resourceName: row.name, request: { resources } });
}

async function claim(tx: Tx, place: Place, row: AccessRow): Promise<string[]> {
  await tx.query(BEGIN, [place.tenantId, row.id, place.operationId]);
  return (await grantedBuckets(tx, place, row.id)).map(({ id }) => id);
}
