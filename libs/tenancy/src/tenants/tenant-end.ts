import { counted } from '#platform/counted';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { type Actor, type AuditEntry, auditWrite } from '#tenancy/audit-log/audit-log';

/** What a backend or a person would miss. */
export interface TenantLeft {
  volumes: number;
  /** Of deleted volumes or snapshots whose images are there still. */
  snapshots: number;
  snapshotGroups: number;
  buckets: number;
  accesses: number;
  publications: number;
  hosts: number;
  /** Unfinished. */
  operations: number;
}

const LEFT = sql(
  'tenant_left',
  `SELECT (SELECT count(*)::int FROM trivet.volume WHERE tenant_id = $1 AND state <> 'gone') AS volumes,
          trivet.quota_used($1, 'snapshots')::int AS snapshots,
          (SELECT count(*)::int FROM trivet.snapshot_group WHERE tenant_id = $1 AND state <> 'gone') AS "snapshotGroups",
          (SELECT count(*)::int FROM trivet.bucket WHERE tenant_id = $1 AND state <> 'gone') AS buckets,
          (SELECT count(*)::int FROM trivet.access WHERE tenant_id = $1 AND state <> 'gone') AS accesses,
          (SELECT count(*)::int FROM trivet.publication WHERE tenant_id = $1) AS publications,
          (SELECT count(*)::int FROM trivet.host WHERE tenant_id = $1) AS hosts,
          (SELECT count(*)::int FROM trivet.operation WHERE tenant_id = $1 AND finished_at IS NULL) AS operations`,
);
const NOUNS: Record<keyof TenantLeft, readonly [one: string, many?: string]> = {
  volumes: ['volume (the recycle bin included)', 'volumes (the recycle bin included)'],
  snapshots: ['snapshot'],
  snapshotGroups: ['snapshot group'],
  buckets: ['bucket'],
  accesses: ['access', 'accesses'],
  publications: ['publication'],
  hosts: ['host'],
  operations: ['unfinished operation'],
};

/** Unfinished ones that have an error: what waits for a person first. */
const PROBLEMS = sql(
  'tenant_drain_problems',
  `SELECT o.resource_kind || ' ' || o.resource_name || ': ' || (o.error ->> 'message') AS problem, o.id AS "operationId",
          o.state = 'needs_attention' AS parked
     FROM trivet.operation o
    WHERE o.tenant_id = $1 AND o.finished_at IS NULL AND o.error IS NOT NULL
    ORDER BY o.state = 'needs_attention' DESC, o.seq LIMIT 10`,
);

export interface DrainProblem {
  problem: string;
  operationId: string;
  /** Waits for a person. */
  parked: boolean;
}

export interface DrainView {
  left: TenantLeft;
  problems: DrainProblem[];
}

export const isEmpty = (left: TenantLeft): boolean => Object.values(left).every(count => count === 0);

const describeLeft = (left: TenantLeft): string =>
  (Object.keys(NOUNS) as (keyof TenantLeft)[])
    .filter(key => left[key] > 0)
    .map(key => counted(left[key], ...NOUNS[key]))
    .join(', ');

export async function tenantLeft(tx: Tx, tenantId: string): Promise<TenantLeft> {
  const [left] = await tx.query<TenantLeft>(LEFT, [tenantId]);
  return left!;
}

export const drainView = (database: Database, tenantId: string): Promise<DrainView> =>
  database.withTenant(tenantId, async tx => ({
    left: await tenantLeft(tx, tenantId),
    problems: await tx.query<DrainProblem>(PROBLEMS, [tenantId]),
  }));

/** Rows of one transaction. */
const PORTION = 2_000;

const portion = (table: string, condition = 'true') =>
  sql(
    `tenant_end_${table}`,
    `DELETE FROM trivet.${table}
      WHERE tenant_id = $1 AND ctid = ANY (ARRAY(SELECT ctid FROM trivet.${table} WHERE tenant_id = $1 AND ${condition} LIMIT $2))
     RETURNING 1`,
  );
/**
 * What there may be millions of, in the order of their references. Slots and events go with their operation, and the audit
 * log stays; items of bulks would go so, too, but are thousands of one.
 */
const HISTORY = [
  portion('bulk_item'),
  portion('operation', 'finished_at IS NOT NULL'),
  portion('change_chunk'),
  portion('change_step'),
  portion('protection_run'),
  portion('bucket_grant'),
  portion('access', "state = 'gone'"),
  portion('bucket', "state = 'gone'"),
  portion('snapshot', "state = 'gone' AND (cut IS NULL OR image_gone_at IS NOT NULL)"),
  portion('change_upkeep'),
  portion('snapshot_group', "state = 'gone'"),
  portion('volume', "state = 'gone'"),
  portion('snapshot_session_member'),
  portion('idempotency_key'),
  portion('pool_sample'),
  portion('volume_day'),
  portion('volume_io'),
  portion('volume_io_hour'),
  portion('usage_part'),
  portion('usage_hour'),
];

