import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { coveringSession } from '#storage/block/sessions/covered';
import { hashOfToken, isSessionToken } from '#storage/block/sessions/session-token';
import type { CoveredSnapshot, SnapshotSession } from '#storage/block/sessions/snapshot-session';
import { type SuspendedTenants, TenantSuspended } from '#tenancy/tenants/suspended-tenants';

/** What was deleted elsewhere works here no longer than this. */
const CACHE_MS = 5_000;
const CACHED = 1_000;

const FIND = sql(
  'snapshot_session_find',
  `SELECT tenant_id AS "tenantId", tenant_name AS "tenantName", session_id AS id, driver, expires_at AS "expiresAt",
          remaining_ms AS "remainingMs", tenant_state AS "tenantState"
     FROM trivet.find_snapshot_session($1)`,
);
const COVERED = sql(
  'snapshot_session_covered',
  `SELECT snapshot_id AS id, volume_id AS "volumeId", name FROM trivet.snapshot_session_member
    WHERE tenant_id = $1 AND session_id = $2 ORDER BY position`,
);

interface Found {
  tenantId: string;
  tenantName: string;
  id: string;
  driver: string;
  expiresAt: Date;
  remainingMs: number;
  tenantState: string;
}

/** Whose token is this? Looked up by its hash, and remembered for a while. */
export class SessionTokens {
  private readonly cache = new Map<string, { session: SnapshotSession; until: number }>();
  /** Grows with each deletion: what was read before one is not kept after it. */
  private deletions = 0;

  constructor(
    private readonly database: Database,
    private readonly clock: () => number = () => performance.now(),
    private readonly suspended?: Pick<SuspendedTenants, 'require'>,
  ) {}

  async authenticate(token: string): Promise<SnapshotSession | undefined> {
    if (!isSessionToken(token)) return undefined;
    const hash = hashOfToken(token);
    const key = hash.toString('base64');
    const cached = this.cache.get(key);
    if (cached && this.clock() < cached.until) {
      this.suspended?.require(cached.session.tenantId);
      return cached.session;
    }
    this.cache.delete(key);
    const { deletions } = this;
    const asked = this.clock();
    const [found] = await this.database.call<Found>(FIND, [hash]);
    if (!found) return undefined;
    const { remainingMs, tenantState, ...facts } = found;
    if (tenantState !== 'active') throw new TenantSuspended(facts.tenantName, tenantState);
    const snapshots = await this.database.withTenant(found.tenantId, tx =>
      tx.query<CoveredSnapshot>(COVERED, [found.tenantId, found.id]),
    );
    const session = coveringSession({ ...facts, snapshots });
    if (deletions === this.deletions) {
      if (this.cache.size >= CACHED) this.cache.delete(this.cache.keys().next().value!);
      this.cache.set(key, { session, until: asked + Math.min(CACHE_MS, remainingMs) });
    }
    return session;
  }

  /** At its deletion: this process knows it no longer. */
  forget(sessionId: string): void {
    this.deletions++;
    for (const [key, { session }] of this.cache) if (session.id === sessionId) this.cache.delete(key);
  }
}
