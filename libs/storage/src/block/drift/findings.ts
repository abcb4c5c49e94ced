import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';

const log = createLogger('findings');

/** `larger_image`: the file of a volume whose expansion was given up after it had grown. */
export const FINDING_KINDS = ['orphan_image', 'orphan_target', 'lost_image', 'larger_image'] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

const ADD = sql(
  'finding_add',
  `INSERT INTO trivet.finding (tenant_id, backend_id, kind, subject, pool, message) VALUES ($1, $2, $3, $4, $5, $6)
   ON CONFLICT (tenant_id, backend_id, kind, subject) DO UPDATE SET message = excluded.message, last_seen = now()
   RETURNING first_seen = last_seen AS new`,
);
const FORGET = sql(
  'finding_forget',
  `DELETE FROM trivet.finding
    WHERE tenant_id = $1 AND backend_id = $2 AND pool = $3 AND kind = ANY ($4) AND last_seen < $5::timestamptz`,
);

/** What one pass over a pool finds, which began then; what an earlier pass found and this one does not is forgotten. */
export class Findings {
  constructor(
    private readonly database: Database,
    private readonly place: { tenantId: string; backendId: string },
    private readonly pool: string,
    private readonly began: string,
  ) {}

  async add(kind: FindingKind, subject: string, message: string): Promise<void> {
    const { tenantId, backendId } = this.place;
    const [row] = await this.database.withTenant(tenantId, tx =>
      tx.query<{ new: boolean }>(ADD, [tenantId, backendId, kind, subject, this.pool, message]),
    );
    if (row?.new) log.warn({ finding: kind, subject }, message);
  }

  async forgetOthers(): Promise<void> {
    const { tenantId, backendId } = this.place;
    await this.database.withTenant(tenantId, tx =>
      tx.query(FORGET, [tenantId, backendId, this.pool, FINDING_KINDS, this.began]),
    );
  }
}
