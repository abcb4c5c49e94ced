/**
 * Rule: quotas. Kept by the tables themselves in the transaction that accepts: so no path that makes something forgets them.
 * A tenant without a limit costs one look at an empty index; one with a limit counts under a lock of its own, so that two
 * that come at once cannot both have the last place. What each key counts: docs/adr/0018.
 */
export const QUOTAS = `
ALTER TABLE trivet.bucket
  -- What its objects take at the backend, when it was last asked; NULL: not yet, or the backend does not say.
  ADD COLUMN IF NOT EXISTS used_bytes bigint,
  ADD COLUMN measured_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE trivet.backend
  -- Bytes that the object store was told to keep the tenant below; NULL: no limit.
  ADD COLUMN told_limit bigint,
  ADD COLUMN told_at timestamptz;

-- Of the tenant that the transaction sees. Streams are counted by the gateways that serve them.
CREATE FUNCTION trivet.quota_used(p_tenant uuid, p_key text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  CASE p_key
    WHEN 'volumes' THEN
      RETURN (SELECT count(*) FROM trivet.volume WHERE tenant_id = p_tenant AND state <> 'gone');
    WHEN 'volume_bytes' THEN
      -- What is in the recycle bin counts until it is gone, and an expansion from its acceptance.
      RETURN (SELECT coalesce(sum(size_bytes), 0) FROM trivet.volume WHERE tenant_id = p_tenant AND state <> 'gone')
           + (SELECT coalesce(sum(greatest((o.request ->> 'sizeBytes')::numeric - v.size_bytes, 0)), 0)
                FROM trivet.operation o
                JOIN trivet.volume v ON v.tenant_id = o.tenant_id AND v.id = o.resource_id
               WHERE o.tenant_id = p_tenant AND o.kind = 'volume.expand' AND o.finished_at IS NULL);
    WHEN 'snapshots' THEN
      -- Whatever has an image: hidden ones, those of templates, and deleted ones that the next cut is compared with.
      RETURN (SELECT count(*) FROM trivet.snapshot WHERE tenant_id = p_tenant AND state <> 'gone')
           + (SELECT count(*) FROM trivet.snapshot
               WHERE tenant_id = p_tenant AND state = 'gone' AND cut IS NOT NULL AND image_gone_at IS NULL);
    WHEN 'buckets' THEN
      RETURN (SELECT count(*) FROM trivet.bucket WHERE tenant_id = p_tenant AND state <> 'gone');
    WHEN 'bucket_bytes' THEN
      RETURN (SELECT coalesce(sum(used_bytes), 0) FROM trivet.bucket WHERE tenant_id = p_tenant AND state <> 'gone');
    WHEN 'operations' THEN
      -- Those that somebody asked for: what the appliance does by itself has no actor.
      RETURN (SELECT count(*) FROM trivet.operation
               WHERE tenant_id = p_tenant AND finished_at IS NULL AND state IN ('pending', 'running')
                 AND actor IS NOT NULL);
    ELSE
      RETURN 0;
  END CASE;
END $$;

CREATE FUNCTION trivet.shown_bytes(p_bytes numeric) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN p_bytes >= 1073741824 AND p_bytes % 1073741824 = 0 THEN trunc(p_bytes / 1073741824) || ' GiB'
              WHEN p_bytes >= 1048576 AND p_bytes % 1048576 = 0 THEN trunc(p_bytes / 1048576) || ' MiB'
              ELSE p_bytes || ' bytes' END;
$$;

-- Rule: quotas. TG_ARGV: the keys that a new row of the table counts for. It runs with the rights of who inserts, and sees what he sees:
-- more would cost every creation a change of roles.
CREATE FUNCTION trivet.keep_quotas() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  quota record;
  added numeric;
  used bigint;
  had text;
BEGIN
  FOR quota IN
    SELECT q.tenant_id, q.key, q.value FROM trivet.tenant_quota q
     WHERE q.tenant_id IN (SELECT tenant_id FROM made) AND q.key = ANY (TG_ARGV) ORDER BY q.tenant_id, q.key
  LOOP
    IF TG_TABLE_NAME = 'operation' AND quota.key = 'operations' THEN
      -- Who takes something away is never refused: that is how a tenant gets below its limits.
      added := (SELECT count(*) FROM made
                 WHERE tenant_id = quota.tenant_id AND actor IS NOT NULL AND priority = 0 AND class <> 'destroy');
    ELSIF TG_TABLE_NAME = 'operation' THEN
      added := (SELECT sum((made.request ->> 'sizeBytes')::numeric - v.size_bytes)
                  FROM made JOIN trivet.volume v ON v.tenant_id = made.tenant_id AND v.id = made.resource_id
                 WHERE made.tenant_id = quota.tenant_id AND made.kind = 'volume.expand');
    ELSIF quota.key = 'volume_bytes' THEN
      added := (SELECT sum(size_bytes) FROM made WHERE tenant_id = quota.tenant_id);
    ELSIF quota.key = 'bucket_bytes' THEN
      -- It is empty still, and the one byte that it would hold at least is too much already.
      added := 1;
    ELSE
      added := (SELECT count(*) FROM made WHERE tenant_id = quota.tenant_id);
    END IF;
    CONTINUE WHEN coalesce(added, 0) <= 0;
    PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'quota', quota.tenant_id, quota.key), 0));
    -- A statement of its own: it sees what was committed before the lock was ours, and the new rows.
    used := trivet.quota_used(quota.tenant_id, quota.key);
    IF quota.key = 'bucket_bytes' THEN used := used + 1; END IF;
    CONTINUE WHEN used <= quota.value;
    had := CASE WHEN quota.key LIKE '%\\_bytes' THEN trivet.shown_bytes(used - added) ELSE (used - added)::text END;
    RAISE EXCEPTION 'tenant % may have % and has %',
      (SELECT name FROM trivet.tenant WHERE id = quota.tenant_id),
      CASE quota.key
        WHEN 'volumes' THEN quota.value || ' volumes, those in the recycle bin included,'
        WHEN 'volume_bytes' THEN trivet.shown_bytes(quota.value) || ' of volumes, those in the recycle bin included,'
        WHEN 'snapshots' THEN quota.value || ' snapshots, those of deleted ones that the next backup is compared with included,'
        WHEN 'buckets' THEN quota.value || ' buckets'
        WHEN 'bucket_bytes' THEN trivet.shown_bytes(quota.value) || ' in buckets'
        ELSE quota.value || ' operations under way'
      END,
      had || CASE quota.key WHEN 'volume_bytes' THEN '; this takes ' || trivet.shown_bytes(added) || ' more' ELSE '' END
      USING ERRCODE = 'TV002', DETAIL = quota.key;
  END LOOP;
  RETURN NULL;
END $$;

CREATE TRIGGER keep_quotas AFTER INSERT ON trivet.volume REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.keep_quotas('volumes', 'volume_bytes');
CREATE TRIGGER keep_quotas AFTER INSERT ON trivet.snapshot REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.keep_quotas('snapshots');
CREATE TRIGGER keep_quotas AFTER INSERT ON trivet.bucket REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.keep_quotas('buckets', 'bucket_bytes');
CREATE TRIGGER keep_quotas AFTER INSERT ON trivet.operation REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.keep_quotas('operations', 'volume_bytes');

-- For workers: whose bytes are limited, and whose were when a store was told last.
CREATE FUNCTION trivet.byte_limits() RETURNS TABLE (tenant_id uuid, value bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(q.tenant_id, b.tenant_id), q.value
    FROM (SELECT tenant_id, value FROM trivet.tenant_quota WHERE key = 'bucket_bytes') AS q
    FULL JOIN (SELECT DISTINCT tenant_id FROM trivet.backend WHERE told_limit IS NOT NULL) AS b USING (tenant_id);
$$;

REVOKE EXECUTE ON FUNCTION trivet.quota_used, trivet.shown_bytes, trivet.keep_quotas, trivet.byte_limits FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.byte_limits TO trivet_app;
GRANT EXECUTE ON FUNCTION trivet.quota_used, trivet.shown_bytes TO trivet_app;
`;
