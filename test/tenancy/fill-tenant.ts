import { uuidv7 } from '#platform/uuid';
import type { TestDatabase } from '#test/support/database';

/** A tenant, made unless it is there, with a row in every table; gives the ids of those that tests reach for. */
export async function fillTenant(
  database: TestDatabase,
  tenant: string,
  name: string,
): Promise<Record<string, string>> {
  const made = { backend: uuidv7(), endpoint: uuidv7(), bucket: uuidv7(), access: uuidv7(), operation: uuidv7() };
  const { query } = database;
  await query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING', [tenant, name]);
  await query("INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'b', 'fake', '{}')", [
    tenant,
    made.backend,
  ]);
  await query(
    "INSERT INTO trivet.endpoint (tenant_id, id, name, protocol, backend_id) VALUES ($1, $2, 'e', 'cosi', $3)",
    [tenant, made.endpoint, made.backend],
  );
  await query(
    "INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'backend', $2, 'credentials', 'x')",
    [tenant, made.backend],
  );
  await query(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
               VALUES ($1, $2, $3, 'photos', 'created', 'ready', '{}', 'x')`,
    [tenant, made.bucket, made.backend],
  );
  await query(
    `INSERT INTO trivet.access (tenant_id, id, backend_id, name, account_id, state, desired, fingerprint)
               VALUES ($1, $2, $3, 'ba', 'uid', 'ready', '{}', 'x')`,
    [tenant, made.access, made.backend],
  );
  await query(
    "INSERT INTO trivet.bucket_grant (tenant_id, access_id, bucket_id, mode, state) VALUES ($1, $2, $3, 'read_write', 'applied')",
    [tenant, made.access, made.bucket],
  );
  await query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request)
               VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, 'photos', '{}')`,
    [tenant, made.operation, made.backend, made.bucket],
  );
  await query(
    `INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, seq, priority)
               VALUES ($1, $2, $3, 'lifecycle', true, 1, 0)`,
    [tenant, made.operation, made.bucket],
  );
  await query("INSERT INTO trivet.operation_event (tenant_id, operation_id, type) VALUES ($1, $2, 'accepted')", [
    tenant,
    made.operation,
  ]);
  await query(
    "INSERT INTO trivet.bulk_item (tenant_id, bulk_id, nth, subject_id, name) VALUES ($1, $2, 1, $3, 'photos')",
    [tenant, made.operation, made.bucket],
  );
  await query("INSERT INTO trivet.tally_pass (tenant_id, kind, open, made_in) VALUES ($1, 'bucket', false, '')", [
    tenant,
  ]);
  await query(
    "INSERT INTO trivet.tally_portion (tenant_id, kind, upto, seen, looked, counted) VALUES ($1, 'bucket', $2, '1:1:', 0, '[]')",
    [tenant, made.bucket],
  );
  await query(
    "INSERT INTO trivet.tally_change (tenant_id, kind, row_id, backend_id, pool, things, bytes) VALUES ($1, 'bucket', $2, $3, '', 1, 0)",
    [tenant, made.bucket, made.backend],
  );
  await query('INSERT INTO trivet.backend_circuit (tenant_id, backend_id, reason) VALUES ($1, $2, $3)', [
    tenant,
    made.backend,
    name,
  ]);
  await query('INSERT INTO trivet.pool_home (tenant_id, backend_id, pool, host) VALUES ($1, $2, $3, $3)', [
    tenant,
    made.backend,
    name,
  ]);
  await fillBlocks(database, tenant, name, made.backend);
  return made;
}

const ioRow = (backend: string) => ({
  backend_id: backend,
  pool: 'main',
  nth: 0,
  at: HOUR,
  seconds: 60,
  sums: [0, 0, 0, 0],
  ...{ volumes: [], reads: [], writes: [], read_bytes: [], written_bytes: [] },
});
const HOUR = new Date(Date.UTC(2026, 0, 1));

