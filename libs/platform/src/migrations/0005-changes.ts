import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

/** The change index, what holds images for it, and snapshot sessions. */
export class Changes1795478400000 implements Migration {
  readonly locks: Migration['locks'] = {
    snapshot: { mode: 'ACCESS EXCLUSIVE', work: ['scan', 'index'], seconds: 35 },
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    tenant_user: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    volume: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [SNAPSHOTS, INDEX, SESSIONS, rowSecurity(TABLES), FUNCTIONS]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION trivet.find_snapshot_session, trivet.changes_due;
      DROP TABLE ${[...TABLES].reverse().map(table => `trivet.${table}`)};
      ALTER TABLE trivet.snapshot DROP COLUMN index_state, DROP COLUMN image_gone_at`);
  }
}

const SNAPSHOTS = `
-- pending: its step is to be built. broken: it cannot be any more; deltas across it are unknown.
-- image_gone_at: its image was unlinked, or is about to be, which cannot be taken back. A deleted snapshot with a cut and
-- an image is an anchor or pinned; one with a cut and without is a tombstone: found by id, as a base, while its steps are
-- kept (invariants C1, C6).
ALTER TABLE trivet.snapshot
  ADD COLUMN index_state text NOT NULL DEFAULT 'pending' CHECK (index_state IN ('pending', 'indexed', 'broken')),
  ADD COLUMN image_gone_at timestamptz;
CREATE INDEX snapshot_to_index ON trivet.snapshot (tenant_id, volume_id, cut)
  WHERE cut IS NOT NULL AND index_state = 'pending';
CREATE INDEX snapshot_kept_image ON trivet.snapshot (tenant_id, volume_id, cut)
  WHERE state = 'gone' AND cut IS NOT NULL AND image_gone_at IS NULL;

-- Who reads an image needs it until then, or until the row goes; streams renew theirs.
CREATE TABLE trivet.snapshot_pin (
  tenant_id uuid NOT NULL,
  snapshot_id uuid NOT NULL,
  holder uuid NOT NULL,
  reason text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, snapshot_id, holder),
  FOREIGN KEY (tenant_id, snapshot_id) REFERENCES trivet.snapshot ON DELETE CASCADE
);
`;

const INDEX = `
-- kind allocated: what a snapshot holds (from_cut 0). kind delta: what changed from one cut to another; level 0 is a
-- step between neighbours, level n a merged span of 2^n of them.
CREATE TABLE trivet.change_step (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  volume_id uuid NOT NULL,
  kind text NOT NULL CHECK (kind IN ('allocated', 'delta')),
  level smallint NOT NULL DEFAULT 0,
  from_cut bigint NOT NULL,
  to_cut bigint NOT NULL CHECK (to_cut > from_cut),
  -- Sizes at both cuts, bytes.
  base_bytes bigint NOT NULL,
  target_bytes bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('building', 'ready', 'broken')),
  reason text,
  ranges bigint NOT NULL DEFAULT 0,
  data_bytes bigint NOT NULL DEFAULT 0,
  hole_bytes bigint NOT NULL DEFAULT 0,
  -- How many chunks there are, numbered from zero: who finds fewer must not take the rest for unchanged.
  chunks integer NOT NULL DEFAULT 0,
  stored_bytes bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, volume_id, kind, from_cut, to_cut),
  FOREIGN KEY (tenant_id, volume_id) REFERENCES trivet.volume ON DELETE CASCADE
);

-- Body: libs/changes/src/chunk-codec.ts. Read in binary, from any chunk on; toasted out of line, never compressed.
CREATE TABLE trivet.change_chunk (
  tenant_id uuid NOT NULL,
  step_id uuid NOT NULL,
  no integer NOT NULL,
  first_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (tenant_id, step_id, no),
  FOREIGN KEY (tenant_id, step_id) REFERENCES trivet.change_step ON DELETE CASCADE
);
ALTER TABLE trivet.change_chunk ALTER COLUMN body SET STORAGE EXTERNAL;
`;

const SESSIONS = `
-- The KEP's session objects, as one row: the request, its outcome, and by the token's hash what it covers.
CREATE TABLE trivet.snapshot_session (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'ready', 'failed')),
  error text,
  driver text,
  -- Sealed token in trivet.secret (snapshot_session, id, token): the creator may read it again until it expires.
  token_hash bytea,
  created_by uuid,
  ttl_ms bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, name),
  FOREIGN KEY (tenant_id) REFERENCES trivet.tenant,
  FOREIGN KEY (tenant_id, created_by) REFERENCES trivet.tenant_user
);
CREATE INDEX snapshot_session_by_token ON trivet.snapshot_session (token_hash) WHERE state = 'ready';
CREATE INDEX snapshot_session_expiry ON trivet.snapshot_session (tenant_id, expires_at);

-- As they were asked for, in order; what they mean is settled when the session becomes ready.
CREATE TABLE trivet.snapshot_session_member (
  tenant_id uuid NOT NULL,
  session_id uuid NOT NULL,
  position integer NOT NULL,
  asked text NOT NULL,
  snapshot_id uuid,
  volume_id uuid,
  name text,
  PRIMARY KEY (tenant_id, session_id, position),
  FOREIGN KEY (tenant_id, session_id) REFERENCES trivet.snapshot_session ON DELETE CASCADE
);
`;

const TABLES = ['snapshot_pin', 'change_step', 'change_chunk', 'snapshot_session', 'snapshot_session_member'] as const;

const FUNCTIONS = `
-- Before a tenant is known: whose token this is. Nothing for an expired one, nor when its creator may not log in.
CREATE FUNCTION trivet.find_snapshot_session(p_hash bytea)
RETURNS TABLE (tenant_id uuid, tenant_name text, session_id uuid, driver text, expires_at timestamptz,
               remaining_ms double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.tenant_id, t.name, s.id, s.driver, s.expires_at,
         extract(epoch FROM s.expires_at - now())::double precision * 1000
    FROM trivet.snapshot_session s
    JOIN trivet.tenant t ON t.id = s.tenant_id AND t.state = 'active'
    LEFT JOIN trivet.tenant_user u ON u.tenant_id = s.tenant_id AND u.id = s.created_by
   WHERE s.token_hash = p_hash AND s.state = 'ready' AND s.expires_at > now()
     AND (s.created_by IS NULL OR u.state = 'active');
$$;

-- Tenants with snapshots that are not indexed: what a worker must know before it enters one.
CREATE FUNCTION trivet.changes_due() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id FROM trivet.tenant t
   WHERE EXISTS (SELECT FROM trivet.snapshot s
                  WHERE s.tenant_id = t.id AND s.cut IS NOT NULL AND s.index_state = 'pending');
$$;

REVOKE EXECUTE ON FUNCTION trivet.find_snapshot_session, trivet.changes_due FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.changes_due TO trivet_app, trivet_engine;
GRANT EXECUTE ON FUNCTION trivet.find_snapshot_session TO trivet_app;
`;
