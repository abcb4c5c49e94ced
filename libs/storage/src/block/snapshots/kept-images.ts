import type { ImageRef } from '#backends/block-backend';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { snapshotImage } from '#storage/block/snapshots/snapshot-store';

/**
 * Why the image of a deleted snapshot stays, hidden (invariant C1). What changed until the next cut can only be found
 * while the images of both cuts are there, so the newest indexed one of a volume that lives is its anchor; one that is not
 * indexed yet is still to be read; and whoever reads an image has pinned it. `s` is the snapshot; temporary ones have no
 * cut and are not kept.
 */
const PINNED = `EXISTS (SELECT FROM trivet.snapshot_pin p
                         WHERE p.tenant_id = s.tenant_id AND p.snapshot_id = s.id AND p.expires_at > now())`;
/** Looked up for each: as EXISTS it may be planned as a table of all volumes of the tenant. */
const LIVES = `((SELECT true FROM trivet.volume v
                  WHERE v.tenant_id = s.tenant_id AND v.id = s.volume_id AND v.state IN ('creating', 'ready') LIMIT 1) IS NOT NULL)`;
const ANCHOR = `(s.cut IS NOT NULL AND s.index_state = 'indexed' AND ${LIVES}
  AND NOT EXISTS (SELECT FROM trivet.snapshot n
                   WHERE n.tenant_id = s.tenant_id AND n.volume_id = s.volume_id AND n.cut > s.cut
                     AND n.index_state = 'indexed' AND n.image_gone_at IS NULL))`;
/** By the index; a volume that is being deleted needs none. */
export const TO_BE_READ = `(s.cut IS NOT NULL AND s.index_state = 'pending' AND ${LIVES})`;
const IN_USE = `(s.cut IS NOT NULL AND ${PINNED} OR ${TO_BE_READ})`;
export const NEEDED = `(${IN_USE} OR ${ANCHOR})`;
/** Only what the next cut will need it for speaks against giving it up. */
export const MERE_ANCHOR = `(${ANCHOR} AND NOT ${IN_USE})`;

const LOCK = sql(
  'kept_lock',
  'SELECT s.id FROM trivet.snapshot s WHERE s.tenant_id = $1 AND s.id = ANY ($2) ORDER BY s.id FOR UPDATE',
);
const GIVE_UP = sql(
  'kept_give_up',
  `UPDATE trivet.snapshot s SET image_gone_at = now()
    WHERE s.tenant_id = $1 AND s.id = ANY ($2) AND s.image_gone_at IS NULL AND NOT ${NEEDED}`,
);
const GIVE_UP_ANCHORS = sql(
  'kept_give_up_anchors',
  `UPDATE trivet.snapshot s SET image_gone_at = now()
    WHERE s.tenant_id = $1 AND s.id = ANY ($2) AND s.image_gone_at IS NULL AND NOT ${IN_USE}`,
);
const GIVEN_UP = sql(
  'kept_given_up',
  `SELECT s.id, s.pool, s.folder FROM trivet.snapshot s
    WHERE s.tenant_id = $1 AND s.id = ANY ($2) AND s.image_gone_at IS NOT NULL ORDER BY s.id`,
);

/**
 * Gives up the images of these snapshots that nobody needs, and returns them: they may be unlinked from the commit on. It
 * cannot be taken back: who pins or reads an image looks at the same row, under its lock.
 * @param anchors they too: what changed until the volume's next cut will not be known
 */
export async function giveUpImages(
  tx: Tx,
  tenantId: string,
  snapshotIds: readonly string[],
  { anchors = false }: { anchors?: boolean } = {},
): Promise<ImageRef[]> {
  const key = [tenantId, snapshotIds];
  await tx.query(LOCK, key);
  // Statements of their own: what the locking one saw may be older.
  await tx.query(anchors ? GIVE_UP_ANCHORS : GIVE_UP, key);
  const rows = await tx.query<{ id: string; pool: string; folder: string }>(GIVEN_UP, key);
  return rows.map(snapshotImage);
}
