import type { Tx, Write } from '#platform/database';
import { redact } from '#platform/redact';
import { sql } from '#platform/sql';

/** Who changes something: a person at the page, an API token, a command on the appliance's host, or Trivet by itself. */
export interface Actor {
  kind: 'user' | 'token' | 'command' | 'system';
  /** Login name; of a command the system's user; of Trivet the part that acts. */
  name: string;
  tokenName?: string;
  /** Where from; '' for what has no peer. */
  address: string;
}

export interface AuditEntry {
  /** Whom it is about; the appliance's own tenant for what is about no other. */
  tenantId: string;
  tenantName: string;
  /** `<subject kind>.<verb>`, e.g. `user.create`. */
  action: string;
  subject: { kind: string; id?: string; name?: string };
  /** What it was and what it is, as the API shows it. Secrets are masked by field name whatever is given. */
  before?: unknown;
  after?: unknown;
  reason?: string;
  /** That carries the change out. */
  operationId?: string;
}

const WRITE = sql(
  'audit_write',
  `INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, token_name, address, action, subject_kind,
                                   subject_id, subject_name, before, after, reason, operation_id)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
);

/** In the transaction of the change, which must be one of the entry's tenant: the two happen together or not at all. */
export async function audit(tx: Tx, actor: Actor, entry: AuditEntry): Promise<void> {
  await tx.query(...auditWrite(actor, entry));
}

/** As `audit`, for a transaction's last statements. */
export function auditWrite(actor: Actor, entry: AuditEntry): Write {
  const json = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(redact(value)));
  return [
    WRITE,
    [
      entry.tenantId,
      entry.tenantName,
      actor.kind,
      actor.name,
      actor.tokenName ?? null,
      actor.address,
      entry.action,
      entry.subject.kind,
      entry.subject.id ?? '',
      entry.subject.name ?? '',
      json(entry.before),
      json(entry.after),
      entry.reason ?? null,
      entry.operationId ?? null,
    ],
  ];
}
