import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const LIST = sql(
  'report_hosts',
  `SELECT h.uuid, h.name, h.iqns, h.wwpns, h.nqns, h.networks, h.chap_user AS "chapUser", h.updated_at AS "updatedAt",
          (SELECT count(*)::int FROM trivet.publication p WHERE p.tenant_id = h.tenant_id AND p.host_id = h.id) AS volumes
     FROM trivet.host h WHERE h.tenant_id = $1 ORDER BY h.name, h.uuid`,
);
/** Hosts that anybody can pretend to be who reaches the portal (invariant I4). */
const WITHOUT_CHAP = sql(
  'report_hosts_without_chap',
  `SELECT DISTINCT h.name, v.pool FROM trivet.publication p
     JOIN trivet.host h ON h.tenant_id = p.tenant_id AND h.id = p.host_id AND h.chap_user IS NULL
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
     JOIN trivet.pool ON pool.tenant_id = v.tenant_id AND pool.backend_id = v.backend_id AND pool.name = v.pool
    WHERE p.tenant_id = $1
      AND EXISTS (SELECT FROM unnest(pool.portals) AS portal WHERE portal !~ '^(127\\.|\\[::1\\]|localhost:)')
    ORDER BY h.name`,
);

export interface HostReport {
  uuid: string;
  name: string;
  iqns: string[];
  wwpns: string[];
  nqns: string[];
  networks: string[];
  chapUser: string | null;
  /** How many volumes are published to it. */
  volumes: number;
  updatedAt: Date;
}

export const reportHosts = (database: Database, tenantId: string): Promise<HostReport[]> =>
  database.withTenant(tenantId, tx => tx.query<HostReport>(LIST, [tenantId]));

/** Served beyond loopback without CHAP: the initiator's name is all that protects their volumes. */
export const reportHostsWithoutChap = (
  database: Database,
  tenantId: string,
): Promise<{ name: string; pool: string }[]> =>
  database.withTenant(tenantId, tx => tx.query<{ name: string; pool: string }>(WITHOUT_CHAP, [tenantId]));
