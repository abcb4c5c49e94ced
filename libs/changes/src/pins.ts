import { randomUUID } from 'node:crypto';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';

const log = createLogger('changes');

/** A pin that nobody renews any more is no pin. */
const PIN_MS = 60_000;
const RENEW_MS = 20_000;

/** Under the lock of the rows: whoever gives an image up takes it too. */
const LOCK = sql(
  'pin_lock',
  `SELECT s.id FROM trivet.snapshot s
    WHERE s.tenant_id = $1 AND s.id = ANY ($2) AND s.cut IS NOT NULL AND s.image_gone_at IS NULL
    ORDER BY s.id FOR SHARE`,
);
const PIN = sql(
  'pin_put',
  `INSERT INTO trivet.snapshot_pin (tenant_id, snapshot_id, holder, reason, expires_at)
   SELECT $1, id, $3, $4, now() + $5 * interval '1 ms' FROM unnest($2::uuid[]) AS id`,
);
const RENEW = sql(
  'pin_renew',
  `UPDATE trivet.snapshot_pin SET expires_at = now() + $3 * interval '1 ms' WHERE tenant_id = $1 AND holder = $2`,
);
const UNPIN = sql('pin_remove', 'DELETE FROM trivet.snapshot_pin WHERE tenant_id = $1 AND holder = $2');

/** Images that somebody reads: they stay until `release`, whatever becomes of their snapshots. */
export class Pins {
  private readonly holder = randomUUID();
  private timer: NodeJS.Timeout | undefined;

  private constructor(
    private readonly database: Database,
    private readonly tenantId: string,
  ) {}

  /** Undefined: one of the images is gone, or about to be. For a minute; `hold` renews it. */
  static async take(
    database: Database,
    tenantId: string,
    snapshotIds: readonly string[],
    reason: string,
  ): Promise<Pins | undefined> {
    const ids = [...new Set(snapshotIds)];
    const pins = new Pins(database, tenantId);
    return database.withTenant(tenantId, async tx => {
      const there = await tx.query(LOCK, [tenantId, ids]);
      if (there.length < ids.length) return undefined;
      await tx.query(PIN, [tenantId, ids, pins.holder, reason, PIN_MS]);
      return pins;
    });
  }

  hold(): void {
    this.timer = setInterval(() => {
      this.database
        .withTenant(this.tenantId, tx => tx.query(RENEW, [this.tenantId, this.holder, PIN_MS]))
        .catch(error => log.warn({ err: error }, 'a pin was not renewed'));
    }, RENEW_MS);
    this.timer.unref();
  }

  /** What fails here expires by itself. */
  async release(): Promise<void> {
    clearInterval(this.timer);
    await this.database.withTenant(this.tenantId, tx => tx.query(UNPIN, [this.tenantId, this.holder])).catch(() => {});
  }
}
