import type { QueryRunner } from 'typeorm';
import { QUOTAS } from '#platform/migrations/0006-quotas';
import type { Migration } from '#platform/migrations/locks';

/** What leaves the recycle bin counts no more; for the rest as it was. */
export const QUOTA_USED = replaced('quota_used')
  .replace(
    "FROM trivet.volume WHERE tenant_id = p_tenant AND state <> 'gone');",
    `FROM trivet.volume WHERE tenant_id = p_tenant AND state <> 'gone'
                 AND NOT trivet.leaves_bin(state, binned_until));`,
  )
  .replace(
    "coalesce(sum(size_bytes), 0) FROM trivet.volume WHERE tenant_id = p_tenant AND state <> 'gone')",
    `coalesce(sum(size_bytes), 0) FROM trivet.volume WHERE tenant_id = p_tenant AND state <> 'gone'
                 AND NOT trivet.leaves_bin(state, binned_until))`,
  )
  .replace(
    'What is in the recycle bin counts until it is gone',
    'What is in the recycle bin counts until it leaves it',
  );

/** Quotas of volumes have the recycle bin give way, as pools do. */
const GIVES_WAY = `
-- Ends the time in the bin of as many volumes as hold p_over of the quota, the oldest first; of none where all together hold
-- less. Says what they hold. Whoever is being restored or removed is left alone.
CREATE FUNCTION trivet.bin_gives_way_to_quota(p_tenant uuid, p_key text, p_over numeric) RETURNS numeric
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held numeric := 0;
  one record;
  ids uuid[] := '{}';
BEGIN
  FOR one IN
    SELECT id, CASE p_key WHEN 'volumes' THEN 1 ELSE size_bytes END AS holds FROM trivet.volume
     WHERE tenant_id = p_tenant AND state = 'binned' AND binned_until > now()
     ORDER BY binned_until, id
       FOR UPDATE SKIP LOCKED
  LOOP
    EXIT WHEN held >= p_over;
    held := held + one.holds;
    ids := ids || one.id;
  END LOOP;
  IF held >= p_over THEN
    UPDATE trivet.volume SET binned_until = now() WHERE tenant_id = p_tenant AND id = ANY (ids);
  END IF;
  RETURN held;
END $$;

-- Called when p_added more of p_key is there: raises TV002 where that is more than p_limit, with what the bin has for it.
CREATE FUNCTION trivet.keep_volume_quota(p_tenant uuid, p_key text, p_limit bigint, p_added numeric) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  used bigint;
  held numeric;
  bytes boolean := p_key = 'volume_bytes';
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'quota', p_tenant, p_key), 0));
  -- A statement of its own: it sees what was committed before the lock was ours, and the new rows.
  used := trivet.quota_used(p_tenant, p_key);
  IF used <= p_limit THEN RETURN; END IF;
  held := trivet.bin_gives_way_to_quota(p_tenant, p_key, used - p_limit);
  IF held >= used - p_limit THEN RETURN; END IF;
  RAISE EXCEPTION 'tenant % may have % and has %; what helps: delete volumes, or a larger quota',
    (SELECT name FROM trivet.tenant WHERE id = p_tenant),
    CASE WHEN bytes THEN trivet.shown_bytes(p_limit) || ' of volumes' ELSE p_limit || ' volumes' END,
    CASE WHEN bytes THEN trivet.shown_bytes(used - p_added) || '; this takes ' || trivet.shown_bytes(p_added) || ' more'
         ELSE (used - p_added)::text END
      || CASE WHEN held = 0 THEN ''
              ELSE '; emptying the recycle bin would give back '
                || CASE WHEN bytes THEN trivet.shown_bytes(held) ELSE held::text END || ' only' END
    USING ERRCODE = 'TV002', DETAIL = p_key;
END $$;

-- A volume that had left the bin and is restored: what it held may be somebody else's by now.
CREATE FUNCTION trivet.keep_quotas_of(p_tenant uuid, p_bytes numeric) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  SELECT trivet.keep_volume_quota(q.tenant_id, q.key, q.value, CASE q.key WHEN 'volumes' THEN 1 ELSE p_bytes END)
    FROM (SELECT * FROM trivet.tenant_quota
           WHERE tenant_id = p_tenant AND key IN ('volumes', 'volume_bytes') ORDER BY key) AS q;
$$;

REVOKE EXECUTE ON FUNCTION trivet.bin_gives_way_to_quota, trivet.keep_volume_quota, trivet.keep_quotas_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.bin_gives_way_to_quota, trivet.keep_volume_quota, trivet.keep_quotas_of TO trivet_app;
`;

export const KEEP_QUOTAS = replaced('keep_quotas').replace(
  "    PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'quota', quota.tenant_id, quota.key), 0));",
  `    IF quota.key IN ('volumes', 'volume_bytes') THEN
      PERFORM trivet.keep_volume_quota(quota.tenant_id, quota.key, quota.value, added);
      CONTINUE;
    END IF;
$&`,
);

export class QuotaGivesWay1796515200000 implements Migration {
  readonly locks = {};

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [QUOTA_USED, GIVES_WAY, KEEP_QUOTAS]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of ['quota_used', 'keep_quotas']) await runner.query(replaced(name));
    await runner.query('DROP FUNCTION trivet.keep_quotas_of, trivet.keep_volume_quota, trivet.bin_gives_way_to_quota');
  }
}

/** As 0006 made it. */
function replaced(name: string): string {
  const [found] = new RegExp(`CREATE FUNCTION trivet\\.${name}\\(.*?\\nEND \\$\\$;`, 's').exec(QUOTAS)!;
  return found.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION');
}
