import { refusedTarget } from '#alerts/deliver/refused-target';
import { type ReceiverKind, shownAddress, type Target } from '#alerts/messages/target';
import type { Severity } from '#alerts/rules';
import type { OuterAddresses } from '#platform/config/outer-addresses';
import { encodeSealed, type SecretBox } from '#platform/crypto/secrets';
import { type Database, isUniqueViolation, type Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';

export interface ReceiverView {
  id: string;
  name: string;
  kind: ReceiverKind;
  address: string;
  severity: Severity;
  enabled: boolean;
  onlyEscalated: boolean;
  escalation: { to: string; afterMinutes: number } | null;
  /** Deliveries that it has not taken yet. */
  waiting: number;
  /** Of the last try that it did not take, unless it has taken one since. */
  error: string | null;
  lastSentAt: Date | null;
  version: number;
  createdAt: Date;
  updatedAt: Date;
}

export interface ReceiverSettings {
  target?: Target | undefined;
  severity?: Severity | undefined;
  enabled?: boolean | undefined;
  onlyEscalated?: boolean | undefined;
  /** null: none. */
  escalation?: { to: string; afterMinutes: number } | null | undefined;
}

const SELECT = `SELECT r.id, r.name, r.kind, r.address, r.severity, r.enabled, r.only_escalated AS "onlyEscalated",
       CASE WHEN e.id IS NOT NULL THEN json_build_object('to', e.name, 'afterMinutes', r.escalate_minutes) END AS escalation,
       (SELECT count(*)::integer FROM trivet.alert_delivery d
         WHERE d.tenant_id = r.tenant_id AND d.receiver_id = r.id AND d.state = 'waiting') AS waiting,
       (SELECT d.error FROM trivet.alert_delivery d
         WHERE d.tenant_id = r.tenant_id AND d.receiver_id = r.id AND d.error IS NOT NULL AND d.state <> 'sent'
           AND d.created_at > coalesce((SELECT max(s.sent_at) FROM trivet.alert_delivery s
                                         WHERE s.tenant_id = r.tenant_id AND s.receiver_id = r.id), '-infinity')
         ORDER BY d.created_at DESC LIMIT 1) AS error,
       (SELECT max(s.sent_at) FROM trivet.alert_delivery s
         WHERE s.tenant_id = r.tenant_id AND s.receiver_id = r.id) AS "lastSentAt",
       r.version, r.created_at AS "createdAt", r.updated_at AS "updatedAt"
  FROM trivet.alert_receiver r LEFT JOIN trivet.alert_receiver e ON e.tenant_id = r.tenant_id AND e.id = r.escalate_to`;
const GET = sql('receiver_get', `${SELECT} WHERE r.tenant_id = $1 AND r.name = $2`);
const LOCK = sql('receiver_lock', `${SELECT} WHERE r.tenant_id = $1 AND r.name = $2 FOR UPDATE OF r`);
const ADD = sql(
  'receiver_add',
  `INSERT INTO trivet.alert_receiver (tenant_id, id, name, kind, address) VALUES ($1, $2, $3, $4, $5)`,
);
const CHANGE = sql(
  'receiver_change',
  `UPDATE trivet.alert_receiver
      SET kind = coalesce($3, kind), address = coalesce($4, address), severity = coalesce($5, severity),
          enabled = coalesce($6, enabled), only_escalated = coalesce($7, only_escalated),
          escalate_to = CASE WHEN $8 THEN $9::uuid ELSE escalate_to END,
          escalate_minutes = CASE WHEN $8 THEN $10::integer ELSE escalate_minutes END,
          failures = 0, rests_until = NULL, version = version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
const SEAL = sql(
  'receiver_seal',
  `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'alert_receiver', $2, 'target', $3)
   ON CONFLICT (tenant_id, owner_table, owner_id, name) DO UPDATE SET sealed = excluded.sealed`,
);
/** What was told it in vain may be taken now. */
const RETRY = sql(
  'receiver_retry',
  `UPDATE trivet.alert_delivery SET next_at = now() WHERE tenant_id = $1 AND receiver_id = $2 AND state = 'waiting'`,
);
const ESCALATES_HERE = sql(
  'receiver_escalates_here',
  'SELECT name FROM trivet.alert_receiver WHERE tenant_id = $1 AND escalate_to = $2 ORDER BY name LIMIT 1',
);
const DELETE = sql(
  'receiver_delete',
  `WITH secret AS (DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'alert_receiver' AND owner_id = $2)
   DELETE FROM trivet.alert_receiver WHERE tenant_id = $1 AND id = $2`,
);

export const placeOf = (tenantId: string, rowId: string) => ({
  tenantId,
  table: 'alert_receiver',
  rowId,
  column: 'target',
});

/** Who is told of alerts. All of them are the appliance's. */
export class Receivers {
  constructor(
    private readonly database: Database,
    private readonly secrets: SecretBox,
    private readonly outer: OuterAddresses,
  ) {}

  list(tenantId: string, request: PageRequest): Promise<PageOf<ReceiverView>> {
    const query = new ListQuery().where('r.tenant_id = ?', tenantId);
    const order = { columns: [{ sql: 'r.name', type: 'text' as const }] };
    return this.database.withTenant(tenantId, tx => readPage<ReceiverView>(tx, query, SELECT, order, request));
  }

  /** Undefined: there is none. */
  get(tenantId: string, name: string): Promise<ReceiverView | undefined> {
    return this.database.withTenant(tenantId, async tx => (await tx.query<ReceiverView>(GET, [tenantId, name]))[0]);
  }

  /** There is one of this name: `already_exists`; nothing may be sent there: `invalid_argument`. */
  async create(
    actor: Actor,
    tenantId: string,
    { name, ...settings }: ReceiverSettings & { name: string; target: Target },
  ): Promise<ReceiverView> {
    await this.requireTaken(settings.target);
    const id = uuidv7();
    try {
      return await this.database.withTenant(tenantId, async tx => {
        const { target } = settings;
        await tx.query(ADD, [tenantId, id, name, target.kind, shownAddress(target)]);
        const made = await this.set(tx, tenantId, { id, name }, settings);
        await tx.commit(auditWrite(actor, entryOf(tenantId, 'create', undefined, made)));
        return made;
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new StorageError('already_exists', `there is a receiver ${name} already`, { field: 'name' });
    }
  }

  /** @param check sees it as it is, when nobody else can change it, and throws to refuse. Undefined: there is none. */
  async change(
    actor: Actor,
    tenantId: string,
    name: string,
    settings: ReceiverSettings,
    check: (found: ReceiverView) => void,
  ): Promise<ReceiverView | undefined> {
    await this.requireTaken(settings.target);
    return this.database.withTenant(tenantId, async tx => {
      const [before] = await tx.query<ReceiverView>(LOCK, [tenantId, name]);
      if (!before) return undefined;
      check(before);
      const after = await this.set(tx, tenantId, before, settings);
      await tx.query(RETRY, [tenantId, before.id]);
      await tx.commit(auditWrite(actor, entryOf(tenantId, 'change', before, after)));
      return after;
    });
  }

  /** What it was to be told goes with it. False: there is none. Another one escalates to it: `failed_precondition`. */
  delete(actor: Actor, tenantId: string, name: string, check: (found: ReceiverView) => void): Promise<boolean> {
    return this.database.withTenant(tenantId, async tx => {
      const [before] = await tx.query<ReceiverView>(LOCK, [tenantId, name]);
      if (!before) return false;
      check(before);
      const [other] = await tx.query<{ name: string }>(ESCALATES_HERE, [tenantId, before.id]);
      if (other)
        throw new StorageError(
          'failed_precondition',
          `the receiver ${other.name} escalates to ${name}: change it first`,
        );
      await tx.query(DELETE, [tenantId, before.id]);
      await tx.commit(auditWrite(actor, entryOf(tenantId, 'delete', before, undefined)));
      return true;
    });
  }

  private async requireTaken(target: Target | undefined): Promise<void> {
    const why = target && (await refusedTarget(this.outer, target));
    if (why) throw new StorageError('invalid_argument', `target: ${why}`, { field: 'target' });
  }

  private async set(
    tx: Tx,
    tenantId: string,
    { id, name }: { id: string; name: string },
    { target, severity, enabled, onlyEscalated, escalation }: ReceiverSettings,
  ): Promise<ReceiverView> {
    const [to] = escalation ? await tx.query<ReceiverView>(GET, [tenantId, escalation.to]) : [];
    if (escalation && (!to || to.id === id))
      throw new StorageError('invalid_argument', `there is no other receiver ${escalation.to}`, {
        field: 'escalation',
      });
    if (target) {
      const sealed = this.secrets.seal(JSON.stringify(target), placeOf(tenantId, id));
      await tx.query(SEAL, [tenantId, id, encodeSealed(sealed)]);
    }
    await tx.query(CHANGE, [
      tenantId,
      id,
      target?.kind ?? null,
      target ? shownAddress(target) : null,
      severity ?? null,
      enabled ?? null,
      onlyEscalated ?? null,
      escalation !== undefined,
      to?.id ?? null,
      escalation?.afterMinutes ?? null,
    ]);
    const [after] = await tx.query<ReceiverView>(GET, [tenantId, name]);
    return after!;
  }
}

function entryOf(tenantId: string, verb: string, before: ReceiverView | undefined, after: ReceiverView | undefined) {
  const { id, name } = (after ?? before)!;
  return {
    tenantId,
    action: `receiver.${verb}`,
    subject: { kind: 'receiver', id, name },
    before: before && settingsOf(before),
    after: after && settingsOf(after),
  };
}

const settingsOf = ({ kind, address, severity, enabled, onlyEscalated, escalation }: ReceiverView) => ({
  kind,
  address,
  severity,
  enabled,
  onlyEscalated,
  escalation,
});
