import type { TestDatabase } from '#test/support/database';

/** Counted from the rows themselves, in one statement with what tallies say. */
const DIFFERENT = `
SELECT kind || ' in ' || coalesce(nullif(pool, ''), '-') || ': ' || coalesce(t.things, 0) || ' of ' || coalesce(t.bytes, 0)
         || ' bytes told, ' || coalesce(r.things, 0) || ' of ' || coalesce(r.bytes, 0) || ' there' AS text
  FROM (SELECT tenant_id, 'volume' AS kind, backend_id, pool, count(*) AS things, sum(greatest(size_bytes, growing_to)) AS bytes
          FROM trivet.volume
         WHERE state IN ('creating', 'ready', 'binned') OR state = 'deleting' AND binned_until IS NULL GROUP BY 1, 3, 4
        UNION ALL
        SELECT tenant_id, 'binned', backend_id, pool, count(*), 0 FROM trivet.volume WHERE state = 'binned' GROUP BY 1, 3, 4
        UNION ALL
        SELECT tenant_id, 'registered', backend_id, '', count(*), coalesce(sum(used_bytes), 0) FROM trivet.bucket
         WHERE state <> 'gone' AND origin = 'registered' GROUP BY 1, 3
        UNION ALL
        SELECT tenant_id, 'snapshot', backend_id, '', count(*), 0 FROM trivet.snapshot
         WHERE state <> 'gone' OR image_gone_at IS NULL AND cut IS NOT NULL GROUP BY 1, 3
        UNION ALL
        SELECT tenant_id, 'bucket', backend_id, '', count(*), coalesce(sum(used_bytes), 0) FROM trivet.bucket
         WHERE state <> 'gone' GROUP BY 1, 3
        UNION ALL
        SELECT c.tenant_id, 'change_step', v.backend_id, v.pool, count(*), sum(c.stored_bytes)
          FROM trivet.change_step c JOIN trivet.volume v ON v.tenant_id = c.tenant_id AND v.id = c.volume_id
         WHERE c.stored_bytes > 0 GROUP BY 1, 3, 4) AS r
  FULL JOIN (SELECT tenant_id, kind, backend_id, pool, sum(things) AS things, sum(bytes) AS bytes
               FROM trivet.tally GROUP BY 1, 2, 3, 4) AS t USING (tenant_id, kind, backend_id, pool)
 WHERE coalesce(t.things, 0) <> coalesce(r.things, 0) OR coalesce(t.bytes, 0) <> coalesce(r.bytes, 0)`;

/** Empty: all tallies say what is there. */
export async function wrongTallies({ query }: Pick<TestDatabase, 'query'>): Promise<string[]> {
  return (await query<{ text: string }>(DIFFERENT)).map(({ text }) => text);
}
