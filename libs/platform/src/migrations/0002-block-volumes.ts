import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

/** Hosts, volumes, publications, snapshots and their groups: the block leg. */
export class BlockVolumes1795219200000 implements Migration {
  readonly locks: Migration['locks'] = {
    backend: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [POOLS, VOLUMES, SNAPSHOTS, TARGET_IDS, rowSecurity(TABLES), FUNCTIONS])
      await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION trivet.find_volumes, trivet.allocate_target_id, trivet.release_target_id;
      DROP TABLE ${[...TABLES].reverse().map(table => `trivet.${table}`)}, trivet.target_id;
      DROP SEQUENCE trivet.host_fence`);
  }
}

const POOLS = `
CREATE SEQUENCE trivet.host_fence;
GRANT USAGE ON SEQUENCE trivet.host_fence TO trivet_engine;

-- What the worker last saw of each pool. Accepting reserves against it (invariant F3).
CREATE TABLE trivet.pool (
  tenant_id uuid NOT NULL,
  backend_id uuid NOT NULL,
  name text NOT NULL,
  -- The first one serves who names none.
  position integer NOT NULL,
  uuid uuid,
  portals text[] NOT NULL DEFAULT '{}',
  -- Hosts without CHAP are served beyond loopback (invariant I4).
  without_chap boolean NOT NULL DEFAULT false,
  state text NOT NULL CHECK (state IN ('up', 'down')),
  reason text,
  clone text NOT NULL DEFAULT 'copy' CHECK (clone IN ('reflink', 'copy')),
  total_bytes bigint NOT NULL DEFAULT 0,
  used_bytes bigint NOT NULL DEFAULT 0,
  -- Sum of sizes that may be promised, as a part of the total.
  thin_ratio double precision NOT NULL DEFAULT 1.0 CHECK (thin_ratio > 0),
  checked_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, backend_id, name),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend ON DELETE CASCADE
);

-- What the audit found and did not touch: orphaned files and targets, lost images. Shown by doctor.
CREATE TABLE trivet.finding (
  tenant_id uuid NOT NULL,
  backend_id uuid NOT NULL,
  kind text NOT NULL,
  subject text NOT NULL,
  pool text NOT NULL DEFAULT '',
  message text NOT NULL,
  first_seen timestamptz NOT NULL DEFAULT now(),
  last_seen timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, backend_id, kind, subject),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend ON DELETE CASCADE
);
`;

const VOLUMES = `
-- uuid is what callers name it by; id never changes.
CREATE TABLE trivet.host (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant,
  id uuid NOT NULL,
  uuid text NOT NULL,
  name text NOT NULL,
  iqns text[] NOT NULL,
  wwpns text[] NOT NULL,
  nqns text[] NOT NULL,
  networks text[] NOT NULL,
  -- Its password is in trivet.secret (host, id, chap).
  chap_user text,
  access_protocol text,
  virtual_domain text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, uuid)
);

CREATE TABLE trivet.volume_group (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  backend_id uuid NOT NULL,
  name text NOT NULL,
  description text NOT NULL,
  config jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, backend_id, name),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend
);

-- Rule: one life. The live row is the idempotency key; id is the incarnation and the name of the image at the backend.
CREATE TABLE trivet.volume (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  backend_id uuid NOT NULL,
  name text NOT NULL,
  -- binned: deleted, but its image is kept until binned_until; its name is free. failed creations go to 'gone'.
  state text NOT NULL CHECK (state IN ('creating', 'ready', 'deleting', 'binned', 'gone')),
  desired jsonb NOT NULL,
  fingerprint bytea NOT NULL,
  pool text NOT NULL,
  folder text NOT NULL,
  -- As asked for, to the byte; grows when an expansion is done.
  size_bytes bigint NOT NULL CHECK (size_bytes > 0),
  thick boolean NOT NULL,
  destroy_on_delete boolean NOT NULL,
  description text NOT NULL,
  config jsonb NOT NULL,
  volume_group_id uuid,
  -- What it was cloned from; the clone is independent of it.
  base_snapshot_id uuid,
  parent_volume_id uuid,
  clone_of text NOT NULL DEFAULT '',
  -- The target: its id is allocated at the first publication and kept (invariant I1).
  tid integer,
  serial_number text,
  -- The daemon's run to which the target was last applied; another one, or none, means: apply again. The version grows
  -- when its initiators change, so that an apply that began before says nothing about it.
  applied_instance text,
  export_version bigint NOT NULL DEFAULT 0,
  -- Sequence of the next snapshot's cut (invariant C2).
  next_cut bigint NOT NULL DEFAULT 1,
  active_operation uuid,
  -- Set by the audit: {type, message}. type 'lost': its image is missing or has another size.
  condition jsonb,
  binned_until timestamptz,
  audited_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend,
  FOREIGN KEY (tenant_id, volume_group_id) REFERENCES trivet.volume_group
);
CREATE UNIQUE INDEX volume_live ON trivet.volume (tenant_id, backend_id, name) WHERE state NOT IN ('binned', 'gone');
CREATE INDEX volume_reserved ON trivet.volume (tenant_id, backend_id, pool) INCLUDE (size_bytes) WHERE state <> 'gone';
CREATE INDEX volume_of_snapshot ON trivet.volume (tenant_id, base_snapshot_id) WHERE base_snapshot_id IS NOT NULL;
CREATE INDEX volume_of_group ON trivet.volume (tenant_id, volume_group_id) WHERE volume_group_id IS NOT NULL;
CREATE INDEX volume_exported ON trivet.volume (tenant_id, backend_id, pool) WHERE tid IS NOT NULL;
CREATE INDEX volume_audit ON trivet.volume (tenant_id, audited_at) WHERE state IN ('ready', 'binned');
CREATE INDEX volume_binned ON trivet.volume (tenant_id, binned_until) WHERE state = 'binned';
CREATE INDEX volume_gone ON trivet.volume (tenant_id, updated_at) WHERE state = 'gone';

