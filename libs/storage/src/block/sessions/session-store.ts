import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { SessionOwner, SessionRequest, SessionState } from '#storage/block/sessions/snapshot-session';

export interface SessionRow {
  id: string;
  name: string;
  state: SessionState;
  error: string | null;
  driver: string | null;
  /** One of the two. */
  createdBy: string | null;
  clusterId: string | null;
  /** bigint: decimal text. */
  ttlMs: string;
  sealed: Buffer | null;
  asked: string[];
  createdAt: Date;
  expiresAt: Date;
  remainingMs: number;
}

/** What has expired is as good as deleted, whether it was reaped or not. */
const ROW = `SELECT s.id, s.name, s.state, s.error, s.driver, s.created_by AS "createdBy", s.cluster_id AS "clusterId", s.ttl_ms::text AS "ttlMs",
  (SELECT e.sealed FROM trivet.secret e
    WHERE e.tenant_id = s.tenant_id AND e.owner_table = 'snapshot_session' AND e.owner_id = s.id AND e.name = 'token') AS sealed,
  ARRAY (SELECT m.asked FROM trivet.snapshot_session_member m
          WHERE m.tenant_id = s.tenant_id AND m.session_id = s.id ORDER BY m.position) AS asked,
  s.created_at AS "createdAt", s.expires_at AS "expiresAt",
  extract(epoch FROM s.expires_at - now())::double precision * 1000 AS "remainingMs"
  FROM trivet.snapshot_session s WHERE s.tenant_id = $1 AND s.expires_at > now()`;

const BY_ID = sql('snapshot_session_by_id', `${ROW} AND s.id = $2`);
const BY_NAME = sql('snapshot_session_by_name', `${ROW} AND s.name = $2`);
const ALL = sql('snapshot_session_all', `${ROW} ORDER BY s.created_at, s.id`);
const COUNT = sql(
  'snapshot_session_count',
  'SELECT count(*)::integer AS count FROM trivet.snapshot_session WHERE tenant_id = $1 AND expires_at > now()',
);
const INSERT = sql(
  'snapshot_session_insert',
  `WITH claimed AS (
     INSERT INTO trivet.snapshot_session (tenant_id, id, name, state, created_by, cluster_id, ttl_ms, expires_at)
     VALUES ($1, $2, $3, 'pending', $4, $7, $5::bigint, now() + $5 * interval '1 ms')
     ON CONFLICT (tenant_id, name) DO NOTHING
     RETURNING id
   ), members AS (
     INSERT INTO trivet.snapshot_session_member (tenant_id, session_id, position, asked)
     SELECT $1, c.id, a.position, a.asked FROM claimed c, unnest($6::text[]) WITH ORDINALITY AS a (asked, position)
   )
   SELECT id FROM claimed`,
);
const LOCK_PENDING = sql(
  'snapshot_session_lock',
  `SELECT id FROM trivet.snapshot_session
    WHERE tenant_id = $1 AND id = $2 AND state = 'pending' AND expires_at > now() FOR UPDATE`,
);
const PENDING = sql(
  'snapshot_session_pending',
  `SELECT id FROM trivet.snapshot_session
    WHERE tenant_id = $1 AND state = 'pending' AND expires_at > now() ORDER BY created_at LIMIT $2`,
);
const ASKED = sql(
  'snapshot_session_asked',
  `SELECT asked FROM trivet.snapshot_session_member WHERE tenant_id = $1 AND session_id = $2 ORDER BY position`,
);
const FAIL = sql(
  'snapshot_session_fail',
  `UPDATE trivet.snapshot_session SET state = 'failed', error = $3 WHERE tenant_id = $1 AND id = $2`,
);
const SETTLE_MEMBERS = sql(
  'snapshot_session_settle_members',
  `UPDATE trivet.snapshot_session_member m SET snapshot_id = g.id, volume_id = g.volume_id, name = g.name
     FROM unnest($3::integer[], $4::uuid[], $5::uuid[], $6::text[]) AS g (position, id, volume_id, name)
    WHERE m.tenant_id = $1 AND m.session_id = $2 AND m.position = g.position`,
);
const READY = sql(
  'snapshot_session_ready',
  `WITH sealed AS (
     INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed)
     VALUES ($1, 'snapshot_session', $2, 'token', $5)
   )
   UPDATE trivet.snapshot_session SET state = 'ready', driver = $3, token_hash = $4 WHERE tenant_id = $1 AND id = $2`,
);
const WITH_SECRET = `, secrets AS (
     DELETE FROM trivet.secret e USING ended
      WHERE e.tenant_id = $1 AND e.owner_table = 'snapshot_session' AND e.owner_id = ended.id
   )
   SELECT id FROM ended`;
