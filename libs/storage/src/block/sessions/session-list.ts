import type { Database, Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import type { SessionState } from '#storage/block/sessions/snapshot-session';

/** A session as people who look after it see it: never its token. */
export interface ListedSession {
  id: string;
  name: string;
  state: SessionState;
  error: string | null;
  driver: string | null;
  /** Name of the user, or of the cluster, within the tenant. */
  createdBy: string | null;
  snapshots: { asked: string; id: string | null; volume: string | null }[];
  createdAt: Date;
  expiresAt: Date;
}

const SELECT = `SELECT s.id, s.name, s.state, s.error, s.driver,
    coalesce((SELECT u.name FROM trivet.tenant_user u WHERE u.tenant_id = s.tenant_id AND u.id = s.created_by),
             (SELECT c.name FROM trivet.cluster c WHERE c.tenant_id = s.tenant_id AND c.id = s.cluster_id)) AS "createdBy",
    (SELECT coalesce(json_agg(json_build_object('asked', m.asked, 'id', m.snapshot_id, 'volume', v.name) ORDER BY m.position), '[]')
       FROM trivet.snapshot_session_member m
       LEFT JOIN trivet.volume v ON v.tenant_id = m.tenant_id AND v.id = m.volume_id
      WHERE m.tenant_id = s.tenant_id AND m.session_id = s.id) AS snapshots,
    s.created_at AS "createdAt", s.expires_at AS "expiresAt"
  FROM trivet.snapshot_session s`;

/** Ids are drawn in the order of time. */
const ORDER = { columns: [{ sql: 's.id', type: 'uuid' }] } as const;

/** What has expired is as good as deleted, whether it was reaped or not. */
const open = (tenantId: string): ListQuery =>
  new ListQuery().where('s.tenant_id = ?', tenantId).where('s.expires_at > now()');

export const listSessions = (
  database: Database,
  tenantId: string,
  request: PageRequest,
): Promise<PageOf<ListedSession>> =>
  database.withTenant(tenantId, tx => readPage(tx, open(tenantId), SELECT, ORDER, request));

export async function readSession(tx: Tx, tenantId: string, id: string): Promise<ListedSession | undefined> {
  const { rows } = await readPage<ListedSession>(tx, open(tenantId).where('s.id = ?', id), SELECT, ORDER, { limit: 1 });
  return rows[0];
}