-- A target's initiators are generated from these rows under the volume's exports slot. wanted: accepted, not applied
-- yet; removing: leaves with the next apply. While a row is there the volume counts as published.
CREATE TABLE trivet.publication (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  volume_id uuid NOT NULL,
  host_id uuid NOT NULL,
  access_protocol text NOT NULL,
  state text NOT NULL CHECK (state IN ('wanted', 'applied', 'removing')),
  active_operation uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, volume_id, host_id),
  UNIQUE (tenant_id, id),
  FOREIGN KEY (tenant_id, volume_id) REFERENCES trivet.volume,
  FOREIGN KEY (tenant_id, host_id) REFERENCES trivet.host
);
CREATE INDEX publication_of_host ON trivet.publication (tenant_id, host_id);
`;

const SNAPSHOTS = `
CREATE TABLE trivet.snapshot_group (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  backend_id uuid NOT NULL,
  volume_group_id uuid NOT NULL,
  name text NOT NULL,
  description text NOT NULL,
  state text NOT NULL CHECK (state IN ('creating', 'ready', 'deleting', 'gone')),
  active_operation uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend,
  FOREIGN KEY (tenant_id, volume_group_id) REFERENCES trivet.volume_group
);
CREATE UNIQUE INDEX snapshot_group_live ON trivet.snapshot_group (tenant_id, volume_group_id, name)
  WHERE state <> 'gone';

