import { randomUUID } from 'node:crypto';
import type { RouteContract } from '#admin/contract/route';
import type { AdminHouse, HouseTenant } from '#test/admin/admin-house';
import type { TestDatabase } from '#test/support/database';
import { fillTenant } from '#test/tenancy/fill-tenant';

/** What the parameters of paths, and the placeholders of examples, stand for. */
export type Things = Readonly<Record<string, string>>;

/** By which column of which table a parameter is looked up. */
const PARAMETERS: Readonly<Record<string, readonly [table: string, column: 'id' | 'name', where?: string]>> = {
  user: ['tenant_user', 'name', "name LIKE 'only-%'"],
  token: ['admin_token', 'id', "name LIKE 'only-%'"],
  login: ['admin_token', 'id', "kind = 'session'"],
  passkey: ['passkey', 'id'],
  backend: ['backend', 'name', "name LIKE 'only-%'"],
  objectBackend: ['backend', 'name'],
  endpoint: ['endpoint', 'name'],
  cluster: ['cluster', 'name'],
  bucket: ['bucket', 'id'],
  foreignBucket: ['bucket', 'name'],
  access: ['access', 'id'],
  volume: ['volume', 'id', "state = 'ready'"],
  binnedVolume: ['volume', 'id', "state = 'binned'"],
  snapshot: ['snapshot', 'id'],
  publication: ['publication', 'id'],
  host: ['host', 'id'],
  template: ['protection_template', 'name', "name LIKE 'only-%'"],
  policy: ['performance_policy', 'name', "name LIKE 'only-%'"],
  session: ['snapshot_session', 'id'],
  operation: ['operation', 'id'],
  view: ['saved_view', 'id'],
};

