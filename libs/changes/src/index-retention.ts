import { readChain } from '#changes/chain';
import { readSpans } from '#changes/index-store';
import { mergeChanges } from '#changes/merge-changes';
import { missingMerge } from '#changes/span-path';
import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { Begin } from '#operations/accepting/operations';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { eachBlockBackend } from '#storage/block/pools/block-backends';
import { beginRelease } from '#storage/block/snapshots/release-snapshot';

const log = createLogger('changes');

const PORTION = 50;
/** For the first round: all that there is. */
const EVER_MS = 1e12;
/** Of a pool: beyond it deleted snapshots leave the index before their time, oldest first, so many a round. */
const STORED_SHARE = 0.01;
const EARLY = 5;
/** Merged spans only make long deltas faster: below this part of what may be stored. */
const MERGED_SHARE = 0.5;

/** Steps that lead from or to no cut of a chain, and what was never finished. */
const CLEAR = sql(
  'retention_clear',
  `DELETE FROM trivet.change_step WHERE tenant_id = $1 AND id IN (
     SELECT c.id FROM trivet.change_step c
      WHERE c.tenant_id = $1
        AND (NOT EXISTS (SELECT FROM trivet.snapshot s
                          WHERE s.tenant_id = $1 AND s.volume_id = c.volume_id AND s.cut = c.to_cut)
          OR c.kind = 'delta'
         AND NOT EXISTS (SELECT FROM trivet.snapshot s
                          WHERE s.tenant_id = $1 AND s.volume_id = c.volume_id AND s.cut = c.from_cut)
          OR c.state = 'building'
         AND NOT EXISTS (SELECT FROM trivet.operation_slot o
                          WHERE o.tenant_id = $1 AND o.resource_id = c.volume_id AND o.slot = 'index'))
      LIMIT $2)`,
);
const POOLS = sql(
  'retention_pools',
  `SELECT p.name, p.total_bytes::float8 AS "totalBytes",
          coalesce((SELECT sum(c.stored_bytes) FROM trivet.change_step c
                      JOIN trivet.volume v ON v.tenant_id = c.tenant_id AND v.id = c.volume_id
                     WHERE c.tenant_id = $1 AND v.backend_id = $2 AND v.pool = p.name), 0)::float8 AS "storedBytes"
     FROM trivet.pool p WHERE p.tenant_id = $1 AND p.backend_id = $2`,
);
const TOMBSTONE = `s.tenant_id = $1 AND s.backend_id = $2 AND s.state = 'gone' AND s.cut IS NOT NULL
  AND s.index_state <> 'pending' AND s.active_operation IS NULL`;
const EXPIRED = sql(
  'retention_expired',
  `SELECT s.id, s.image_gone_at IS NULL AS kept FROM trivet.snapshot s
    WHERE ${TOMBSTONE} AND s.updated_at < now() - $3::float8 * interval '1 ms' ORDER BY s.updated_at LIMIT $4`,
);
const OLDEST = sql(
  'retention_oldest',
  `SELECT s.id, false AS kept FROM trivet.snapshot s
    WHERE ${TOMBSTONE} AND s.pool = $3 AND s.image_gone_at IS NOT NULL ORDER BY s.updated_at LIMIT $4`,
);
const CLAIM = sql(
  'retention_claim',
  `UPDATE trivet.snapshot s SET active_operation = $4
    WHERE ${TOMBSTONE} AND s.id = $3 AND s.image_gone_at IS NOT NULL
   RETURNING s.name, s.volume_id AS "volumeId"`,
);
const GROWN = sql(
  'retention_grown',
  `SELECT DISTINCT c.volume_id AS id FROM trivet.change_step c
     JOIN trivet.volume v ON v.tenant_id = c.tenant_id AND v.id = c.volume_id
    WHERE c.tenant_id = $1 AND v.backend_id = $2 AND v.pool = $3 AND c.created_at > now() - $4::float8 * interval '1 ms'`,
);
const LOCK_VOLUME = sql(
  'retention_lock_volume',
  "SELECT name FROM trivet.volume WHERE tenant_id = $1 AND id = $2 AND state = 'ready' FOR UPDATE",
);
const INDEX_BUSY = sql(
  'retention_index_busy',
  "SELECT FROM trivet.operation_slot WHERE tenant_id = $1 AND resource_id = $2 AND slot = 'index' LIMIT 1",
);

interface Place {
  tenantId: string;
  backendId: string;
}

/**
 * Keeps the index small and fast (invariant C6). A deleted snapshot can be the base of a delta for `retentionMs`, then it
 * leaves the chain and its two steps become one; steps that lead nowhere are removed; merged spans are made.
 */
