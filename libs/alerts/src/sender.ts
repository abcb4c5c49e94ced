import { DELIVERY_COLUMNS, type DeliveryView } from '#alerts/alert-log';
import type { ApplianceTenant } from '#alerts/appliance-tenant';
import { deliver } from '#alerts/deliver/deliver';
import { NotTaken } from '#alerts/deliver/post';
import type { Content } from '#alerts/messages/content';
import type { Target } from '#alerts/messages/target';
import { placeOf } from '#alerts/receivers';
import type { OuterAddresses } from '#platform/config/outer-addresses';
import { decodeSealed, type SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';

const log = createLogger('alerts');

/** At a time, of all receivers. */
const AT_ONCE = 20;
/** Longer than one may take: whoever took one and died leaves it then. */
const TAKEN_MS = 30_000;
/** Between tries; each longer than the one before. */
const AGAIN = { least: 5_000, most: 600_000 };
const GIVEN_UP = '3 days';

/**
 * $2 ms. What a receiver is told of one alert comes in its order: nothing is taken while something older of it waits. Of several
 * processes each takes others.
 */
const TAKE = sql(
  'delivery_take',
  `WITH due AS (
     SELECT d.tenant_id, d.id FROM trivet.alert_delivery d
       JOIN trivet.alert_receiver r ON r.tenant_id = d.tenant_id AND r.id = d.receiver_id AND r.enabled
      WHERE d.tenant_id = $1 AND d.state = 'waiting' AND d.next_at <= now() AND (d.taken_until IS NULL OR d.taken_until < now())
        AND d.event <> 'test'
        AND NOT EXISTS (SELECT FROM trivet.alert_delivery o
                         WHERE o.tenant_id = d.tenant_id AND o.alert_id = d.alert_id AND o.receiver_id = d.receiver_id
                           AND o.state = 'waiting' AND o.created_at < d.created_at)
      ORDER BY d.next_at LIMIT ${AT_ONCE} FOR UPDATE OF d SKIP LOCKED
   )
   UPDATE trivet.alert_delivery d SET attempts = d.attempts + 1, taken_until = now() + $2 * interval '1 ms'
     FROM due, trivet.secret s
    WHERE d.tenant_id = due.tenant_id AND d.id = due.id
      AND s.tenant_id = d.tenant_id AND s.owner_table = 'alert_receiver' AND s.owner_id = d.receiver_id AND s.name = 'target'
   RETURNING d.id, d.receiver_id AS "receiverId", d.content, d.attempts, s.sealed`,
);
/** $2 id $3 receiver $4 content $5 ms. Taken at once by whoever writes it. */
const TEST = sql(
  'delivery_test',
  `WITH made AS (
     INSERT INTO trivet.alert_delivery (tenant_id, id, receiver_id, event, content, attempts, taken_until)
     VALUES ($1, $2, $3, 'test', $4, 1, now() + $5 * interval '1 ms') RETURNING tenant_id, id, receiver_id, content, attempts)
   SELECT made.id, made.receiver_id AS "receiverId", made.content, made.attempts, s.sealed
     FROM made JOIN trivet.secret s ON s.tenant_id = made.tenant_id AND s.owner_table = 'alert_receiver'
                                   AND s.owner_id = made.receiver_id AND s.name = 'target'`,
);
/** What else it was to be told need not wait any longer. */
const SENT = sql(
  'delivery_sent',
  `WITH sent AS (
     UPDATE trivet.alert_delivery SET state = 'sent', sent_at = now(), taken_until = NULL, error = NULL
      WHERE tenant_id = $1 AND id = $2 AND state = 'waiting' RETURNING receiver_id)
   UPDATE trivet.alert_delivery d SET next_at = now() FROM sent
    WHERE d.tenant_id = $1 AND d.receiver_id = sent.receiver_id AND d.state = 'waiting' AND d.id <> $2 AND d.next_at > now()`,
);
const FAILED = sql(
  'delivery_failed',
  `UPDATE trivet.alert_delivery
      SET error = $3, taken_until = NULL, next_at = now() + $4 * interval '1 ms',
          state = CASE WHEN event = 'test' OR created_at < now() - interval '${GIVEN_UP}' THEN 'given_up' ELSE state END
    WHERE tenant_id = $1 AND id = $2 AND state = 'waiting'`,
);
const READ = sql(
  'delivery_read',
  `SELECT ${DELIVERY_COLUMNS}
     FROM trivet.alert_delivery d JOIN trivet.alert_receiver r ON r.tenant_id = d.tenant_id AND r.id = d.receiver_id
    WHERE d.tenant_id = $1 AND d.id = $2`,
);
/** Who asked for a test waits for its answer, so nobody tries it again: of one whose process died, that is known here. */
const WAITS = sql(
  'delivery_waits',
  `WITH left_over AS (
     UPDATE trivet.alert_delivery SET state = 'given_up', taken_until = NULL, error = 'whoever sent it died before the answer'
      WHERE tenant_id = $1 AND state = 'waiting' AND event = 'test' AND taken_until < now())
   SELECT EXISTS (SELECT FROM trivet.alert_delivery WHERE tenant_id = $1 AND state = 'waiting' AND event <> 'test') AS waits`,
);

interface Taken {
  id: string;
  receiverId: string;
  content: Content;
  attempts: number;
  /** As PostgreSQL writes bytes. */
  sealed: Buffer;
}

export interface SenderParts {
  database: Database;
  secrets: SecretBox;
  appliance: ApplianceTenant;
  outer: OuterAddresses;
  /** Of the dashboard; undefined: messages have no links. */
  publicUrl: string | undefined;
}

/** Sends what is in the outbox, each until it was taken: at least once, and under the same id each time. */
export class Sender {
  constructor(private readonly parts: SenderParts) {}

  /** All that are due now. @returns whether any wait still */
  async send(signal: AbortSignal): Promise<boolean> {
    const { database, appliance } = this.parts;
    const tenantId = await appliance.id();
    while (!signal.aborted) {
      const taken = await database.withTenant(tenantId, tx => tx.query<Taken>(TAKE, [tenantId, TAKEN_MS]));
      await Promise.all(taken.map(one => this.one(tenantId, one)));
      if (taken.length < AT_ONCE) break;
    }
    const [row] = await database.withTenant(tenantId, tx => tx.query<{ waits: boolean }>(WAITS, [tenantId]));
    return row!.waits;
  }

  /** Tells a receiver that this is a test, once. What became of it is in the answer. */
  async test(tenantId: string, receiver: { id: string; name: string }, id: string, by: string): Promise<DeliveryView> {
    const { database } = this.parts;
    const now = new Date().toISOString();
    const content: Content = {
      event: 'test',
      alert: id,
      rule: 'test',
      object: receiver.name,
      severity: 'warning',
      what: `The receiver ${receiver.name} takes alerts.`,
      means: 'Nothing is wrong.',
      todo: 'Nothing.',
      link: '/alerts',
      since: now,
      at: now,
      by,
      note: null,
    };
    const values = [tenantId, id, receiver.id, JSON.stringify(content), TAKEN_MS];
    const [made] = await database.withTenant(tenantId, tx => tx.query<Taken>(TEST, values));
    if (made) await this.one(tenantId, made);
    const [after] = await database.withTenant(tenantId, tx => tx.query<DeliveryView>(READ, [tenantId, id]));
    return after!;
  }

  private async one(tenantId: string, { id, receiverId, content, attempts, sealed }: Taken): Promise<void> {
    const { database, secrets, outer, publicUrl } = this.parts;
    try {
      const target = JSON.parse(secrets.openText(decodeSealed(sealed), placeOf(tenantId, receiverId))) as Target;
      const source = publicUrl === undefined ? 'Trivet' : new URL(publicUrl).host;
      await deliver(outer, target, { id, content, dashboard: publicUrl, source });
    } catch (error) {
      if (!(error instanceof NotTaken)) log.error({ delivery: id, err: error }, 'an alert could not be sent');
      const why = error instanceof NotTaken ? error.message : 'a defect; see the log';
      const failed = [tenantId, id, why, Math.round(pauseAfter(attempts))];
      await database.withTenant(tenantId, tx => tx.query(FAILED, failed));
      return;
    }
    await database.withTenant(tenantId, tx => tx.query(SENT, [tenantId, id]));
  }
}

/** Doubled each time, and a quarter of it by chance, so that what failed together does not come together. */
const pauseAfter = (attempts: number): number =>
  Math.min(AGAIN.most, AGAIN.least * 2 ** Math.min(attempts - 1, 10)) * (0.75 + Math.random() / 4);