const DELETE = sql(
  'snapshot_session_delete',
  `WITH ended AS (DELETE FROM trivet.snapshot_session WHERE tenant_id = $1 AND id = $2 RETURNING id)${WITH_SECRET}`,
);
const REAP = sql(
  'snapshot_session_reap',
  `WITH ended AS (
     DELETE FROM trivet.snapshot_session
      WHERE tenant_id = $1
        AND id IN (SELECT id FROM trivet.snapshot_session WHERE tenant_id = $1 AND expires_at <= now()
                    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING id
   )${WITH_SECRET}`,
);
const GIVE_WAY = sql(
  'snapshot_session_give_way',
  `WITH ended AS (
     DELETE FROM trivet.snapshot_session
      WHERE tenant_id = $1
        AND id IN (SELECT id FROM trivet.snapshot_session WHERE tenant_id = $1 AND state = 'failed' AND expires_at > now()
                    ORDER BY created_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING id
   )${WITH_SECRET}`,
);
const REAP_NAMED = sql(
  'snapshot_session_reap_named',
  `WITH ended AS (
     DELETE FROM trivet.snapshot_session WHERE tenant_id = $1 AND name = $2 AND expires_at <= now() RETURNING id
   )${WITH_SECRET}`,
);

export const findSessionById = async (tx: Tx, tenantId: string, id: string): Promise<SessionRow | undefined> =>
  (await tx.query<SessionRow>(BY_ID, [tenantId, id]))[0];

export const findSessionByName = async (tx: Tx, tenantId: string, name: string): Promise<SessionRow | undefined> =>
  (await tx.query<SessionRow>(BY_NAME, [tenantId, name]))[0];

export const allSessions = (tx: Tx, tenantId: string): Promise<SessionRow[]> => tx.query<SessionRow>(ALL, [tenantId]);

export async function countSessions(tx: Tx, tenantId: string): Promise<number> {
  const [row] = await tx.query<{ count: number }>(COUNT, [tenantId]);
  return row!.count;
}

/** False when the name is taken. One that expired under it goes first. */
export async function insertSession(
  tx: Tx,
  tenantId: string,
  session: { id: string; name: string; owner: SessionOwner; ttlMs: number; snapshots: SessionRequest['snapshots'] },
): Promise<boolean> {
  await tx.query(REAP_NAMED, [tenantId, session.name]);
  const { id, name, owner, ttlMs, snapshots } = session;
  const [userId, clusterId] = 'userId' in owner ? [owner.userId, null] : [null, owner.clusterId];
  return (await tx.query(INSERT, [tenantId, id, name, userId, ttlMs, snapshots, clusterId])).length > 0;
}

/** What the session asks for; undefined when it is decided already, or over. */
export async function lockPendingSession(tx: Tx, tenantId: string, id: string): Promise<string[] | undefined> {
  const locked = await tx.query(LOCK_PENDING, [tenantId, id]);
  if (locked.length === 0) return undefined;
  return (await tx.query<{ asked: string }>(ASKED, [tenantId, id])).map(({ asked }) => asked);
}

export async function pendingSessions(tx: Tx, tenantId: string, limit: number): Promise<string[]> {
  return (await tx.query<{ id: string }>(PENDING, [tenantId, limit])).map(({ id }) => id);
}

export async function failSession(tx: Tx, tenantId: string, id: string, error: string): Promise<void> {
  await tx.commit([FAIL, [tenantId, id, error]]);
}

export interface ReadySession {
  id: string;
  driver: string;
  tokenHash: Buffer;
  sealedToken: Buffer;
  /** In the order in which they were asked for. */
  snapshots: readonly { id: string; volumeId: string; name: string }[];
}

export async function readySession(tx: Tx, tenantId: string, session: ReadySession): Promise<void> {
  const { id, driver, tokenHash, sealedToken, snapshots } = session;
  const columns = [
    snapshots.map((_, at) => at + 1),
    snapshots.map(snapshot => snapshot.id),
    snapshots.map(({ volumeId }) => volumeId),
    snapshots.map(({ name }) => name),
  ];
  await tx.commit(
    [SETTLE_MEMBERS, [tenantId, id, ...columns]],
    [READY, [tenantId, id, driver, tokenHash, sealedToken]],
  );
}

export const deleteSession = async (tx: Tx, tenantId: string, id: string): Promise<void> => {
  await tx.query(DELETE, [tenantId, id]);
};

/** Failed ones, the oldest first: all that they still do is to say why. How many went. */
export const giveWay = async (tx: Tx, tenantId: string, limit: number): Promise<number> =>
  (await tx.query(GIVE_WAY, [tenantId, limit])).length;

/** How many went. */
export const reapSessions = async (tx: Tx, tenantId: string, limit: number): Promise<number> =>
  (await tx.query(REAP, [tenantId, limit])).length;