export class IndexRetention implements PeriodicTask {
  readonly name = 'change-retention';
  readonly everyMs = 10_000;
  readonly scope = 'appliance';
  private doneAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly database: Database,
    private readonly options: { retentionMs: number },
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const now = performance.now();
    const sinceMs = Math.min(now - this.doneAt + 2 * this.everyMs, EVER_MS);
    await eachBlockBackend(this.database, async ({ tenantId, backendId }) => {
      const place = { tenantId, backendId };
      const { expired, pools } = await this.database.withTenant(tenantId, async tx => {
        await tx.query(CLEAR, [tenantId, PORTION]);
        return {
          expired: await tx.query<Tombstone>(EXPIRED, [tenantId, backendId, this.options.retentionMs, PORTION]),
          pools: await tx.query<PoolUse>(POOLS, [tenantId, backendId]),
        };
      });
      for (const tombstone of expired) if (!signal.aborted) await this.leave(place, tombstone);
      for (const { name, totalBytes, storedBytes } of pools) {
        if (signal.aborted) return;
        const limit = totalBytes * STORED_SHARE;
        if (totalBytes > 0 && storedBytes > limit) await this.leaveEarly(place, name);
        if (storedBytes <= limit * MERGED_SHARE) await this.merge(place, name, sinceMs, signal);
      }
    });
    if (!signal.aborted) this.doneAt = now;
  }

  private async leaveEarly(place: Place, pool: string): Promise<void> {
    const { tenantId, backendId } = place;
    const oldest = await this.database.withTenant(tenantId, tx =>
      tx.query<Tombstone>(OLDEST, [tenantId, backendId, pool, EARLY]),
    );
    if (oldest.length > 0) log.warn({ pool, snapshots: oldest.length }, 'the change index of this pool is full');
    for (const tombstone of oldest) await this.leave(place, tombstone);
  }

  /** The image goes first, if there still is one: nobody can ask for a difference to it any more. */
  private leave(place: Place, { id, kept }: Tombstone): Promise<void> {
    return this.accept(place, (tx, begin, operationId) =>
      kept
        ? beginRelease(tx, begin, { ...place, operationId }, id, { anchor: true })
        : beginLeave(tx, begin, { ...place, operationId }, id),
    );
  }

  private async merge(place: Place, pool: string, sinceMs: number, signal: AbortSignal): Promise<void> {
    const { tenantId, backendId } = place;
    const volumes = await this.database.withTenant(tenantId, tx =>
      tx.query<{ id: string }>(GROWN, [tenantId, backendId, pool, sinceMs]),
    );
    for (const { id } of volumes)
      if (!signal.aborted) await this.accept(place, (tx, begin) => beginMerge(tx, begin, tenantId, id));
  }

  private async accept(
    place: Place,
    claim: (tx: Tx, begin: Begin, operationId: string) => Promise<unknown>,
  ): Promise<void> {
    await acceptInBackground(this.database, place, claim).catch(error => {
      // Somebody else was faster.
      if (!isStorageError(error)) log.error({ err: error }, 'defect in keeping the change index');
    });
  }
}

interface Tombstone {
  id: string;
  kept: boolean;
}

interface PoolUse {
  name: string;
  totalBytes: number;
  storedBytes: number;
}

async function beginLeave(
  tx: Tx,
  begin: Begin,
  { tenantId, backendId, operationId }: Place & { operationId: string },
  snapshotId: string,
): Promise<void> {
  const [row] = await tx.query<{ name: string; volumeId: string }>(CLAIM, [
    tenantId,
    backendId,
    snapshotId,
    operationId,
  ]);
  if (row)
    await begin(mergeChanges, {
      resourceId: row.volumeId,
      resourceName: row.name,
      request: { leaves: snapshotId },
    });
}

async function beginMerge(tx: Tx, begin: Begin, tenantId: string, volumeId: string): Promise<void> {
  const [volume] = await tx.query<{ name: string }>(LOCK_VOLUME, [tenantId, volumeId]);
  if (!volume || (await tx.query(INDEX_BUSY, [tenantId, volumeId])).length > 0) return;
  const chain = await readChain(tx, tenantId, volumeId);
  if (chain.length < 3) return;
  const spans = await readSpans(tx, tenantId, volumeId, chain[0]!.cut, chain.at(-1)!.cut);
  const cuts = chain.map(({ cut }) => cut);
  const missing = missingMerge(cuts, spans);
  if (missing) await begin(mergeChanges, { resourceId: volumeId, resourceName: volume.name, request: { ...missing } });
}
