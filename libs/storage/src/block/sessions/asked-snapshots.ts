import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isUuid } from '#platform/uuid';
import type { SnapshotState } from '#storage/block/snapshots/snapshot-store';

/** Hidden ones are in no list and in no chain of changes; those of a deleted volume went with it. */
const FOUND = `SELECT s.id, s.name, s.volume_id AS "volumeId", s.state, s.cut IS NOT NULL AS cut, b.kind AS "backendKind"
  FROM trivet.backend b
  JOIN trivet.snapshot s ON s.tenant_id = b.tenant_id AND s.backend_id = b.id
  JOIN trivet.volume v ON v.tenant_id = s.tenant_id AND v.id = s.volume_id
   AND v.state NOT IN ('deleting', 'binned', 'gone')
 WHERE b.tenant_id = $1 AND NOT s.hidden`;
/** A deleted one that has its place among the cuts may still be a base (invariant C8); one that has lost it was known. */
const BY_ID = sql(
  'asked_snapshots_by_id',
  `${FOUND} AND s.id = ANY ($2::uuid[]) AND (s.state IN ('creating', 'ready') OR s.size_bytes IS NOT NULL)`,
);
const BY_NAME = sql('asked_snapshots_by_name', `${FOUND} AND s.name = ANY ($2) AND s.state IN ('creating', 'ready')`);

export interface AskedSnapshot {
  id: string;
  name: string;
  volumeId: string;
  state: SnapshotState;
  cut: boolean;
  backendKind: string;
}

/** Each as it was asked for, in order; or the first reason why a session over all of them cannot be. */
export async function findAsked(
  tx: Tx,
  tenantId: string,
  asked: readonly string[],
): Promise<{ snapshots: AskedSnapshot[] } | { error: string }> {
  const byId = new Map(
    (await tx.query<AskedSnapshot>(BY_ID, [tenantId, asked.filter(isUuid)])).map(found => [found.id, found]),
  );
  const named = await tx.query<AskedSnapshot>(BY_NAME, [tenantId, asked]);
  const snapshots: AskedSnapshot[] = [];
  for (const text of asked) {
    const candidates = byId.has(text) ? [byId.get(text)!] : named.filter(({ name }) => name === text);
    const [found, another] = candidates;
    if (!found) return { error: `snapshot ${text} does not exist` };
    if (another) return { error: `several volumes have a snapshot of the name ${text}: give its id` };
    if (!found.cut && (found.state === 'gone' || found.state === 'deleting'))
      return {
        error: `snapshot ${text} was deleted, and what changed since it is not known any more: do a full backup`,
      };
    if (found.state === 'creating') return { error: `snapshot ${text} is not ready: it is still being made` };
    snapshots.push(found);
  }
  return { snapshots };
}