CREATE TABLE trivet.snapshot (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  backend_id uuid NOT NULL,
  volume_id uuid NOT NULL,
  name text NOT NULL,
  state text NOT NULL CHECK (state IN ('creating', 'ready', 'deleting', 'gone')),
  -- Made by the driver for a clone: in no list, goes with the last clone (docs/callers.md#snapshots-for-clones).
  hidden boolean NOT NULL,
  description text NOT NULL,
  config jsonb NOT NULL,
  -- Of the image, which keeps them when its volume is edited.
  pool text NOT NULL,
  folder text NOT NULL,
  -- Of the volume at the cut; set with cut and cut_at when it is taken. Rule: cut numbers. Hidden ones have none.
  size_bytes bigint,
  cut bigint,
  cut_at timestamptz,
  snapshot_group_id uuid,
  active_operation uuid,
  condition jsonb,
  audited_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend,
  FOREIGN KEY (tenant_id, volume_id) REFERENCES trivet.volume,
  FOREIGN KEY (tenant_id, snapshot_group_id) REFERENCES trivet.snapshot_group
);
CREATE UNIQUE INDEX snapshot_live ON trivet.snapshot (tenant_id, volume_id, name) WHERE state <> 'gone';
CREATE UNIQUE INDEX snapshot_cut ON trivet.snapshot (tenant_id, volume_id, cut) WHERE cut IS NOT NULL;
CREATE INDEX snapshot_named ON trivet.snapshot (tenant_id, backend_id, name) WHERE state <> 'gone';
CREATE INDEX snapshot_of_group ON trivet.snapshot (tenant_id, snapshot_group_id) WHERE snapshot_group_id IS NOT NULL;
CREATE INDEX snapshot_hidden ON trivet.snapshot (tenant_id, updated_at) WHERE hidden AND state = 'ready';
CREATE INDEX snapshot_audit ON trivet.snapshot (tenant_id, audited_at) WHERE state = 'ready';
CREATE INDEX snapshot_group_gone ON trivet.snapshot_group (tenant_id, updated_at) WHERE state = 'gone';
CREATE INDEX snapshot_gone ON trivet.snapshot (tenant_id, updated_at) WHERE state = 'gone';
`;

const TARGET_IDS = `
-- Rule: target ids. Unique over the appliance and not reused for a week: tgt's NAA is made of (tid, lun) only, and two disks with one NAA
-- look like two paths to one. Reached by the two functions below and by nothing else.
CREATE TABLE trivet.target_id (
  tid integer PRIMARY KEY,
  volume_id uuid NOT NULL,
  released_at timestamptz
);
CREATE UNIQUE INDEX target_id_of_volume ON trivet.target_id (volume_id) WHERE released_at IS NULL;
CREATE INDEX target_id_free ON trivet.target_id (released_at) WHERE released_at IS NOT NULL;
`;

const TABLES = [
  'pool',
  'finding',
  'host',
  'volume_group',
  'volume',
  'publication',
  'snapshot_group',
  'snapshot',
] as const;

const FUNCTIONS = `
-- The path that drivers repeat: one statement sets the tenant and reads, for all who ask at the same moment.
CREATE FUNCTION trivet.find_volumes(p_tenant uuid, p_backend uuid, p_ids uuid[], p_names text[])
RETURNS TABLE (id uuid, name text, state text, size_bytes bigint, description text, published boolean,
               volume_group_id uuid, base_snapshot_id uuid, parent_volume_id uuid, clone_of text, pool text, folder text,
               thick boolean, destroy_on_delete boolean, config jsonb, active_operation uuid, condition jsonb,
               created_at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('trivet.tenant', p_tenant::text, true);
  IF cardinality(p_ids) > 0 THEN
    RETURN QUERY
    SELECT v.id, v.name, v.state, v.size_bytes, v.description,
           EXISTS (SELECT FROM trivet.publication p WHERE p.tenant_id = p_tenant AND p.volume_id = v.id),
           v.volume_group_id, v.base_snapshot_id, v.parent_volume_id, v.clone_of, v.pool, v.folder, v.thick,
           v.destroy_on_delete, v.config, v.active_operation, v.condition, v.created_at
      FROM unnest(p_ids) AS asked (id)
      JOIN trivet.volume v ON v.tenant_id = p_tenant AND v.id = asked.id
     WHERE v.backend_id = p_backend AND v.state NOT IN ('binned', 'gone');
  END IF;
  IF cardinality(p_names) > 0 THEN
    RETURN QUERY
    SELECT v.id, v.name, v.state, v.size_bytes, v.description,
           EXISTS (SELECT FROM trivet.publication p WHERE p.tenant_id = p_tenant AND p.volume_id = v.id),
           v.volume_group_id, v.base_snapshot_id, v.parent_volume_id, v.clone_of, v.pool, v.folder, v.thick,
           v.destroy_on_delete, v.config, v.active_operation, v.condition, v.created_at
      FROM unnest(p_names) AS asked (name)
      JOIN trivet.volume v ON v.tenant_id = p_tenant AND v.backend_id = p_backend AND v.name = asked.name
     WHERE v.state NOT IN ('binned', 'gone');
  END IF;
END $$;

CREATE FUNCTION trivet.allocate_target_id(p_volume uuid, p_low integer, p_high integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  chosen integer;
BEGIN
  SELECT tid INTO chosen FROM trivet.target_id WHERE volume_id = p_volume AND released_at IS NULL;
  IF FOUND THEN RETURN chosen; END IF;
  PERFORM pg_advisory_xact_lock(42);
  SELECT greatest(coalesce(max(tid), 0) + 1, p_low) INTO chosen FROM trivet.target_id WHERE tid <= p_high;
  IF chosen <= p_high THEN
    INSERT INTO trivet.target_id (tid, volume_id) VALUES (chosen, p_volume);
    RETURN chosen;
  END IF;
  UPDATE trivet.target_id SET volume_id = p_volume, released_at = NULL
   WHERE tid = (SELECT tid FROM trivet.target_id
                 WHERE released_at < now() - interval '7 days' AND tid BETWEEN p_low AND p_high
                 ORDER BY released_at LIMIT 1)
  RETURNING tid INTO chosen;
  RETURN chosen;
END $$;

CREATE FUNCTION trivet.release_target_id(p_volume uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE trivet.target_id SET released_at = now() WHERE volume_id = p_volume AND released_at IS NULL;
$$;

REVOKE EXECUTE ON FUNCTION trivet.find_volumes, trivet.allocate_target_id, trivet.release_target_id FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.find_volumes, trivet.allocate_target_id, trivet.release_target_id TO trivet_app;
`;
