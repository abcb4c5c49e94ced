import type { z } from 'zod';
import type { auditEntry } from '#admin/contract/overview';
import type { AuditRow } from '#tenancy/audit-log/audit-reader';

/** As the API shows it, in the list and in the stream of events. */
export const shownAudit = (row: AuditRow): z.output<typeof auditEntry> => ({
  id: row.seq,
  at: row.at.toISOString(),
  tenant: row.tenantName,
  actor: { kind: row.actorKind, name: row.actor, token: row.tokenName, address: row.address },
  door: row.door === '' ? null : row.door,
  action: row.action,
  subject: { kind: row.subjectKind, id: row.subjectId, name: row.subjectName },
  before: row.before,
  after: row.after,
  reason: row.reason,
  operation: row.operationId,
});
