const PAGE = 'a page in the order of the index, which its LIMIT ends';
const TENANT_END = 'the end of a tenant removes all that it has, in portions';
const HOLDS = 'whether a backend holds anything, when an administrator looks at it or removes it';

/** Statements that read all of a table, or all that a tenant has of it, and why they may. */
export const ALLOWED: Readonly<Record<string, string>> = {
  'audit_of_tenant_asc: audit_entry by audit_entry_pkey, all of a tenant': PAGE,
  'audit_of_tenant_by_action: audit_entry by audit_entry_pkey, all of a tenant': PAGE,
  'audit_of_tenant_desc: audit_entry by audit_entry_pkey, all of a tenant': PAGE,
  'asked_snapshots_by_name: volume by volume_live, all of a tenant':
    'a join, planned without values: when a session is asked for by names of snapshots',
  'replay_owners: volume by volume_applied, all of a tenant':
    'those that have a target, when a daemon has targets that somebody may have left half-made',
  'backend_holds: snapshot by snapshot_of_volume, all of a tenant': HOLDS,
  'backend_pools_in_use: snapshot by snapshot_of_volume, all of a tenant': HOLDS,
  'backend_view: snapshot by snapshot_of_volume, all of a tenant': HOLDS,
  'drain_protection: volume_protection by volume_protection_due, all of a tenant': TENANT_END,
  'tenant_end_access: access by access_pkey, all of a tenant': TENANT_END,
  'tenant_end_bucket_grant: bucket_grant by bucket_grant_of_bucket, all of a tenant': TENANT_END,
  'tenant_end_change_step: change_step by change_step_pkey, all of a tenant': TENANT_END,
  'tenant_end_operation: operation by operation_of_kind, all of a tenant': TENANT_END,
  'tenant_end_protection_run: protection_run by protection_run_of_volume, all of a tenant': TENANT_END,
  'tenant_left: publication by publication_of_host, all of a tenant': TENANT_END,
  'report_hosts_without_chap: publication by publication_pkey, all of a tenant':
    'a person asks it, before CHAP becomes a must',
};
