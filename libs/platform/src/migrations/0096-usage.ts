import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const TABLES = `
-- What a tenant had in an hour (of UTC), as tallies said it: limits are compared with these. An hour without a row was not measured.
CREATE TABLE trivet.usage_hour (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  at timestamptz NOT NULL,
  volumes bigint NOT NULL,
  volume_bytes numeric NOT NULL,
  snapshots bigint NOT NULL,
  buckets bigint NOT NULL,
  bucket_bytes numeric NOT NULL,
  PRIMARY KEY (tenant_id, at)
);

-- The same by place, for charging. The name of a backend is kept: what it was charged for outlives it.
CREATE TABLE trivet.usage_part (
  tenant_id uuid NOT NULL,
  at timestamptz NOT NULL,
  kind text NOT NULL CHECK (kind IN ('volumes', 'buckets')),
  backend_id uuid NOT NULL,
  -- '' of an object store.
  pool text NOT NULL,
  backend text NOT NULL,
  things bigint NOT NULL,
  -- Sizes of volumes; 0 of buckets, which have none.
  provisioned_bytes numeric NOT NULL,
  -- What images have of their pool when the audit last looked, and what buckets hold.
  stored_bytes numeric NOT NULL,
  PRIMARY KEY (tenant_id, at, kind, backend_id, pool),
  FOREIGN KEY (tenant_id, at) REFERENCES trivet.usage_hour (tenant_id, at) ON DELETE CASCADE
);

-- A volume in the first measured hour of a day (of UTC). No key of its volume: each row would write a lock into that one's.
CREATE TABLE trivet.volume_day (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  volume_id uuid NOT NULL,
  day date NOT NULL,
  size_bytes bigint NOT NULL,
  allocated_bytes bigint NOT NULL,
  -- Allocated since the same of a week before; of one that was made later, since nothing. NULL: nobody looked then.
  week_growth bigint,
  PRIMARY KEY (tenant_id, volume_id, day)
);
CREATE INDEX volume_day_growth ON trivet.volume_day (tenant_id, day, week_growth DESC NULLS LAST);
`;

const FUNCTIONS = `
-- Tenants whose hour is not measured yet, with that hour.
CREATE FUNCTION trivet.usage_due(p_limit integer) RETURNS TABLE (tenant_id uuid, at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, h.at FROM trivet.tenant t, date_trunc('hour', now(), 'UTC') AS h (at)
   WHERE t.kind = 'tenant' AND NOT EXISTS (SELECT FROM trivet.usage_hour u WHERE u.tenant_id = t.id AND u.at = h.at)
   ORDER BY t.id LIMIT p_limit;
$$;
REVOKE EXECUTE ON FUNCTION trivet.usage_due FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.usage_due TO trivet_engine;
`;

const NEW = ['usage_hour', 'usage_part', 'volume_day'];

/** What tenants used, for reports, forecasts and growth. Rules: docs/adr/0067. */
export class Usage1797210001400 implements Migration {
  readonly locks: Migration['locks'] = {
    // For the keys that point at it.
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLES + FUNCTIONS + rowSecurity(NEW));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.usage_due');
    await runner.query(`DROP TABLE ${[...NEW].reverse().map(table => `trivet.${table}`)}`);
  }
}
