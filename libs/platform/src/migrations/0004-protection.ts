import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

/** Protection templates, what they made and when they are due, and performance policies. */
export class Protection1795392000000 implements Migration {
  readonly locks: Migration['locks'] = {
    snapshot: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    volume: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [PROTECTION, POLICIES, rowSecurity(TABLES), FUNCTIONS, SHIPPED])
      await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TRIGGER ship_profiles ON trivet.tenant;
      DROP FUNCTION trivet.ship_profiles, trivet.add_shipped_profiles, trivet.protection_due;
      DROP TABLE ${[...TABLES].reverse().map(table => `trivet.${table}`)}`);
  }
}

const PROTECTION = `
-- schedules: [{name, everyMinutes, atMinutes, retain}]; a period begins atMinutes after a multiple of everyMinutes since
-- Monday 1970-01-05 00:00 UTC. The newest retain snapshots of a schedule are kept.
CREATE TABLE trivet.protection_template (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant,
  id uuid NOT NULL,
  name text NOT NULL,
  schedules jsonb NOT NULL,
  shipped boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, name)
);

-- A row for each schedule of the volume's one template: when it is due, and when its old snapshots are looked through.
CREATE TABLE trivet.volume_protection (
  tenant_id uuid NOT NULL,
  volume_id uuid NOT NULL,
  schedule text NOT NULL,
  template_id uuid NOT NULL,
  next_run_at timestamptz NOT NULL,
  prune_at timestamptz,
  PRIMARY KEY (tenant_id, volume_id, schedule),
  FOREIGN KEY (tenant_id, volume_id) REFERENCES trivet.volume ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, template_id) REFERENCES trivet.protection_template
);
CREATE INDEX volume_protection_due ON trivet.volume_protection (tenant_id, next_run_at);
CREATE INDEX volume_protection_prune ON trivet.volume_protection (tenant_id, prune_at) WHERE prune_at IS NOT NULL;
CREATE INDEX volume_protection_of_template ON trivet.volume_protection (tenant_id, template_id);

-- Rule: one snapshot a period. This row decides it: it is written in the transaction that accepts the snapshot.
CREATE TABLE trivet.protection_run (
  tenant_id uuid NOT NULL,
  template_id uuid NOT NULL,
  volume_id uuid NOT NULL,
  schedule text NOT NULL,
  period timestamptz NOT NULL,
  snapshot_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, template_id, volume_id, schedule, period),
  FOREIGN KEY (tenant_id, template_id) REFERENCES trivet.protection_template ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, volume_id) REFERENCES trivet.volume ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, snapshot_id) REFERENCES trivet.snapshot ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX protection_run_of_snapshot ON trivet.protection_run (tenant_id, snapshot_id);
CREATE INDEX protection_run_of_volume ON trivet.protection_run (tenant_id, volume_id);
`;

const POLICIES = `
-- config: what volumes made with it get where their creator says nothing.
CREATE TABLE trivet.performance_policy (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant,
  name text NOT NULL,
  description text NOT NULL,
  config jsonb NOT NULL,
  shipped boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, name)
);
`;

const TABLES = ['protection_template', 'volume_protection', 'protection_run', 'performance_policy'] as const;

const FUNCTIONS = `
-- Tenants with something due: what a scheduler must know before it enters one.
CREATE FUNCTION trivet.protection_due() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id FROM trivet.tenant t
   WHERE EXISTS (SELECT FROM trivet.volume_protection p WHERE p.tenant_id = t.id AND p.next_run_at <= now())
      OR EXISTS (SELECT FROM trivet.volume_protection p WHERE p.tenant_id = t.id AND p.prune_at <= now())
      OR EXISTS (SELECT FROM trivet.finding f WHERE f.tenant_id = t.id AND f.kind = 'protection_paused');
$$;

-- The names that callers of Nimble arrays use; a driver's StorageClass refers to them.
CREATE FUNCTION trivet.add_shipped_profiles(p_tenant uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO trivet.protection_template (tenant_id, id, name, schedules, shipped)
  SELECT p_tenant, gen_random_uuid(), name, schedules::jsonb, true
    FROM (VALUES
      ('Retain-30Daily', '[{"name": "daily", "everyMinutes": 1440, "atMinutes": 0, "retain": 30}]'),
      ('Retain-90Daily', '[{"name": "daily", "everyMinutes": 1440, "atMinutes": 0, "retain": 90}]'),
      ('Retain-48Hourly-30Daily-52Weekly',
       '[{"name": "hourly", "everyMinutes": 60, "atMinutes": 0, "retain": 48},
         {"name": "daily", "everyMinutes": 1440, "atMinutes": 0, "retain": 30},
         {"name": "weekly", "everyMinutes": 10080, "atMinutes": 8640, "retain": 52}]')) AS shipped (name, schedules)
  ON CONFLICT (tenant_id, name) DO NOTHING;
  INSERT INTO trivet.performance_policy (tenant_id, name, description, config, shipped)
  SELECT p_tenant, name, description, '{}', true
    FROM (VALUES
      ('default', 'General purpose'),
      ('Backup Repository', 'Large sequential writes of backup software'),
      ('Exchange 2003 data store', 'Mail database'),
      ('Exchange 2007 data store', 'Mail database'),
      ('Exchange 2010 data store', 'Mail database'),
      ('Exchange log', 'Mail database log'),
      ('Hyper-V CSV', 'Shared volume of virtual machines'),
      ('Oracle OLTP', 'Transactional database'),
      ('Other Workloads', 'Anything else'),
      ('SharePoint', 'Content database'),
      ('SQL Server', 'Database'),
      ('SQL Server 2012', 'Database'),
      ('SQL Server Logs', 'Database log'),
      ('VMware ESX', 'Datastore'),
      ('VMware ESX 5', 'Datastore'),
      ('Windows File Server', 'Files')) AS shipped (name, description)
  ON CONFLICT (tenant_id, name) DO NOTHING;
$$;

CREATE FUNCTION trivet.ship_profiles() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM trivet.add_shipped_profiles(NEW.id);
  RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION trivet.protection_due, trivet.add_shipped_profiles, trivet.ship_profiles FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.protection_due TO trivet_app, trivet_engine;
`;

/** Rule: shipped profiles. Every tenant has them from its first moment, whoever makes it. */
const SHIPPED = `
CREATE TRIGGER ship_profiles AFTER INSERT ON trivet.tenant FOR EACH ROW EXECUTE FUNCTION trivet.ship_profiles();
SELECT trivet.add_shipped_profiles(id) FROM trivet.tenant;
`;
