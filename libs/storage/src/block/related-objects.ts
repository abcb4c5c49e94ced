import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** Of each sort: a volume may have snapshots for years. */
const MOST = 500;

/** Of snapshots the newest: those with a cut by its index, gone ones for as long as their rows are kept, and those being made. */
const RELATED = sql(
  'related_objects',
  `(SELECT id FROM trivet.publication WHERE tenant_id = $1 AND volume_id = $2 LIMIT $3)
   UNION ALL (SELECT id FROM trivet.publication WHERE tenant_id = $1 AND host_id = $2 LIMIT $3)
   UNION ALL
   SELECT unnest(ARRAY[s.id, s.snapshot_group_id]) AS id
     FROM ((SELECT id, snapshot_group_id FROM trivet.snapshot
             WHERE tenant_id = $1 AND volume_id = $2 AND cut IS NOT NULL ORDER BY cut DESC LIMIT $3)
           UNION ALL
           (SELECT id, snapshot_group_id FROM trivet.snapshot
             WHERE tenant_id = $1 AND volume_id = $2 AND cut IS NULL AND state <> 'gone' LIMIT $3)) AS s`,
);

/** A volume or a host itself, and what hangs on it: its publications, its snapshots with their groups. */
export async function relatedTo(database: Database, tenantId: string, id: string): Promise<string[]> {
  const rows = await database.withTenant(tenantId, tx =>
    tx.query<{ id: string | null }>(RELATED, [tenantId, id, MOST]),
  );
  return [...new Set([id, ...rows.flatMap(row => row.id ?? [])])];
}
