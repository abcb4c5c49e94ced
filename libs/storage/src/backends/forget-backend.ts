import { counted } from '#platform/counted';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { BackendHolds } from '#storage/backends/backend-view';
import { findBackend, holdsOf } from '#storage/backends/backend-view';
import { sharesOf } from '#storage/backends/shares';
import { type Actor, audit } from '#tenancy/audit-log/audit-log';

/** Rows of one transaction: history may be long. */
const PORTION = 1_000;

const LOCK = sql(
  'backend_forget_lock',
  'SELECT id, version FROM trivet.backend WHERE tenant_id = $1 AND name = $2 FOR UPDATE',
);
const ENDPOINTS = sql(
  'backend_endpoints',
  'SELECT name FROM trivet.endpoint WHERE tenant_id = $1 AND backend_id = $2 ORDER BY name',
);
const GROUPS = sql(
  'backend_groups',
  `SELECT (SELECT count(*)::int FROM trivet.volume_group WHERE tenant_id = $1 AND backend_id = $2) AS "volumeGroups",
          (SELECT count(*)::int FROM trivet.snapshot_group
            WHERE tenant_id = $1 AND backend_id = $2 AND state <> 'gone') AS "snapshotGroups"`,
);

type Table = 'bucket' | 'access' | 'snapshot' | 'snapshot_group' | 'volume';

/** Of what is gone, with whatever hangs on it. */
const history = (table: Table, condition = '') =>
  sql(
    `backend_history_${table}`,
    `DELETE FROM trivet.${table}
      WHERE tenant_id = $1 AND id IN (SELECT id FROM trivet.${table}
                                       WHERE tenant_id = $1 AND backend_id = $2 AND state = 'gone' ${condition} LIMIT $3)
     RETURNING 1`,
  );
const GRANTS = sql(
  'backend_history_grants',
  `DELETE FROM trivet.bucket_grant g
    WHERE g.tenant_id = $1 AND g.ctid IN (
      SELECT h.ctid FROM trivet.bucket_grant h
        JOIN trivet.access a ON a.tenant_id = h.tenant_id AND a.id = h.access_id
       WHERE h.tenant_id = $1 AND a.backend_id = $2 AND a.state = 'gone' LIMIT $3)
   RETURNING 1`,
);
const PERFORMANCE = ['volume_io', 'volume_io_hour'].map(table =>
  sql(
    `backend_history_${table}`,
    `DELETE FROM trivet.${table}
      WHERE tenant_id = $1
        AND ctid = ANY (ARRAY(SELECT ctid FROM trivet.${table} WHERE tenant_id = $1 AND backend_id = $2 LIMIT $3))
     RETURNING 1`,
  ),
);
/** In the order of their references. */
const HISTORY = [
  ...PERFORMANCE,
  GRANTS,
  history('access'),
  history('bucket'),
  history('snapshot', 'AND (cut IS NULL OR image_gone_at IS NOT NULL)'),
  history('snapshot_group'),
  history('volume'),
];
const SECRETS = sql(
  'backend_forget_secrets',
  `DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'backend' AND owner_id = $2`,
);
const DELETE = sql('backend_forget', 'DELETE FROM trivet.backend WHERE tenant_id = $1 AND id = $2');

/**
 * Removes a backend from the registry, with the history of what was there once; the audit log and the operations stay.
 * Nothing at the backend is touched. False: it has another version by now.
 */
export async function forgetBackend(
  database: Database,
  actor: Actor,
  tenant: { id: string; name: string },
  { name, version }: { name: string; version: number },
): Promise<boolean> {
  const found = await database.withTenant(tenant.id, async tx => {
    const row = await lock(tx, tenant.id, name);
    if (row.version === version) await requireUnused(tx, tenant.id, { id: row.id, name });
    return row;
  });
  if (found.version !== version) return false;
  for (const statement of HISTORY) {
    const portion = () => database.withTenant(tenant.id, tx => tx.query(statement, [tenant.id, found.id, PORTION]));
    while ((await portion()).length === PORTION);
  }
  return database.withTenant(tenant.id, async tx => {
    const row = await lock(tx, tenant.id, name);
    if (row.version !== version) return false;
    await requireUnused(tx, tenant.id, { id: row.id, name });
    const before = await findBackend(tx, tenant.id, name);
    for (const statement of HISTORY) await tx.query(statement, [tenant.id, row.id, PORTION]);
    await tx.query(SECRETS, [tenant.id, row.id]);
    await tx.query(DELETE, [tenant.id, row.id]);
    const { kind, description, state, config } = before!;
    await audit(tx, actor, {
      tenantId: tenant.id,
      tenantName: tenant.name,
      action: 'backend.delete',
      subject: { kind: 'backend', id: row.id, name },
      before: { name, kind, description, state, config },
    });
    return true;
  });
}

async function lock(tx: Tx, tenantId: string, name: string): Promise<{ id: string; version: number }> {
  const [row] = await tx.query<{ id: string; version: number }>(LOCK, [tenantId, name]);
  if (!row) throw new StorageError('not_found', `there is no backend ${name}`, { resource: `backend ${name}` });
  return row;
}

const NOUNS: Record<keyof BackendHolds, readonly [one: string, many?: string]> = {
  volumes: ['volume (the recycle bin included)', 'volumes (the recycle bin included)'],
  snapshots: ['snapshot'],
  buckets: ['bucket'],
  accesses: ['access', 'accesses'],
  operations: ['unfinished operation'],
};

/** After its lock nothing new can refer to it. */
async function requireUnused(tx: Tx, tenantId: string, backend: { id: string; name: string }): Promise<void> {
  const key = [tenantId, backend.id];
  const refuse = (why: string) => new StorageError('failed_precondition', `backend ${backend.name} ${why}`);
  const holds = await holdsOf(tx, tenantId, backend.id);
  const left = (Object.keys(NOUNS) as (keyof BackendHolds)[]).filter(key => holds[key] > 0);
  if (left.length > 0) {
    const all = left.map(key => counted(holds[key], ...NOUNS[key])).join(', ');
    throw refuse(`still holds ${all}: empty it first, or drain it and look again`);
  }
  const [groups] = await tx.query<{ volumeGroups: number; snapshotGroups: number }>(GROUPS, key);
  const { volumeGroups, snapshotGroups } = groups!;
  if (volumeGroups + snapshotGroups > 0)
    throw refuse(
      `still has ${counted(volumeGroups, 'volume group')} and ${counted(snapshotGroups, 'snapshot group')}: empty it first`,
    );
  const endpoints = await tx.query<{ name: string }>(ENDPOINTS, key);
  if (endpoints.length > 0)
    throw refuse(`is used by endpoint ${endpoints.map(({ name }) => name).join(', ')}: delete that first`);
  const shares = await sharesOf(tx, backend.id);
  if (shares.length > 0)
    throw refuse(`is shared with ${shares.map(({ tenantName }) => tenantName).join(', ')}: delete the shares first`);
}
