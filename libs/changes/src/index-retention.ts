import { keepChain, type QueuedChain } from '#changes/chain-upkeep';
import { mergeChanges } from '#changes/merge-changes';
import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { Begin } from '#operations/accepting/operations';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { beginRelease } from '#storage/block/snapshots/release-snapshot';

const log = createLogger('changes');

/** Of a tenant and round, of what is queued and of what leaves. */
const PORTION = 50;
/** Of a pool: beyond it deleted snapshots leave the index before their time, oldest first, so many a round. */
const STORED_SHARE = 0.01;
const EARLY = 5;
/** Merged spans only make long deltas faster: below this part of what may be stored. */
const MERGED_SHARE = 0.5;

const DUE = sql('retention_due', 'SELECT tenant_id AS "tenantId" FROM trivet.change_upkeep_due($1, $2)');
const QUEUED = sql(
  'retention_queued',
  `SELECT volume_id AS "volumeId", seq::text AS entry FROM trivet.change_upkeep
    WHERE tenant_id = $1 AND due_at <= now() ORDER BY due_at, seq LIMIT $2`,
);
const FULL = sql(
  'retention_full',
  `SELECT p.backend_id AS "backendId", p.name FROM trivet.pool p
    WHERE p.tenant_id = $1 AND p.total_bytes > 0
      AND p.total_bytes * $2::float8 < (SELECT sum(t.bytes) FROM trivet.tally t
                                         WHERE t.tenant_id = $1 AND t.kind = 'change_step' AND t.backend_id = p.backend_id AND t.pool = p.name)`,
);
const TOMBSTONE = `s.tenant_id = $1 AND s.state = 'gone' AND s.cut IS NOT NULL
  AND s.index_state <> 'pending' AND s.active_operation IS NULL`;
const EXPIRED = sql(
  'retention_expired',
  `SELECT s.id, s.backend_id AS "backendId", s.image_gone_at IS NULL AS kept FROM trivet.snapshot s
    WHERE ${TOMBSTONE} AND s.updated_at < now() - $2::float8 * interval '1 ms' ORDER BY s.updated_at LIMIT $3`,
);
const OLDEST = sql(
  'retention_oldest',
  `SELECT s.id, s.backend_id AS "backendId", false AS kept FROM trivet.snapshot s
    WHERE ${TOMBSTONE} AND s.backend_id = $2 AND s.pool = $3 AND s.image_gone_at IS NOT NULL ORDER BY s.updated_at LIMIT $4`,
);
const CLAIM = sql(
  'retention_claim',
  `UPDATE trivet.snapshot s SET active_operation = $3
    WHERE ${TOMBSTONE} AND s.id = $2 AND s.image_gone_at IS NOT NULL
   RETURNING s.name, s.volume_id AS "volumeId"`,
);

interface Tombstone {
  id: string;
  backendId: string;
  kept: boolean;
}

/**
 * Keeps the change index small and fast (invariant C6): a deleted snapshot can be the base of a delta for `retentionMs`, then it
 * leaves the chain and its two steps become one; a chain is looked at when it has changed (rule: change upkeep). A round asks which
 * tenants have something to do, and does a portion of each.
 */
export class IndexRetention implements PeriodicTask {
  readonly name = 'change-retention';
  readonly everyMs = 10_000;
  readonly scope = 'appliance';

  constructor(
    private readonly database: Database,
    private readonly options: { retentionMs: number },
  ) {}

  async run(signal: AbortSignal): Promise<'more' | undefined> {
    const due = [this.options.retentionMs, STORED_SHARE];
    const failures: unknown[] = [];
    let isMore = false;
    for (const { tenantId } of await this.database.engine<{ tenantId: string }>(DUE, due)) {
      if (signal.aborted) return undefined;
      isMore = (await this.keep(tenantId, signal, failures)) || isMore;
    }
    if (failures.length > 0) throw failures[0];
    return isMore ? 'more' : undefined;
  }

  /** @returns whether a portion was not enough */
  private async keep(tenantId: string, signal: AbortSignal, failures: unknown[]): Promise<boolean> {
    const { expired, full, queued } = await this.database.withTenant(tenantId, async tx => ({
      expired: await tx.query<Tombstone>(EXPIRED, [tenantId, this.options.retentionMs, PORTION]),
      full: await tx.query<{ backendId: string; name: string }>(FULL, [tenantId, STORED_SHARE]),
      queued: await tx.query<{ volumeId: string; entry: string }>(QUEUED, [tenantId, PORTION]),
    }));
    for (const tombstone of expired) if (!signal.aborted) await this.leave(tenantId, tombstone);
    for (const pool of full) if (!signal.aborted) await this.leaveEarly(tenantId, pool);
    let isMore = queued.length === PORTION;
    for (const chain of byVolume(queued)) {
      if (signal.aborted) return false;
      const left = await keepChain(this.database, tenantId, chain, STORED_SHARE * MERGED_SHARE).catch(error => {
        // Those behind it have their turn.
        failures.push(error);
        return false;
      });
      isMore ||= left;
    }
    return isMore;
  }

  private async leaveEarly(tenantId: string, { backendId, name }: { backendId: string; name: string }): Promise<void> {
    const oldest = await this.database.withTenant(tenantId, tx =>
      tx.query<Tombstone>(OLDEST, [tenantId, backendId, name, EARLY]),
    );
    if (oldest.length > 0) log.warn({ pool: name, snapshots: oldest.length }, 'the change index of this pool is full');
    for (const tombstone of oldest) await this.leave(tenantId, tombstone);
  }

  /** The image goes first, if there still is one: nobody can ask for a difference to it any more. */
  private async leave(tenantId: string, { id, backendId, kept }: Tombstone): Promise<void> {
    const place = { tenantId, backendId };
    await acceptInBackground<unknown>(this.database, place, (tx, begin, operationId) =>
      kept
        ? beginRelease(tx, begin, { ...place, operationId }, id, { anchor: true })
        : beginLeave(tx, begin, tenantId, id, operationId),
    ).catch(error => {
      // Somebody else was faster.
      if (!isStorageError(error)) log.error({ err: error }, 'defect in keeping the change index');
    });
  }
}

function byVolume(queued: readonly { volumeId: string; entry: string }[]): Iterable<QueuedChain> {
  const chains = new Map<string, QueuedChain>();
  for (const { volumeId, entry } of queued) {
    const chain = chains.get(volumeId);
    if (chain) chain.entries.push(entry);
    else chains.set(volumeId, { volumeId, entries: [entry] });
  }
  return chains.values();
}

async function beginLeave(
  tx: Tx,
  begin: Begin,
  tenantId: string,
  snapshotId: string,
  operationId: string,
): Promise<void> {
  const [row] = await tx.query<{ name: string; volumeId: string }>(CLAIM, [tenantId, snapshotId, operationId]);
  if (row)
    await begin(mergeChanges, { resourceId: row.volumeId, resourceName: row.name, request: { leaves: snapshotId } });
}
