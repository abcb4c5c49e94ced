import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/**
 * What lists show of the resources of all tenants, to administrators of the appliance: these columns alone, and nothing can
 * be written. The application role still sees one tenant at a time.
 */
const SHOWN: Readonly<Record<string, string>> = {
  backend: 'tenant_id, id, name, kind',
  volume: `tenant_id, id, backend_id, name, state, pool, folder, size_bytes, thick, description, clone_of, serial_number, condition,
    binned_until, active_operation, created_at, updated_at`,
  publication: 'tenant_id, volume_id, host_id',
  snapshot: `tenant_id, id, backend_id, volume_id, name, state, hidden, size_bytes, cut, cut_at, index_state, snapshot_group_id,
    condition, active_operation, created_at, updated_at`,
  change_step: 'tenant_id, volume_id, kind, state, from_cut, to_cut, data_bytes, hole_bytes',
  protection_template: 'tenant_id, id, name',
  volume_protection: 'tenant_id, volume_id, template_id',
  protection_run: 'tenant_id, snapshot_id, template_id',
  host: 'tenant_id, id, uuid, name, iqns, wwpns, nqns, networks, chap_user, created_at, updated_at',
  bucket: `tenant_id, id, backend_id, name, origin, state, desired, used_bytes, condition, active_operation, created_at, updated_at`,
  bucket_grant: 'tenant_id, bucket_id, state',
  access: 'tenant_id, id, name, state',
};

/** Rule: tenant isolation. */
const show = ([table, columns]: readonly [string, string]): string => `
CREATE POLICY engine ON trivet.${table} FOR SELECT TO trivet_engine USING (true);
GRANT SELECT (${columns}) ON trivet.${table} TO trivet_engine;`;

export class ListsOfAllTenants1797210000801 implements Migration {
  readonly locks: Migration['locks'] = Object.fromEntries(
    Object.keys(SHOWN).map(table => [table, { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } as const]),
  );

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(Object.entries(SHOWN).map(show).join(''));
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [table, columns] of Object.entries(SHOWN)) {
      await runner.query(`DROP POLICY engine ON trivet.${table}`);
      await runner.query(`REVOKE SELECT (${columns}) ON trivet.${table} FROM trivet_engine`);
    }
  }
}
