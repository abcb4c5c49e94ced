import type { AccessMode, ObjectProtocol, ServiceAccount } from '#backends/object-backend';
import type { Database, Tx } from '#platform/database/database';
import {
  containing,
  ListQuery,
  orderOf,
  type PageOf,
  type PageRequest,
  readPage,
  type Sort,
} from '#platform/database/keyset';
import type { AccessState } from '#storage/object/accesses/access-store';
import { nameAtStore } from '#storage/object/places';

/** Without its keys. */
export interface ListedAccess {
  id: string;
  name: string;
  backendId: string;
  backend: string;
  accountId: string;
  state: Exclude<AccessState, 'gone'>;
  stale: boolean;
  /** By a person, who may be told its key. */
  issued: boolean;
  protocol: ObjectProtocol;
  /** Who comes in without a key, and as what; null: it has one. */
  serviceAccount: (ServiceAccount & { as: string }) | null;
  grants: { bucket: string; mode: AccessMode; state: string }[];
  activeOperation: string | null;
  /** What changes its keys. */
  keyOperation: string | null;
  formerUntil: Date | null;
  rotateAt: Date | null;
  /** When what it opens ends by itself. */
  expiresAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  /** As Postgres writes it: another one after each change. */
  version: string;
}

const SELECT = `SELECT a.id, a.name, a.backend_id AS "backendId", b.name AS backend, a.account_id AS "accountId", a.state, a.stale,
    a.desired ? 'issued' AS issued, a.desired ->> 'protocol' AS protocol,
    a.desired -> 'serviceAccount' AS "serviceAccount", b.kind AS "backendKind",
    CASE WHEN a.desired ? 'serviceAccount' THEN b.config END AS config,
    (SELECT coalesce(json_agg(json_build_object('bucket', t.name, 'mode', g.mode, 'state', g.state) ORDER BY t.name), '[]')
       FROM trivet.bucket_grant g JOIN trivet.bucket t ON t.tenant_id = g.tenant_id AND t.id = g.bucket_id
      WHERE g.tenant_id = a.tenant_id AND g.access_id = a.id) AS grants,
    a.active_operation AS "activeOperation", a.key_operation AS "keyOperation", a.former_until AS "formerUntil",
    a.rotate_at AS "rotateAt", a.expires_at AS "expiresAt", a.created_at AS "createdAt", a.updated_at AS "updatedAt",
    a.updated_at::text AS version
  FROM trivet.access a JOIN trivet.backend b ON b.tenant_id = a.tenant_id AND b.id = a.backend_id`;

interface Row extends Omit<ListedAccess, 'serviceAccount'> {
  serviceAccount: ServiceAccount | null;
  backendKind: string;
  config: unknown;
}

function listed({ serviceAccount, backendKind, config, ...row }: Row): ListedAccess {
  const as = serviceAccount && nameAtStore(backendKind, config, row.accountId);
  return { ...row, serviceAccount: serviceAccount && { ...serviceAccount, as: as ?? row.accountId } };
}

const id = { sql: 'a.id', type: 'uuid' } as const;
const COLUMNS = {
  name: [{ sql: '(a.name COLLATE "C")', type: 'text' }, id],
  // Ids are drawn in the order of time: the primary key is the index.
  createdAt: [id],
} as const;

export function listAccesses(
  database: Database,
  tenantId: string,
  {
    bucketId,
    search,
    authentication,
    sort,
  }: { bucketId?: string; search?: string; authentication?: string; sort: Sort<keyof typeof COLUMNS> },
  request: PageRequest,
): Promise<PageOf<ListedAccess>> {
  const query = living(tenantId)
    .where(
      `a.id IN (SELECT g.access_id FROM trivet.bucket_grant g WHERE g.tenant_id = a.tenant_id AND g.bucket_id = ?)`,
      bucketId,
    )
    .where('a.name ILIKE ?', containing(search))
    .where("a.desired ->> 'authentication' = ?", authentication);
  return database.withTenant(tenantId, async tx => {
    const { rows, ...page } = await readPage<Row>(tx, query, SELECT, orderOf(COLUMNS, sort), request);
    return { ...page, rows: rows.map(listed) };
  });
}

export async function readAccess(tx: Tx, tenantId: string, accessId: string): Promise<ListedAccess | undefined> {
  const query = living(tenantId).where('a.id = ?', accessId);
  const { rows } = await readPage<Row>(tx, query, SELECT, { columns: [id] }, { limit: 1 });
  return rows[0] && listed(rows[0]);
}

const living = (tenantId: string): ListQuery =>
  new ListQuery().where('a.tenant_id = ?', tenantId).where("a.state <> 'gone'");