/** Fills the tenant, under names that no other tenant has, and gives what its paths name. */
export async function thingsOf(house: AdminHouse, tenant: HouseTenant): Promise<Things> {
  const { id, name, backends } = tenant;
  const { query } = house.appliance.database;
  await fillTenant(house.appliance.database, id, name);
  const only = (what: string) => `only-${name}-${what}`;
  for (const [table, old] of [
    ['backend', 'b'],
    ['endpoint', 'e'],
    ['cluster', 'c'],
    ['bucket', 'photos'],
    ['access', 'ba'],
    ['host', 'h'],
    ['volume', 'v'],
    ['volume_group', 'g'],
    ['snapshot', 's'],
    ['snapshot_group', 's'],
    ['snapshot_session', 's'],
    ['tenant_user', 'u'],
    ['admin_token', 't'],
  ])
    await query(`UPDATE trivet.${table} SET name = $3 WHERE tenant_id = $1 AND name = $2`, [id, old, only(table!)]);
  await query('UPDATE trivet.operation SET resource_name = $2, actor = $2, error = $3 WHERE tenant_id = $1', [
    id,
    only('resource'),
    { kind: 'unavailable', message: only('error'), retry: 'later' },
  ]);
  await query('UPDATE trivet.bulk_item SET name = $2 WHERE tenant_id = $1', [id, only('resource')]);
  await query('UPDATE trivet.access SET account_id = $2 WHERE tenant_id = $1', [id, only('account')]);
  await query('UPDATE trivet.host SET uuid = $2, iqns = $3 WHERE tenant_id = $1', [id, only('uuid'), [only('iqn')]]);
  for (const table of ['pool', 'volume_group', 'volume', 'snapshot_group', 'snapshot'])
    await query(`UPDATE trivet.${table} SET backend_id = $2 WHERE tenant_id = $1`, [id, backends.local]);
  await query('UPDATE trivet.pool SET total_bytes = 1099511627776 WHERE tenant_id = $1', [id]);
  await query('UPDATE trivet.snapshot SET cut = 1, cut_at = now(), size_bytes = 1 WHERE tenant_id = $1', [id]);
  await query("UPDATE trivet.snapshot_session SET expires_at = now() + interval '1 h' WHERE tenant_id = $1", [id]);
  await query('UPDATE trivet.finding SET subject = $2 WHERE tenant_id = $1', [id, only('finding')]);
  await query(
    "INSERT INTO trivet.performance_policy (tenant_id, name, description, config) VALUES ($1, $2, '', '{}')",
    [id, only('policy')],
  );
  await query(
    `INSERT INTO trivet.saved_view (tenant_id, user_id, id, list, name, query)
     SELECT $1, "user", gen_random_uuid(), 'volumes', $2, '{}' FROM unnest($3::uuid[]) AS "user"`,
    [id, only('view'), [tenant.viewer, tenant.operator, tenant.admin].map(({ userId }) => userId)],
  );
  // Rows of the audit log are never changed.
  await query(
    `INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, action, subject_kind, subject_name)
     VALUES ($1, $2, 'user', $3, 'user.create', 'user', $4)`,
    [id, name, only('actor'), only('subject')],
  );
  await query(
    `INSERT INTO trivet.protection_template (tenant_id, id, name, schedules)
     SELECT tenant_id, $2, $3, schedules FROM trivet.protection_template WHERE tenant_id = $1 LIMIT 1`,
    [id, randomUUID(), only('template')],
  );
  await query(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                destroy_on_delete, description, config)
     SELECT tenant_id, $2, backend_id, $3, 'binned', desired, fingerprint, pool, folder, size_bytes, thick,
            destroy_on_delete, description, config
       FROM trivet.volume WHERE tenant_id = $1 LIMIT 1`,
    [id, randomUUID(), only('binned')],
  );
  await query(
    `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash, expires_at, user_agent)
     SELECT tenant_id, gen_random_uuid(), id, 'session', '', role, sha256(uuid_send(id)), now() + interval '1 h', $2
       FROM trivet.tenant_user WHERE tenant_id = $1`,
    [id, only('browser')],
  );
  await usageOf(query, id, only('backend'));
  const things: Record<string, string> = { tenant: name, class: 'fast' };
  for (const [parameter, [table, column, where = 'true']] of Object.entries(PARAMETERS)) {
    const [row] = await query<{ value: string }>(
      `SELECT ${column} AS value FROM trivet.${table} WHERE tenant_id = $1 AND ${where} LIMIT 1`,
      [id],
    );
    if (!row) throw new Error(`${name} has no ${parameter}`);
    things[parameter] = row.value;
  }
  return things;
}

/** What it used this hour, took today, and does now. */
async function usageOf(query: TestDatabase['query'], id: string, backend: string): Promise<void> {
  await query(
    `INSERT INTO trivet.usage_hour (tenant_id, at, volumes, volume_bytes, snapshots, buckets, bucket_bytes)
     VALUES ($1, date_trunc('hour', now(), 'UTC'), 1, 1, 1, 1, 1)`,
    [id],
  );
  await query(
    `INSERT INTO trivet.usage_part (tenant_id, at, kind, backend_id, pool, backend, things, provisioned_bytes, stored_bytes)
     SELECT tenant_id, date_trunc('hour', now(), 'UTC'), kind, backend_id, pool, $2, things, provisioned_bytes, stored_bytes
       FROM trivet.usage_part WHERE tenant_id = $1`,
    [id, backend],
  );
  await query(
    `INSERT INTO trivet.volume_day (tenant_id, volume_id, day, size_bytes, allocated_bytes, week_growth)
     SELECT tenant_id, id, (now() AT TIME ZONE 'UTC')::date, 1, 1, 1 FROM trivet.volume WHERE tenant_id = $1 AND state = 'ready'`,
    [id],
  );
  await query(
    `INSERT INTO trivet.volume_io (tenant_id, backend_id, pool, nth, at, seconds, sums, volumes, reads, writes, read_bytes, written_bytes)
     SELECT tenant_id, backend_id, pool, 0, now() + interval '1 minute', 60, '{1,1,1,1}', ARRAY[id], '{1}', '{1}', '{1}', '{1}'
       FROM trivet.volume WHERE tenant_id = $1 AND state = 'ready'`,
    [id],
  );
}

/** Of the same form, and nobody's. */
export const guessed = (tenant: string): Things => ({
  tenant,
  class: 'fast',
  ...Object.fromEntries(
    Object.entries(PARAMETERS).map(([parameter, [, column]]) => [
      parameter,
      column === 'id' ? randomUUID() : `no-such-${parameter}`,
    ]),
  ),
});

/** What no answer to another tenant may hold: its names, and the ids of all that it has. */
export async function canariesOf(house: AdminHouse, tenant: HouseTenant): Promise<string[]> {
  const tables = await house.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'id'
       JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id'
      WHERE c.relnamespace = 'trivet'::regnamespace AND c.relkind = 'r'`,
  );
  const ids = await Promise.all(
    tables.map(({ name }) =>
      house.query<{ id: string }>(`SELECT id FROM trivet.${name} WHERE tenant_id = $1`, [tenant.id]),
    ),
  );
  return [tenant.id, `only-${tenant.name}-`, `@${tenant.name}`, ...ids.flat().map(({ id }) => id)];
}

/** `{tenant}` and the like in a value of an example. */
export function fill<T>(value: T, things: Things): T {
  if (typeof value === 'string')
    return value.replace(/\{(\w+)\}/g, (_, name: string) => {
      const thing = things[name];
      if (thing === undefined) throw new Error(`nobody has made {${name}}`);
      return thing;
    }) as T;
  if (Array.isArray(value)) return value.map(item => fill(item, things)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, things)])) as T;
}

/** The path below /api/v1 with these things in it. */
export const pathWith = ({ path }: RouteContract, things: Things): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(things[name]!));
