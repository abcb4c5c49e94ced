import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isUuid } from '#platform/uuid';
import type { HostRequest, HostView } from '#storage/block/block-storage';

export interface HostRow {
  id: string;
  uuid: string;
  name: string;
  iqns: string[];
  wwpns: string[];
  nqns: string[];
  networks: string[];
  chapUser: string | null;
  accessProtocol: string | null;
  virtualDomain: string | null;
  /** A person made it known, and no driver changes it. */
  byPerson: boolean;
  /** Sealed CHAP password. */
  sealed: Buffer | null;
}

const COLUMNS = `h.id, h.uuid, h.name, h.iqns, h.wwpns, h.nqns, h.networks, h.chap_user AS "chapUser",
  h.access_protocol AS "accessProtocol", h.virtual_domain AS "virtualDomain", h.by_person AS "byPerson",
  (SELECT s.sealed FROM trivet.secret s
    WHERE s.tenant_id = h.tenant_id AND s.owner_table = 'host' AND s.owner_id = h.id AND s.name = 'chap') AS sealed`;

/** Callers name a host by its uuid, or by the id that we gave it. */
const FIND = sql(
  'host_find',
  `SELECT ${COLUMNS} FROM trivet.host h WHERE h.tenant_id = $1 AND (h.uuid = $2 OR h.id = $3::uuid)`,
);
const LOCK = sql(
  'host_lock',
  `SELECT ${COLUMNS} FROM trivet.host h WHERE h.tenant_id = $1 AND h.uuid = $2 FOR UPDATE OF h`,
);
const LIST = sql(
  'host_list',
  `SELECT ${COLUMNS} FROM trivet.host h WHERE h.tenant_id = $1 AND ($2::text IS NULL OR h.uuid = $2) ORDER BY h.name, h.uuid`,
);
const SAME_ACCOUNT = sql(
  'host_same_account',
  `SELECT ${COLUMNS} FROM trivet.host h WHERE h.tenant_id = $1 AND h.chap_user = $2 AND h.uuid <> $3`,
);
const INSERT = sql(
  'host_insert',
  `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks, chap_user, access_protocol, virtual_domain,
                            by_person)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
   ON CONFLICT (tenant_id, uuid) DO NOTHING RETURNING id`,
);
const UPDATE = sql(
  'host_update',
  `UPDATE trivet.host SET name = $3, iqns = $4, wwpns = $5, nqns = $6, networks = $7, chap_user = $8, access_protocol = $9,
          virtual_domain = $10, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
const PUT_CHAP = sql(
  'host_put_chap',
  `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'host', $2, 'chap', $3)
   ON CONFLICT (tenant_id, owner_table, owner_id, name) DO UPDATE SET sealed = excluded.sealed`,
);
const DROP_CHAP = sql(
  'host_drop_chap',
  `DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'host' AND owner_id = $2 AND name = 'chap'`,
);

export async function findHost(tx: Tx, tenantId: string, uuidOrId: string): Promise<HostRow | undefined> {
  const rows = await tx.query<HostRow>(FIND, [tenantId, uuidOrId, isUuid(uuidOrId) ? uuidOrId : null]);
  return rows.find(row => row.uuid === uuidOrId) ?? rows[0];
}

export async function lockHost(tx: Tx, tenantId: string, uuid: string): Promise<HostRow | undefined> {
  const [row] = await tx.query<HostRow>(LOCK, [tenantId, uuid]);
  return row;
}

export const listHosts = (tx: Tx, tenantId: string, uuid: string | undefined): Promise<HostRow[]> =>
  tx.query<HostRow>(LIST, [tenantId, uuid ?? null]);

export const hostsOfAccount = (tx: Tx, tenantId: string, user: string, exceptUuid: string): Promise<HostRow[]> =>
  tx.query<HostRow>(SAME_ACCOUNT, [tenantId, user, exceptUuid]);

const optional = (request: HostRequest) => [
  request.chap?.user ?? null,
  request.accessProtocol ?? null,
  request.virtualDomain ?? null,
];

/** False: another call was faster. */
export async function insertHost(
  tx: Tx,
  tenantId: string,
  { id, byPerson }: Pick<HostRow, 'id' | 'byPerson'>,
  request: HostRequest,
): Promise<boolean> {
  const { uuid, name, iqns, wwpns, nqns, networks } = request;
  const values = [tenantId, id, uuid, name, iqns, wwpns, nqns, networks, ...optional(request), byPerson];
  const rows = await tx.query(INSERT, values);
  return rows.length === 1;
}

export async function updateHost(tx: Tx, tenantId: string, id: string, request: HostRequest): Promise<void> {
  const { name, iqns, wwpns, nqns, networks } = request;
  await tx.query(UPDATE, [tenantId, id, name, iqns, wwpns, nqns, networks, ...optional(request)]);
}

export async function putChap(tx: Tx, tenantId: string, id: string, sealed: Buffer | undefined): Promise<void> {
  if (sealed) await tx.query(PUT_CHAP, [tenantId, id, sealed]);
  else await tx.query(DROP_CHAP, [tenantId, id]);
}

export const hostView = (row: HostRow): HostView => ({
  id: row.uuid,
  uuid: row.uuid,
  name: row.name,
  iqns: row.iqns,
  wwpns: row.wwpns,
  nqns: row.nqns,
  networks: row.networks,
  chapUser: row.chapUser ?? undefined,
  accessProtocol: row.accessProtocol ?? undefined,
  virtualDomain: row.virtualDomain ?? undefined,
});

export const chapPlace = (tenantId: string, hostId: string) => ({
  tenantId,
  table: 'host',
  rowId: hostId,
  column: 'chap',
});
