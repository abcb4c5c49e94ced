import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const LIST = sql(
  'tenant_findings',
  `SELECT f.kind, f.subject, f.pool, f.message, f.first_seen AS "firstSeen", f.last_seen AS "lastSeen"
     FROM trivet.finding f WHERE f.tenant_id = $1 ORDER BY f.kind, f.first_seen, f.subject LIMIT $2`,
);

export interface FindingReport {
  kind: string;
  subject: string;
  pool: string;
  message: string;
  firstSeen: Date;
  lastSeen: Date;
}

/** What the audit reports and does not touch, and what is paused. */
export const reportFindings = (database: Database, tenantId: string, limit: number): Promise<FindingReport[]> =>
  database.withTenant(tenantId, tx => tx.query<FindingReport>(LIST, [tenantId, limit]));
