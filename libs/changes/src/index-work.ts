import type { ImageRef } from '#backends/block-backend';
import { keepBuilt } from '#changes/build-portion';
import { type NewStep, readLists } from '#changes/index-store';
import { Cancelled } from '#operations/leases/lease';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { TO_BE_READ } from '#storage/block/snapshots/kept-images';
import { snapshotImage } from '#storage/block/snapshots/snapshot-store';

/** Steps after an allocated list before the next one is kept (invariant C5). */
const LIST_EVERY = 16;

const TARGET = sql(
  'changes_target',
  `SELECT s.id, s.name, s.pool, s.folder, s.cut::float8 AS cut, s.size_bytes::float8 AS "sizeBytes",
          s.volume_id AS "volumeId"
     FROM trivet.snapshot s
    WHERE s.tenant_id = $1 AND s.id = $2 AND s.image_gone_at IS NULL AND ${TO_BE_READ}
      AND NOT EXISTS (SELECT FROM trivet.snapshot p
                       WHERE p.tenant_id = $1 AND p.volume_id = s.volume_id AND p.cut < s.cut AND p.index_state = 'pending'
                         AND p.image_gone_at IS NULL)`,
);
/** The newest indexed cut before it, and the newest of them whose image is there. Broken ones are in no chain. */
const BASES = sql(
  'changes_bases',
  `(SELECT s.id, s.name, s.pool, s.folder, s.cut::float8 AS cut, s.size_bytes::float8 AS "sizeBytes"
      FROM trivet.snapshot s
     WHERE s.tenant_id = $1 AND s.volume_id = $2 AND s.cut < $3 AND s.index_state = 'indexed'
     ORDER BY s.cut DESC LIMIT 1)
   UNION ALL
   (SELECT s.id, s.name, s.pool, s.folder, s.cut::float8, s.size_bytes::float8
      FROM trivet.snapshot s
     WHERE s.tenant_id = $1 AND s.volume_id = $2 AND s.cut < $3 AND s.index_state = 'indexed'
       AND s.image_gone_at IS NULL
     ORDER BY s.cut DESC LIMIT 1)`,
);
const SINCE = sql(
  'changes_since_list',
  `SELECT count(*)::float8 AS steps, coalesce(sum(ranges), 0)::float8 AS ranges FROM trivet.change_step
    WHERE tenant_id = $1 AND volume_id = $2 AND kind = 'delta' AND state = 'ready' AND level = 0 AND from_cut >= $3`,
);

export interface CutImage {
  id: string;
  name: string;
  cut: number;
  sizeBytes: number;
  image: ImageRef;
}

/** What is to be built for one snapshot. */
export interface IndexWork {
  target: CutImage & { volumeId: string };
  /** The nearest earlier cut whose image is there: the step begins there. */
  base?: CutImage;
  /** The cut before, when its image is gone: what changed since then is not known any more. */
  gap?: CutImage;
  /** Of the newest allocated list that the base is reached from, and the steps since. */
  list?: { ranges: number; stepsSince: number; rangesSince: number };
}

interface CutRow {
  id: string;
  name: string;
  pool: string;
  folder: string;
  cut: number;
  sizeBytes: number;
}

const cutImage = (row: CutRow): CutImage => ({
  id: row.id,
  name: row.name,
  cut: row.cut,
  sizeBytes: row.sizeBytes,
  image: snapshotImage(row),
});

/**
 * Ends the operation as cancelled when there is nothing to do: the snapshot left the chain, or is leaving it with its volume,
 * before it began, or when it could not be read and is looked at again; or somebody cancelled the building of an earlier one,
 * and both are begun again, in order (IndexScheduler). The base's image stays as long as this is not done
 * (#storage/block/snapshots/kept-images), and nobody gives it up meanwhile: that needs the slot which this operation has.
 */
export async function readIndexWork(tx: Tx, operation: LeasedOperation): Promise<IndexWork> {
  const { tenantId } = operation;
  const [row] = await tx.query<CutRow & { volumeId: string }>(TARGET, [tenantId, operation.resourceId]);
  if (!row) throw new Cancelled();
  const { volumeId } = row;
  const rows = await tx.query<CutRow>(BASES, [tenantId, volumeId, row.cut]);
  const [before, base] = rows.map(cutImage);
  const work: IndexWork = { target: { ...cutImage(row), volumeId } };
  if (before && before.cut !== base?.cut) work.gap = before;
  if (base) {
    work.base = base;
    const [list] = await readLists(tx, tenantId, volumeId, base.cut, 1);
    if (list) {
      const [since] = await tx.query<{ steps: number; ranges: number }>(SINCE, [tenantId, volumeId, list.to]);
      work.list = { ranges: list.ranges, stepsSince: since!.steps, rangesSince: since!.ranges };
    }
  }
  await keepBuilt(tx, operation, [...(base ? [deltaOf({ ...work, base })] : []), listOf(work)]);
  return work;
}

export const deltaOf = ({ target, base }: IndexWork & { base: CutImage }): Omit<NewStep, 'id'> => ({
  volumeId: target.volumeId,
  kind: 'delta',
  level: 0,
  from: base.cut,
  to: target.cut,
  baseBytes: base.sizeBytes,
  targetBytes: target.sizeBytes,
});

export const listOf = ({ target }: Pick<IndexWork, 'target'>): Omit<NewStep, 'id'> => ({
  volumeId: target.volumeId,
  kind: 'allocated',
  level: 0,
  from: 0,
  to: target.cut,
  baseBytes: 0,
  targetBytes: target.sizeBytes,
});

/** The list of this snapshot is kept whole: folding it from an earlier one would not be possible, or not be worth it. */
export function needsList({ list }: IndexWork, delta: { ranges: number } | undefined): boolean {
  if (!list || !delta) return true;
  return list.stepsSince + 1 >= LIST_EVERY || list.rangesSince + delta.ranges > list.ranges;
}
