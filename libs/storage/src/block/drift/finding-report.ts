import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const LIST = sql(
  'tenant_findings',
  `SELECT f.kind, b.name AS backend, f.subject, f.pool, f.message, f.first_seen AS "firstSeen", f.last_seen AS "lastSeen"
     FROM trivet.finding f JOIN trivet.backend b ON b.tenant_id = f.tenant_id AND b.id = f.backend_id
    WHERE f.tenant_id = $1 AND ($3::text IS NULL OR b.name = $3)
    ORDER BY f.kind, f.first_seen, f.subject LIMIT $2`,
);

export interface FindingReport {
  kind: string;
  backend: string;
  subject: string;
  pool: string;
  message: string;
  firstSeen: Date;
  lastSeen: Date;
}

/** What the audit reports and does not touch, and what is paused; of one backend, or of all. */
export const reportFindings = (
  database: Database,
  tenantId: string,
  limit: number,
  backend?: string,
): Promise<FindingReport[]> =>
  database.withTenant(tenantId, tx => tx.query<FindingReport>(LIST, [tenantId, limit, backend ?? null]));
