import type { AlertEvent } from '#alerts/messages/content';
import type { RuleName, Severity } from '#alerts/rules';
import { TELL_MORE } from '#alerts/tell';
import type { Database } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';

export type AlertState = 'open' | 'acknowledged' | 'ended';

export interface AlertView {
  id: string;
  rule: RuleName;
  object: string;
  severity: Severity;
  state: AlertState;
  what: string;
  means: string;
  todo: string;
  link: string | null;
  since: Date;
  openedAt: Date;
  acknowledgedAt: Date | null;
  acknowledgedBy: string | null;
  note: string | null;
  endedAt: Date | null;
  /** Nobody is told of it now. */
  silenced: boolean;
}

export interface DeliveryView {
  id: string;
  receiver: string;
  event: AlertEvent;
  state: 'waiting' | 'sent' | 'given_up';
  attempts: number;
  error: string | null;
  createdAt: Date;
  /** Of one that waits. */
  nextAt: Date | null;
  sentAt: Date | null;
}

export interface AlertFilter {
  state?: AlertState | undefined;
  rule?: RuleName | undefined;
  severity?: Severity | undefined;
}

const SILENCED = `EXISTS (SELECT FROM trivet.alert_silence s
     WHERE s.tenant_id = a.tenant_id AND s.until > now()
       AND (s.rule IS NULL OR s.rule = a.rule) AND (s.object IS NULL OR s.object = a.object))`;
const SELECT = `SELECT a.id, a.rule, a.object, a.severity, a.state, a.what, a.means, a.todo, a.link, a.since,
       a.opened_at AS "openedAt", a.acknowledged_at AS "acknowledgedAt", a.acknowledged_by AS "acknowledgedBy", a.note,
       a.ended_at AS "endedAt", ${SILENCED} AS silenced
  FROM trivet.alert a`;
const GET = sql('alert_get', `${SELECT} WHERE a.tenant_id = $1 AND a.id = $2 AND a.state <> 'pending'`);
export const DELIVERY_COLUMNS = `d.id, r.name AS receiver, d.event, d.state, d.attempts, d.error, d.created_at AS "createdAt",
       CASE WHEN d.state = 'waiting' THEN greatest(d.next_at, r.rests_until) END AS "nextAt", d.sent_at AS "sentAt"`;
const DELIVERIES = sql(
  'alert_deliveries',
  `SELECT ${DELIVERY_COLUMNS}
     FROM trivet.alert_delivery d JOIN trivet.alert_receiver r ON r.tenant_id = d.tenant_id AND r.id = d.receiver_id
    WHERE d.tenant_id = $1 AND d.alert_id = $2 ORDER BY d.created_at, r.name`,
);
const ACKNOWLEDGE = sql(
  'alert_acknowledge',
  `UPDATE trivet.alert SET state = 'acknowledged', acknowledged_at = now(), acknowledged_by = $3, note = $4
    WHERE tenant_id = $1 AND id = $2 AND state = 'open' RETURNING id`,
);

/** What people see and do of alerts: what is open, what was, and who was told. */
export class AlertLog {
  constructor(private readonly database: Database) {}

  /** The newest first. */
  list(tenantId: string, { state, rule, severity }: AlertFilter, request: PageRequest): Promise<PageOf<AlertView>> {
    const query = new ListQuery()
      .where('a.tenant_id = ?', tenantId)
      .where("a.state <> 'pending'")
      .where('a.state = ?', state)
      .where('a.rule = ?', rule)
      .where('a.severity = ?', severity);
    const order = { columns: [{ sql: 'a.id', type: 'uuid' as const }], descending: true };
    return this.database.withTenant(tenantId, tx => readPage<AlertView>(tx, query, SELECT, order, request));
  }

  /** Undefined: there is none. */
  get(tenantId: string, id: string): Promise<(AlertView & { deliveries: DeliveryView[] }) | undefined> {
    return this.database.withTenant(tenantId, async tx => {
      const [alert] = await tx.query<AlertView>(GET, [tenantId, id]);
      return alert && { ...alert, deliveries: await tx.query<DeliveryView>(DELIVERIES, [tenantId, id]) };
    });
  }

  /**
   * Somebody looks after it: nobody is told of it any more but that. It goes on until what it is about is over. Again: the same
   * answer. Undefined: there is none; ended: `failed_precondition`.
   */
  acknowledge(
    actor: Actor,
    tenantId: string,
    id: string,
    { by, note }: { by: string; note: string | null },
  ): Promise<AlertView | undefined> {
    return this.database.withTenant(tenantId, async tx => {
      const [before] = await tx.query<AlertView>(GET, [tenantId, id]);
      if (!before || before.state === 'acknowledged') return before;
      if ((await tx.query(ACKNOWLEDGE, [tenantId, id, by, note])).length === 0) {
        const [now] = await tx.query<AlertView>(GET, [tenantId, id]);
        if (now?.state !== 'ended') return now;
        throw new StorageError('failed_precondition', 'the alert has ended');
      }
      const [after] = await tx.query<AlertView>(GET, [tenantId, id]);
      await tx.query(TELL_MORE, [tenantId, [id], 'acknowledged']);
      await tx.commit(
        auditWrite(actor, {
          tenantId,
          action: 'alert.acknowledge',
          subject: { kind: 'alert', id, name: `${before.rule} ${before.object}`.trim() },
          before: { state: before.state },
          after: { state: 'acknowledged' },
          ...(note === null ? {} : { reason: note }),
        }),
      );
      return after;
    });
  }
}