/** What it was made of. Few rows, and they go in the last transaction together with the tenant, or not at all. */
const REST = [
  'snapshot_session',
  'session_token',
  'admin_token',
  'endpoint',
  'volume_group',
  'finding',
  'pool',
  'backend_circuit',
  'protection_template',
  'performance_policy',
  'tenant_quota',
  'tenant_user',
  'secret',
  'backend',
].map(table => sql(`tenant_end_${table}`, `DELETE FROM trivet.${table} WHERE tenant_id = $1`));
const BACKENDS = sql('tenant_end_backends', 'SELECT FROM trivet.backend WHERE tenant_id = $1 LIMIT 1');
const END = sql('tenant_end_begin', 'SELECT FROM trivet.end_tenant($1, $2, $3)');
const SUSPEND = sql('tenant_end_give_up', "SELECT FROM trivet.change_tenant($1, $2, NULL, 'suspended')");
const DELETE = sql('tenant_end', 'SELECT deleted FROM trivet.delete_tenant($1, $2)');

/**
 * Removes one portion of the history of a tenant that has nothing left. True: there is more. Users and registrations stay
 * until the last transaction, so that a tenant that cannot go after all is as it was.
 */
export async function sweepHistory(database: Database, tenantId: string): Promise<boolean> {
  for (const statement of HISTORY) {
    const rows = await database.withTenant(tenantId, tx => tx.query(statement, [tenantId, PORTION]));
    if (rows.length > 0) return true;
  }
  return false;
}

/** `version`: as it was read; another one by now is `aborted`. */
export interface TenantVersion {
  id: string;
  name: string;
  version: number;
}

/**
 * The last transaction of a tenant. Something is left: `failed_precondition`; what is made in the same moment keeps it, by
 * its keys: `aborted`.
 */
export async function forgetTenant(
  database: Database,
  actor: Actor,
  { id, name, version }: TenantVersion,
): Promise<void> {
  await database.withTenant(id, async tx => {
    const left = await tenantLeft(tx, id);
    if (!isEmpty(left)) throw stillHas(name, left);
    for (const statement of REST) await tx.query(statement, [id]);
    if ((await tx.query(DELETE, [id, version])).length === 0) throw changed(name);
    await tx.commit(auditWrite(actor, entry({ id, name }, 'tenant.deleted')));
  });
}

/** Shuts its doors; a worker does the rest. `drains`: it has something, which is removed for good. */
export async function beginEnd(
  database: Database,
  actor: Actor,
  { id, name, version }: TenantVersion,
  drains: boolean,
): Promise<void> {
  await database.withTenant(id, async tx => {
    const left = await tenantLeft(tx, id);
    if (!drains && !isEmpty(left)) throw stillHas(name, left);
    if ((await tx.query(END, [id, version, drains])).length === 0) throw changed(name);
    await tx.commit(
      auditWrite(actor, { ...entry({ id, name }, drains ? 'tenant.drain' : 'tenant.delete'), before: left }),
    );
  });
}

/** What was to go with nothing has something after all: it stays, with its doors shut. */
export async function giveUpEnd(database: Database, actor: Actor, { id, name, version }: TenantVersion): Promise<void> {
  await database.withTenant(id, async tx => {
    const left = await tenantLeft(tx, id);
    if ((await tx.query(SUSPEND, [id, version])).length === 0) throw changed(name);
    const reason = `something was made while it was being deleted: ${describeLeft(left)}`;
    await tx.commit(auditWrite(actor, { ...entry({ id, name }, 'tenant.suspend'), reason }));
  });
}

/** Has anything ever been able to leave something at a backend? */
export const hasBackends = (database: Database, tenantId: string): Promise<boolean> =>
  database.withTenant(tenantId, async tx => (await tx.query(BACKENDS, [tenantId])).length > 0);

const entry = ({ id, name }: { id: string; name: string }, action: string): AuditEntry => ({
  tenantId: id,
  tenantName: name,
  action,
  subject: { kind: 'tenant', id, name },
});
const changed = (name: string): StorageError => new StorageError('aborted', `tenant ${name} was changed meanwhile`);

export const stillHas = (name: string, left: TenantLeft): StorageError =>
  new StorageError(
    'failed_precondition',
    `tenant ${name} has ${describeLeft(left)}: delete what it has first, or repeat this with drain=true and confirm=${name}, which removes them for good`,
    { resource: `tenant ${name}` },
  );