/** Hosts, volumes, their users, what protects them, and what administrators did. */
async function fillBlocks(database: TestDatabase, tenant: string, name: string, backend: string): Promise<void> {
  const made = Array.from({ length: 11 }, () => uuidv7());
  const [pool, host, group, volume, snapshotGroup, snapshot, user, step, session, alert, receiver] = made;
  const rows: Record<string, Record<string, unknown>> = {
    pool: { backend_id: backend, name: 'main', position: 0, uuid: pool, state: 'up' },
    pool_sample: { backend_id: backend, pool: 'main', at: new Date(), used_bytes: 1, total_bytes: 2 },
    usage_hour: { at: HOUR, volumes: 1, volume_bytes: 1, snapshots: 0, buckets: 0, bucket_bytes: 0 },
    usage_part: {
      at: HOUR,
      kind: 'volumes',
      backend_id: backend,
      pool: 'main',
      backend: name,
      things: 1,
      provisioned_bytes: 1,
      stored_bytes: 1,
    },
    volume_io: ioRow(backend),
    volume_io_hour: ioRow(backend),
    volume_day: { volume_id: volume, day: HOUR, size_bytes: 1, allocated_bytes: 1 },
    finding: { backend_id: backend, kind: 'orphan_image', subject: 's', message: 'm' },
    host: { id: host, uuid: 'h', name: 'h', iqns: [], wwpns: [], nqns: [], networks: [] },
    volume_group: { id: group, backend_id: backend, name: 'g', description: '', config: {} },
    volume: {
      id: volume,
      backend_id: backend,
      name: 'v',
      state: 'ready',
      desired: {},
      fingerprint: Buffer.from('x'),
      pool: 'main',
      folder: '',
      size_bytes: 1,
      thick: false,
      destroy_on_delete: false,
      description: '',
      config: {},
    },
    publication: { id: uuidv7(), volume_id: volume, host_id: host, access_protocol: 'iscsi', state: 'applied' },
    snapshot_group: {
      id: snapshotGroup,
      backend_id: backend,
      volume_group_id: group,
      name: 's',
      description: '',
      state: 'ready',
    },
    snapshot: {
      id: snapshot,
      backend_id: backend,
      volume_id: volume,
      name: 's',
      state: 'ready',
      hidden: false,
      description: '',
      config: {},
      pool: 'main',
      folder: '',
    },
    snapshot_pin: { snapshot_id: snapshot, holder: uuidv7(), reason: 'r', expires_at: new Date() },
    change_step: {
      id: step,
      volume_id: volume,
      kind: 'delta',
      from_cut: 1,
      to_cut: 2,
      base_bytes: 1,
      target_bytes: 1,
      state: 'ready',
    },
    change_chunk: { step_id: step, no: 0, first_offset: 0, end_offset: 1, body: Buffer.from('x') },
    snapshot_session: { id: session, name: 's', state: 'ready', ttl_ms: 1, expires_at: new Date() },
    snapshot_session_member: { session_id: session, position: 0, asked: 's' },
    tenant_user: { id: user, name: 'u', password: 'x', role: 'operator' },
    session_token: {
      id: uuidv7(),
      user_id: user,
      token_hash: Buffer.alloc(32),
      backend_id: backend,
      enveloped: false,
      array_ip: '',
      expires_at: new Date(),
    },
    tenant_quota: { key: 'volumes', value: 1_000 },
    passkey: {
      id: uuidv7(),
      user_id: user,
      name: 'p',
      credential_id: Buffer.from(tenant),
      public_key: Buffer.alloc(1),
      counter: 0,
    },
    user_totp: { user_id: user },
    recovery_code: { user_id: user, code_hash: Buffer.alloc(32) },
    admin_token: {
      id: uuidv7(),
      user_id: user,
      kind: 'token',
      name: 't',
      role: 'viewer',
      token_hash: Buffer.alloc(32),
    },
    cluster: {
      id: uuidv7(),
      name: 'c',
      release: '0',
      certificate_serial: '1',
      certificate_until: new Date(),
    },
    cluster_join_token: {
      id: uuidv7(),
      cluster_name: 'c',
      token_hash: Buffer.alloc(32),
      expires_at: new Date(),
    },
    saved_view: { user_id: user, id: uuidv7(), list: 'volumes', name: 'v', query: {} },
    alert_receiver: { id: receiver, name: 'r', kind: 'slack', address: 'https://chat.invalid' },
    alert: {
      id: alert,
      rule: 'pool_down',
      object: 'o',
      severity: 'error',
      state: 'open',
      what: 'w',
      means: 'm',
      todo: 't',
    },
    alert_silence: { id: uuidv7(), until: new Date(), reason: 'r', made_by: 'u' },
    alert_delivery: { id: uuidv7(), receiver_id: receiver, alert_id: alert, event: 'opened', content: {} },
    gateway_doors: { gateway: 'g', doors: {} },
    idempotency_key: { user_id: user, key: 'k', sealed: Buffer.from('x'), claim: uuidv7() },
    audit_entry: {
      tenant_name: name,
      actor_kind: 'user',
      actor: `u@${name}`,
      action: 'user.create',
      subject_kind: 'user',
    },
  };
  for (const [table, row] of Object.entries(rows)) {
    const names = ['tenant_id', ...Object.keys(row)];
    const places = names.map((_, n) => `$${n + 1}`);
    await database.query(`INSERT INTO trivet.${table} (${names.join(', ')}) VALUES (${places.join(', ')})`, [
      tenant,
      ...Object.values(row),
    ]);
  }
  // Templates and policies are there since the tenant is.
  for (const [table, columns] of [
    ['volume_protection', 'tenant_id, volume_id, schedule, template_id, next_run_at'],
    ['protection_run', 'tenant_id, volume_id, schedule, template_id, period, snapshot_id'],
  ] as const)
    await database.query(
      `INSERT INTO trivet.${table} (${columns})
       SELECT $1, $2, 'daily', id, now()${table === 'protection_run' ? ', $3::uuid' : ''}
         FROM trivet.protection_template WHERE tenant_id = $1 LIMIT 1`,
      [tenant, volume, ...(table === 'protection_run' ? [snapshot] : [])],
    );
}
