import type { Tx, Write } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { redact } from '#platform/logging/redact';

/** The doors that changes come in by. */
export type Door = 'admin' | 'csp' | 'cosi' | 'cbt';

/** Who changes something: a person or a driver by its login, a token, a socket, a command on the host, or Trivet by itself. */
export interface Actor {
  kind: 'user' | 'token' | 'command' | 'system' | 'socket';
  /** Login name; of a socket its endpoint; of a command the system's user; of Trivet the part that acts. */
  name: string;
  /** Of an API token its name, of a driver's login the id of its session. */
  tokenName?: string;
  door?: Door;
  /** Where from; '' for what has no peer. */
  address: string;
}

export interface AuditEntry {
  /** Whom it is about; the appliance's own tenant for what is about no other. */
  tenantId: string;
  /** Absent: as the tenant is named now. */
  tenantName?: string;
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

/** What is written: by `auditWrite`, or by the statement that accepts the operation which carries the change out. */
export interface Noted {
  actor: Actor;
  entry: AuditEntry;
}

const WRITE = sql(
  'audit_write',
  `INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, token_name, address, door, action, subject_kind,
                                   subject_id, subject_name, before, after, reason, operation_id)
   VALUES ($1, coalesce($2, (SELECT name FROM trivet.tenant WHERE id = $1)), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
           $14, $15)`,
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
      entry.tenantName ?? null,
      actor.kind,
      actor.name,
      actor.tokenName ?? null,
      actor.address,
      actor.door ?? '',
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

/** The same as columns, for `NewOperation.audit`: tenant and operation are those of the operation. */
export const auditColumns = ({ actor, entry }: Noted): object => ({
  actor_kind: actor.kind,
  actor: actor.name,
  token_name: actor.tokenName,
  address: actor.address,
  door: actor.door ?? '',
  action: entry.action,
  subject_kind: entry.subject.kind,
  subject_id: entry.subject.id ?? '',
  subject_name: entry.subject.name ?? '',
  before: redact(entry.before),
  after: redact(entry.after),
  reason: entry.reason,
});
