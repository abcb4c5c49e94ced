import type { Database, Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage, readTotals, type Totals } from '#platform/database/keyset';
import { daemonAt, type PortalSets } from '#storage/block/pools/pool-daemons';

export interface ListedPublication {
  id: string;
  volumeId: string;
  volumeName: string;
  hostId: string;
  hostUuid: string;
  hostName: string;
  backendId: string;
  backendKind: string;
  accessProtocol: string;
  targetName: string;
  state: 'wanted' | 'applied' | 'removing';
  serialNumber: string | null;
  /** Where hosts discover it. */
  portals: readonly string[];
  createdAt: Date;
}

interface Row extends ListedPublication {
  pool: string;
  portalSets: PortalSets;
  daemon: number | null;
}

const SELECT = `SELECT p.id, p.volume_id AS "volumeId", v.name AS "volumeName", p.host_id AS "hostId", h.uuid AS "hostUuid", h.name AS "hostName",
    v.backend_id AS "backendId", b.kind AS "backendKind", p.access_protocol AS "accessProtocol", p.state,
    v.target ->> 'name' AS "targetName", (v.target ->> 'daemon')::int AS daemon, v.serial_number AS "serialNumber", v.pool,
    coalesce(pool.portals, '{}') AS portals, coalesce(pool.portal_sets, '[]') AS "portalSets", p.created_at AS "createdAt"
  FROM trivet.publication p
  JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
  JOIN trivet.backend b ON b.tenant_id = v.tenant_id AND b.id = v.backend_id
  LEFT JOIN trivet.pool ON pool.tenant_id = v.tenant_id AND pool.backend_id = v.backend_id AND pool.name = v.pool
  JOIN trivet.host h ON h.tenant_id = p.tenant_id AND h.id = p.host_id`;

/** Ids are drawn in the order of time. */
const ORDER = { columns: [{ sql: 'p.id', type: 'uuid' }] } as const;

export interface PublicationFilter {
  volumeId?: string;
  hostId?: string;
}

export async function listPublications(
  database: Database,
  tenantId: string,
  filter: PublicationFilter,
  request: PageRequest,
): Promise<PageOf<ListedPublication>> {
  const query = matching(tenantId, filter);
  const page = await database.withTenant(tenantId, tx => readPage<Row>(tx, query, SELECT, ORDER, request));
  return { ...page, rows: page.rows.map(row => served(tenantId, row)) };
}

export const totalPublications = (database: Database, tenantId: string, filter: PublicationFilter): Promise<Totals> =>
  database.withTenant(tenantId, tx =>
    readTotals(tx, matching(tenantId, filter), 'FROM trivet.publication p', { id: 'p.id' }),
  );

const matching = (tenantId: string, { volumeId, hostId }: PublicationFilter): ListQuery =>
  new ListQuery().where('p.tenant_id = ?', tenantId).where('p.volume_id = ?', volumeId).where('p.host_id = ?', hostId);

export async function readPublication(tx: Tx, tenantId: string, id: string): Promise<ListedPublication | undefined> {
  const query = new ListQuery().where('p.tenant_id = ?', tenantId).where('p.id = ?', id);
  const { rows } = await readPage<Row>(tx, query, SELECT, ORDER, { limit: 1 });
  return rows[0] && served(tenantId, rows[0]);
}

/** By the daemon that has it. */
const served = (tenantId: string, { pool, portalSets, daemon, ...row }: Row): ListedPublication => ({
  ...row,
  portals: daemonAt(tenantId, { pool, portalSets, portals: row.portals }, daemon ?? 0).portals,
});
