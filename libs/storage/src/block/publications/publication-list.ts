import type { Database, Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';

export interface ListedPublication {
  id: string;
  volumeId: string;
  volumeName: string;
  hostId: string;
  hostName: string;
  backendId: string;
  backendKind: string;
  accessProtocol: string;
  targetName: string;
  state: 'wanted' | 'applied' | 'removing';
  createdAt: Date;
}

const SELECT = `SELECT p.id, p.volume_id AS "volumeId", v.name AS "volumeName", p.host_id AS "hostId", h.name AS "hostName",
    v.backend_id AS "backendId", b.kind AS "backendKind", p.access_protocol AS "accessProtocol", p.state,
    v.target ->> 'name' AS "targetName", p.created_at AS "createdAt"
  FROM trivet.publication p
  JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
  JOIN trivet.backend b ON b.tenant_id = v.tenant_id AND b.id = v.backend_id
  JOIN trivet.host h ON h.tenant_id = p.tenant_id AND h.id = p.host_id`;

/** Ids are drawn in the order of time. */
const ORDER = { columns: [{ sql: 'p.id', type: 'uuid' }] } as const;

export function listPublications(
  database: Database,
  tenantId: string,
  { volumeId, hostId }: { volumeId?: string; hostId?: string },
  request: PageRequest,
): Promise<PageOf<ListedPublication>> {
  const query = new ListQuery()
    .where('p.tenant_id = ?', tenantId)
    .where('p.volume_id = ?', volumeId)
    .where('p.host_id = ?', hostId);
  return database.withTenant(tenantId, tx => readPage(tx, query, SELECT, ORDER, request));
}

export async function readPublication(tx: Tx, tenantId: string, id: string): Promise<ListedPublication | undefined> {
  const query = new ListQuery().where('p.tenant_id = ?', tenantId).where('p.id = ?', id);
  const { rows } = await readPage<ListedPublication>(tx, query, SELECT, ORDER, { limit: 1 });
  return rows[0];
}
