/** Of each volume. */
export const FILLED_BYTES = 10n * 1024n ** 3n;

/**
 * Volume n is of the tenant n % 100, and the (n / 100)-th of that one, which says what sort of volume it is: so each tenant has
 * all sorts in the same shares whatever the number. Each statement adds what belongs to the volumes [from, to).
 */
const HOSTS_OF = (volumes: number) => 100 * Math.ceil(volumes / 10_000);
const NUMBERS = (from: number, to: number) => `generate_series(${from}, ${to - 1}) AS n`;
const TENANT = 'scale.id(1, n % 100)';
/** Of what stands for a day of 30, whatever is asked for is younger. */
const SPREAD = (of: string) => `now() - (${of} * 7919 % 2500000) * interval '1 s'`;

export const FILLED: Readonly<Record<string, (from: number, to: number) => string>> = {
  hosts: (from, to) => `
INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
SELECT ${TENANT}, scale.id(4, n), 'uuid-' || n, 'host-' || n, ARRAY['iqn.2026-11.example:host-' || n], '{}', '{}', '{192.0.2.10/24}'
  FROM ${NUMBERS(HOSTS_OF(from), HOSTS_OF(to))}`,

  volumes: (from, to) => `
INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
       destroy_on_delete, description, config, base_snapshot_id, clone_of, tid, target, serial_number, applied_instance,
       next_cut, binned_until, created_at, updated_at)
SELECT ${TENANT}, scale.id(5, n), scale.id(2, n % 100), 'pvc-' || n,
       CASE k % 10 WHEN 7 THEN 'binned' WHEN 9 THEN 'gone' ELSE 'ready' END, '{}', '', 'default', '', ${FILLED_BYTES}, false,
       true, '', '{}', CASE WHEN k % 10 = 8 THEN scale.id(7, (n - 400) * 10) END, CASE WHEN k % 10 = 8 THEN 'pvc-' || n - 400 ELSE '' END,
       CASE WHEN k % 5 < 2 THEN n + 1 END,
       CASE WHEN k % 5 < 2 THEN jsonb_build_object('name', 'iqn.2026-01.dev.trivet:' || scale.id(5, n), 'vendor', 'TRIVET',
                                                   'product', 'VOLUME', 'unitSerial', 'uuid') END,
       CASE WHEN k % 5 < 2 THEN '60000000000000000e0000' || lpad(to_hex(n), 8, '0') || '01' END,
       CASE k % 5 WHEN 0 THEN 'filled' WHEN 1 THEN '' END, 11, CASE WHEN k % 10 = 7 THEN now() + interval '7 days' END,
       ${SPREAD('n::bigint')}, now() - interval '1 hour' - (n % 86400) * interval '1 s'
  FROM (SELECT n, n / 100 AS k FROM ${NUMBERS(from, to)}) AS of_tenant`,

  'target ids': (from, to) => `
INSERT INTO trivet.target_id (tid, volume_id)
SELECT n + 1, scale.id(5, n) FROM ${NUMBERS(from, to)} WHERE n / 100 % 5 < 2`,

  publications: (from, to) => `
INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state)
SELECT ${TENANT}, scale.id(6, n), scale.id(5, n), scale.id(4, n % 100 + 100 * (n / 10000)), 'iscsi', 'applied'
  FROM ${NUMBERS(from, to)} WHERE n / 100 % 5 = 0`,

  snapshots: (from, to) => `
INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool, folder,
       size_bytes, cut, cut_at, created_at, updated_at, index_state)
SELECT ${TENANT}, scale.id(7, n::bigint * 10 + c), scale.id(2, n % 100), scale.id(5, n), 'snapshot-' || c,
       CASE WHEN k % 10 = 3 AND c = 9 THEN 'gone' ELSE 'ready' END, k % 10 = 4 AND c = 0, '', '{}', 'default', '',
       ${FILLED_BYTES}, c + 1, now() - (10 - c) * interval '3 days', now() - (10 - c) * interval '3 days',
       now() - (10 - c) * interval '3 days', 'indexed'
  FROM (SELECT n, n / 100 AS k FROM ${NUMBERS(from, to)}) AS of_tenant, generate_series(0, 9) AS c
 WHERE k % 10 <> 9`,

  steps: (from, to) => `
INSERT INTO trivet.change_step (tenant_id, id, volume_id, kind, from_cut, to_cut, base_bytes, target_bytes, state, ranges,
       data_bytes, chunks, stored_bytes, created_at)
SELECT ${TENANT}, scale.id(8, n::bigint * 10 + c), scale.id(5, n), CASE c WHEN 0 THEN 'allocated' ELSE 'delta' END, c, c + 1,
       ${FILLED_BYTES}, ${FILLED_BYTES}, 'ready', 1000, 4096000, 1, 7400, now() - (10 - c) * interval '3 days'
  FROM (SELECT n, n / 100 AS k FROM ${NUMBERS(from, to)}) AS of_tenant, generate_series(0, 9) AS c
 WHERE k % 10 <> 9`,

  schedules: (from, to) => `
INSERT INTO trivet.volume_protection (tenant_id, volume_id, schedule, template_id, next_run_at)
SELECT ${TENANT}, scale.id(5, n), 'daily', t.id, now() + interval '1 day'
  FROM ${NUMBERS(from, to)}
  JOIN trivet.protection_template t ON t.tenant_id = ${TENANT} AND t.name = 'Retain-30Daily'
 WHERE n / 100 % 10 = 2`,

  'runs of schedules': (from, to) => `
INSERT INTO trivet.protection_run (tenant_id, template_id, volume_id, schedule, period, snapshot_id)
SELECT ${TENANT}, t.id, scale.id(5, n), 'daily', now() - (10 - c) * interval '3 days', scale.id(7, n::bigint * 10 + c)
  FROM ${NUMBERS(from, to)}
  JOIN trivet.protection_template t ON t.tenant_id = ${TENANT} AND t.name = 'Retain-30Daily', generate_series(0, 9) AS c
 WHERE n / 100 % 10 = 2`,

  buckets: (from, to) => `
INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, used_bytes, audited_at, measured_at)
SELECT ${TENANT}, scale.id(9, n), scale.id(3, n % 100), 'bucket-' || n, 'created', 'ready', '{}', '', 1000000, now() + interval '1 day', now() + interval '1 day'
  FROM ${NUMBERS(from / 10, to / 10)}`,

  accesses: (from, to) => `
INSERT INTO trivet.access (tenant_id, id, backend_id, name, account_id, state, desired, fingerprint, audited_at)
SELECT ${TENANT}, scale.id(10, n), scale.id(3, n % 100), 'access-' || n, 'account-' || n, 'ready', '{}', '', now() + interval '1 day'
  FROM ${NUMBERS(from / 10, to / 10)}`,

  grants: (from, to) => `
INSERT INTO trivet.bucket_grant (tenant_id, access_id, bucket_id, mode, state)
SELECT ${TENANT}, scale.id(10, n), scale.id(9, n), 'read_write', 'applied' FROM ${NUMBERS(from / 10, to / 10)}`,

  operations: (from, to) => `
INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, state,
       attempt, fence, error, actor, created_at, started_at, finished_at, next_run_at)
SELECT tenant_id, id, kind, CASE WHEN kind LIKE '%delete' THEN 'destroy' ELSE 'fast' END, backend_id, split_part(kind, '.', 1),
       resource_id, name, '{"sizeBytes": "${FILLED_BYTES}"}', state, 1, 1,
       CASE state WHEN 'failed' THEN '{"kind": "invalid_argument", "message": "no such placement", "retry": "never"}'::jsonb END,
       'user:driver', at, at, at + interval '0.1 s', at
  FROM (SELECT scale.id(1, m / 2 % 100) AS tenant_id, scale.id(11, m) AS id, scale.id(2, m / 2 % 100) AS backend_id,
               (ARRAY['volume.create', 'snapshot.create', 'volume.publish', 'volume.delete'])[1 + m / 100 % 4] AS kind,
               scale.id(5, m / 2) AS resource_id, 'pvc-' || m / 2 AS name,
               CASE WHEN m / 100 % 50 = 3 THEN 'failed' WHEN m / 100 % 100 = 4 THEN 'cancelled' ELSE 'succeeded' END AS state,
               ${SPREAD('m::bigint')} - interval '2 hours' AS at
          FROM generate_series(${2 * from}, ${2 * to - 1}) AS m) AS ended`,

  events: (from, to) => `
INSERT INTO trivet.operation_event (tenant_id, operation_id, at, type)
SELECT scale.id(1, m / 2 % 100), scale.id(11, m), ${SPREAD('m::bigint')} - interval '2 hours', type
  FROM generate_series(${2 * from}, ${2 * to - 1}) AS m, unnest('{accepted,attempt,succeeded}'::text[]) AS type`,

  'audit log': (from, to) => `
INSERT INTO trivet.audit_entry (tenant_id, at, tenant_name, actor_kind, actor, action, subject_kind, subject_id, subject_name, operation_id, door)
SELECT ${TENANT}, ${SPREAD('n::bigint')}, 'tenant-' || n % 100, 'user', 'driver', 'volume.create', 'volume', scale.id(5, n)::text,
       'pvc-' || n, scale.id(11, n::bigint * 2), 'csp'
  FROM ${NUMBERS(from, to)}`,
};
