import pg from 'pg';
import { FILLED } from '#test/bench/scale/filled-rows';

/** Of each tenant a tenth of these is in the recycle bin and a tenth gone; a fifth is published, and as many were. */
export const TENANTS = 100;
/** Counters that the product keeps in the accepting transaction, counted anew from what was filled in without its triggers. */
const RECOUNT: readonly string[] = ['SELECT FROM trivet.tenant t, trivet.recount(t.id)'];

const LARGE = [
  'host',
  'volume',
  'target_id',
  'publication',
  'snapshot',
  'change_step',
  'volume_protection',
  'protection_run',
  'bucket',
  'access',
  'bucket_grant',
  'operation',
  'operation_event',
  'audit_entry',
] as const;
/** What waits and runs is bounded by what callers ask for, and hosts are the nodes of a tenant: hundreds. */
export const GROWING: ReadonlySet<string> = new Set(LARGE.filter(table => table !== 'host'));

/** Ids grow with the time of creation, as those of the product; and follow from a number, so that rows find each other. */
const IDS = `
CREATE SCHEMA scale;
CREATE FUNCTION scale.id(p_kind int, p_n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (lpad(to_hex(1780000000000 + p_n), 12, '0') || '7' || lpad(to_hex(p_kind), 3, '0') || '8' || substr(md5(p_n::text), 1, 15))::uuid
$$;
`;

const TENANT_ROWS = `
INSERT INTO trivet.tenant (id, name) SELECT scale.id(1, t), 'tenant-' || t FROM generate_series(0, ${TENANTS - 1}) AS t;
INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
SELECT scale.id(1, t), scale.id(2, t), 'block', 'reflink',
       '{"pools": [{"name": "default", "path": "/nowhere", "portals": ["127.0.0.1:3260"], "withoutChap": true}], "exporter": {"kind": "none"}}'
  FROM generate_series(0, ${TENANTS - 1}) AS t;
INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
SELECT scale.id(1, t), scale.id(3, t), 'object', 'fake', '{"file": "/nowhere"}' FROM generate_series(0, ${TENANTS - 1}) AS t;
INSERT INTO trivet.pool (tenant_id, backend_id, name, position, portals, without_chap, state, clone, total_bytes, used_bytes)
SELECT scale.id(1, t), scale.id(2, t), 'default', 0, '{127.0.0.1:3260}', true, 'up', 'reflink', 1::bigint << 60, 1::bigint << 50
  FROM generate_series(0, ${TENANTS - 1}) AS t;
-- As the look at stores leaves it: without, what reads circuits costs nothing until that look has run once.
INSERT INTO trivet.backend_circuit (tenant_id, backend_id) SELECT scale.id(1, t), scale.id(3, t) FROM generate_series(0, ${TENANTS - 1}) AS t;
INSERT INTO trivet.tenant_quota (tenant_id, key, value)
SELECT scale.id(1, t), key, 10::bigint ^ 17
  FROM generate_series(0, ${TENANTS - 1}) AS t,
       unnest('{volumes,volume_bytes,snapshots,buckets,bucket_bytes,operations}'::text[]) AS key;
`;

const INDEXES = `
SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
  FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
 WHERE n.nspname = 'trivet' AND t.relname = ANY ($1)
   AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`;

export interface Filled {
  volumes: number;
  seconds: number;
  bytes: number;
}

/**
 * An appliance as it is after a month, by set-based statements past triggers and foreign keys: each volume with ten snapshots and
 * their steps, its publications and schedules, two operations that have ended with their history, and a tenth of a bucket.
 */
export class ScaleFill {
  private volumes = 0;

  private constructor(
    private readonly client: pg.Client,
    private readonly say: (line: string) => void,
  ) {}

  static async begin(superuserUrl: string, say: (line: string) => void): Promise<ScaleFill> {
    const client = new pg.Client({ connectionString: superuserUrl });
    await client.connect();
    await client.query(IDS);
    // With their triggers: tenants come with templates and policies.
    await client.query(TENANT_ROWS);
    await client.query(
      "SET session_replication_role = replica; SET synchronous_commit = off; SET maintenance_work_mem = '1GB'; SET work_mem = '256MB'",
    );
    return new ScaleFill(client, say);
  }

  /** What is there already stays. */
  async grow(volumes: number): Promise<Filled> {
    const begin = performance.now();
    const { rows: indexes } = await this.client.query<{ name: string; definition: string }>(INDEXES, [LARGE]);
    for (const { name } of indexes) await this.client.query(`DROP INDEX ${name}`);
    for (const [what, statement] of Object.entries(FILLED)) {
      await this.client.query(statement(this.volumes, volumes));
      this.say(`${volumes.toLocaleString('en')} volumes: ${what}, ${seconds(begin)} s`);
    }
    for (const { definition } of indexes) await this.client.query(definition);
    for (const statement of RECOUNT) await this.client.query(statement);
    await this.client.query('VACUUM (FREEZE, ANALYZE)');
    await this.client.query('CHECKPOINT');
    this.volumes = volumes;
    const { rows } = await this.client.query<{ bytes: string }>('SELECT pg_database_size(current_database()) AS bytes');
    this.say(`${volumes.toLocaleString('en')} volumes: indexes and statistics, ${seconds(begin)} s`);
    return { volumes, seconds: Number(seconds(begin)), bytes: Number(rows[0]!.bytes) };
  }

  /** Whatever was accepted since has ended, so that nothing waits that was not filled in. */
  async settle(): Promise<void> {
    await this.client.query('DELETE FROM trivet.operation_slot');
    await this.client.query(
      `UPDATE trivet.operation SET state = 'succeeded', finished_at = now(), place = NULL, lease_owner = NULL
        WHERE finished_at IS NULL`,
    );
    // Dead entries of indexes would be walked through by whoever comes first.
    await this.client.query('VACUUM trivet.operation, trivet.operation_slot, trivet.volume, trivet.snapshot');
  }

  query(text: string, params: unknown[] = []): Promise<unknown> {
    return this.client.query(text, params);
  }

  close(): Promise<void> {
    return this.client.end();
  }
}

const seconds = (begin: number): string => ((performance.now() - begin) / 1_000).toFixed(1);
