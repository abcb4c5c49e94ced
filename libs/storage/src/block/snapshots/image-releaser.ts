import { acceptInBackground } from '#operations/accepting/accept-in-background';
import { type PeriodicTask, WOKEN_SELDOM } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { eachBlockBackend } from '#storage/block/pools/block-backends';
import { POOL_MARKS } from '#storage/block/pools/pool-marks';
import { MERE_ANCHOR, NEEDED } from '#storage/block/snapshots/kept-images';
import { beginRelease } from '#storage/block/snapshots/release-snapshot';
import { KEPT } from '#storage/block/volumes/snapshot-conditions';
import { Sweep } from '#storage/shared/sweep';

const log = createLogger('snapshots');

/** Looked at in a round, of a backend. */
const PORTION = 100;
/** Of anchors of a full pool at a time, oldest first, until the pool says that it was enough. */
const FORCED = 5;

/** By the index of those that are kept, some of them at a time: most are anchors for as long as their volume lives. */
const FIND = sql(
  'release_find',
  `SELECT k.id, k.volume_id AS "volumeId", k.cut::text, k.needless
     FROM (SELECT s.id, s.volume_id, s.cut,
                  s.backend_id = $2 AND s.active_operation IS NULL AND NOT ${NEEDED} AS needless
             FROM trivet.snapshot s
            WHERE s.tenant_id = $1 AND ${KEPT} AND (s.volume_id, s.cut) > ($3, $4::bigint)
            ORDER BY s.volume_id, s.cut LIMIT $5) AS k`,
);
const CROWDED = sql(
  'release_crowded',
  `SELECT FROM trivet.pool p
    WHERE p.tenant_id = $1 AND p.backend_id = $2 AND p.state = 'up' AND p.total_bytes > 0
      AND p.used_bytes > p.total_bytes * $3::float8 LIMIT 1`,
);
const FIND_ANCHORS = sql(
  'release_find_anchors',
  `SELECT s.id, s.pool, v.name AS "volumeName" FROM trivet.snapshot s
     JOIN trivet.volume v ON v.tenant_id = s.tenant_id AND v.id = s.volume_id
     JOIN trivet.pool p ON p.tenant_id = s.tenant_id AND p.backend_id = s.backend_id AND p.name = s.pool
    WHERE s.tenant_id = $1 AND s.backend_id = $2 AND ${KEPT} AND s.active_operation IS NULL AND ${MERE_ANCHOR}
      AND p.state = 'up' AND p.total_bytes > 0 AND p.used_bytes > p.total_bytes * $4::float8
    ORDER BY s.updated_at LIMIT $3`,
);
const REPORT = sql(
  'release_report',
  `INSERT INTO trivet.finding (tenant_id, backend_id, kind, subject, pool, message)
   VALUES ($1, $2, 'anchor_released', $3, $4, $5)
   ON CONFLICT (tenant_id, backend_id, kind, subject) DO UPDATE SET message = excluded.message, last_seen = now()`,
);
const FORGET = sql(
  'release_forget',
  `DELETE FROM trivet.finding
    WHERE tenant_id = $1 AND backend_id = $2 AND kind = 'anchor_released' AND last_seen < now() - interval '7 days'`,
);

/** Whoever made them did not come to remove them. */
const UNPIN = sql(
  'release_unpin',
  "DELETE FROM trivet.snapshot_pin WHERE tenant_id = $1 AND expires_at < now() - interval '1 minute'",
);

interface Kept {
  id: string;
  volumeId: string;
  cut: string;
  needless: boolean;
}

/** Before every other. */
const START = { volumeId: '00000000-0000-0000-0000-000000000000', cut: '0' };

/**
 * Images of deleted snapshots go when nobody needs them any more; in a pool that is nearly full also those that only the
 * next cut would have needed: backups of that volume begin anew then, which is said.
 */
export class ImageReleaser implements PeriodicTask {
  readonly name = 'kept-images';
  readonly everyMs = 10_000;
  readonly scope = 'appliance';
  readonly calm = WOKEN_SELDOM;
  readonly after = 'pools';

  private readonly sweep = new Sweep<Pick<Kept, 'volumeId' | 'cut'>>(PORTION);

  constructor(private readonly database: Database) {}

  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    let isCalm = true;
    await eachBlockBackend(this.database, async ({ tenantId, backendId }) => {
      const place = { tenantId, backendId };
      const { volumeId, cut } = this.sweep.placeOf(backendId, START);
      const { kept, anchors } = await this.database.withTenant(tenantId, async tx => {
        await tx.query(FORGET, [tenantId, backendId]);
        await tx.query(UNPIN, [tenantId]);
        const crowded = await tx.query(CROWDED, [tenantId, backendId, POOL_MARKS.full]);
        return {
          kept: await tx.query<Kept>(FIND, [tenantId, backendId, volumeId, cut, PORTION]),
          anchors:
            crowded.length === 0
              ? []
              : await tx.query<{ id: string; pool: string; volumeName: string }>(FIND_ANCHORS, [
                  tenantId,
                  backendId,
                  FORCED,
                  POOL_MARKS.full,
                ]),
        };
      });
      this.sweep.wentOn(backendId, kept.length, kept.at(-1));
      const needless = kept.filter(row => row.needless);
      if (needless.length + anchors.length > 0 || kept.length === PORTION) isCalm = false;
      for (const { id } of needless) if (!signal.aborted) await this.release(place, id, false);
      for (const { id, pool, volumeName } of anchors) {
        if (signal.aborted || !(await this.release(place, id, true))) continue;
        const message = `pool ${pool} is nearly full: what changes in volume ${volumeName} until its next snapshot will not be known`;
        log.warn({ snapshotId: id, volume: volumeName, pool }, message);
        await this.database.withTenant(tenantId, tx =>
          tx.query(REPORT, [tenantId, backendId, `volume ${volumeName}`, pool, message]),
        );
      }
    });
    return isCalm ? 'calm' : undefined;
  }

  private async release(
    place: { tenantId: string; backendId: string },
    snapshotId: string,
    anchor: boolean,
  ): Promise<boolean> {
    try {
      const begun = await acceptInBackground(this.database, place, (tx, begin, operationId) =>
        beginRelease(tx, begin, { ...place, operationId }, snapshotId, { anchor }),
      );
      return begun !== undefined;
    } catch (error) {
      if (!isStorageError(error)) log.error({ snapshotId, err: error }, 'defect in releasing an image');
      return false;
    }
  }
}
