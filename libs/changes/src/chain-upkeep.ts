import { readChain } from '#changes/chain';
import { readSpans } from '#changes/index-store';
import { mergeChanges } from '#changes/merge-changes';
import { missingMerge } from '#changes/span-path';
import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { Begin } from '#operations/accepting/operations';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';

const log = createLogger('changes');

/** Steps removed in a transaction. */
const PORTION = 50;
/** Whatever is building there ends meanwhile, or is given up. */
const LATER_MS = 60_000;

/** Steps of a volume that lead from or to no cut of its chain, and what was never finished. */
const CLEAR = sql(
  'upkeep_clear',
  `DELETE FROM trivet.change_step WHERE tenant_id = $1 AND id IN (
     SELECT c.id FROM trivet.change_step c
      WHERE c.tenant_id = $1 AND c.volume_id = $2
        AND (NOT EXISTS (SELECT FROM trivet.snapshot s
                          WHERE s.tenant_id = $1 AND s.volume_id = c.volume_id AND s.cut = c.to_cut)
          OR c.kind = 'delta'
         AND NOT EXISTS (SELECT FROM trivet.snapshot s
                          WHERE s.tenant_id = $1 AND s.volume_id = c.volume_id AND s.cut = c.from_cut)
          OR c.state = 'building'
         AND NOT EXISTS (SELECT FROM trivet.operation_slot o
                          WHERE o.tenant_id = $1 AND o.resource_id = c.volume_id AND o.slot = 'index'))
      LIMIT $3)
   RETURNING 1`,
);
const UNFINISHED = sql(
  'upkeep_unfinished',
  `SELECT FROM trivet.change_step WHERE tenant_id = $1 AND volume_id = $2 AND state = 'building' LIMIT 1`,
);
/** Spans are made as long as the pool's index stores no more than its part ($3). */
const PLACE = sql(
  'upkeep_place',
  `SELECT v.backend_id AS "backendId",
          coalesce((SELECT sum(t.bytes) FROM trivet.tally t
                     WHERE t.tenant_id = v.tenant_id AND t.kind = 'change_step' AND t.backend_id = v.backend_id AND t.pool = v.pool), 0)
            <= p.total_bytes * $3::float8 AS "hasRoom"
     FROM trivet.volume v
     JOIN trivet.pool p ON p.tenant_id = v.tenant_id AND p.backend_id = v.backend_id AND p.name = v.pool
    WHERE v.tenant_id = $1 AND v.id = $2 AND v.state = 'ready'`,
);
const LOCK_VOLUME = sql(
  'upkeep_lock_volume',
  "SELECT name FROM trivet.volume WHERE tenant_id = $1 AND id = $2 AND state = 'ready' FOR UPDATE",
);
const INDEX_BUSY = sql(
  'upkeep_index_busy',
  "SELECT FROM trivet.operation_slot WHERE tenant_id = $1 AND resource_id = $2 AND slot = 'index' LIMIT 1",
);
const DONE = sql('upkeep_done', 'DELETE FROM trivet.change_upkeep WHERE tenant_id = $1 AND seq = ANY ($2::bigint[])');
const LATER = sql(
  'upkeep_later',
  `UPDATE trivet.change_upkeep SET due_at = now() + $3::float8 * interval '1 ms' WHERE tenant_id = $1 AND seq = $2`,
);

/** A volume with its entries in the queue. */
export interface QueuedChain {
  volumeId: string;
  entries: string[];
}

/**
 * Looks at one chain: steps that lead nowhere are removed, then the lowest span that is missing is asked for. Its end queues the
 * volume again (rule: change upkeep), so a chain is merged span by span.
 * @param mergedShare of a pool, up to which merged spans are made
 * @returns whether there is more to remove; then it stays in the queue, and is due
 */
export async function keepChain(
  database: Database,
  tenantId: string,
  { volumeId, entries }: QueuedChain,
  mergedShare: number,
): Promise<boolean> {
  const chain = [tenantId, volumeId];
  const { removed, unfinished, place } = await database.withTenant(tenantId, async tx => ({
    removed: await tx.query(CLEAR, [...chain, PORTION]),
    unfinished: (await tx.query(UNFINISHED, chain)).length > 0,
    place: (await tx.query<{ backendId: string; hasRoom: boolean | null }>(PLACE, [...chain, mergedShare]))[0],
  }));
  if (removed.length === PORTION) return true;
  const isSettled = place?.hasRoom ? await merge(database, { ...place, tenantId }, volumeId) : true;
  const [first, ...others] = entries;
  await database.withTenant(tenantId, async tx => {
    const waits = unfinished || !isSettled;
    if (waits) await tx.query(LATER, [tenantId, first, LATER_MS]);
    await tx.query(DONE, [tenantId, waits ? others : entries]);
  });
  return false;
}

/** False: something else has the chain now. */
async function merge(
  database: Database,
  place: { tenantId: string; backendId: string },
  volumeId: string,
): Promise<boolean> {
  try {
    return await acceptInBackground(database, place, (tx, begin) => beginMerge(tx, begin, place.tenantId, volumeId));
  } catch (error) {
    // Somebody else was faster.
    if (!isStorageError(error)) log.error({ volumeId, err: error }, 'defect in keeping the change index');
    return false;
  }
}

async function beginMerge(tx: Tx, begin: Begin, tenantId: string, volumeId: string): Promise<boolean> {
  const [volume] = await tx.query<{ name: string }>(LOCK_VOLUME, [tenantId, volumeId]);
  if (!volume) return true;
  const chain = await readChain(tx, tenantId, volumeId);
  if (chain.length < 3) return true;
  if ((await tx.query(INDEX_BUSY, [tenantId, volumeId])).length > 0) return false;
  const spans = await readSpans(tx, tenantId, volumeId, chain[0]!.cut, chain.at(-1)!.cut);
  const cuts = chain.map(({ cut }) => cut);
  const missing = missingMerge(cuts, spans);
  if (missing) await begin(mergeChanges, { resourceId: volumeId, resourceName: volume.name, request: { ...missing } });
  return true;
}
