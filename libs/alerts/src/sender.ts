import { setTimeout as pause } from 'node:timers/promises';
import { DELIVERY_COLUMNS, type DeliveryView } from '#alerts/alert-log';
import type { ApplianceTenant } from '#alerts/appliance-tenant';
import { deliver } from '#alerts/deliver/deliver';
import { NotTaken } from '#alerts/deliver/post';
import type { AlertEvent, Content } from '#alerts/messages/content';
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
/** Between tries of a message; each longer than the one before. */
const AGAIN = { least: 5_000, most: 600_000 };
/** Between tries of a receiver that did not take the last one, whichever message that was. */
const REST = { least: 5_000, most: 60_000 };
/** What becomes due meanwhile does not wait for what is under way. */
const LOOK_MS = 1_000;
const GIVEN_UP = '3 days';

/**
 * $2 ms $3 how many. What a receiver is told of one alert comes in its order: nothing is taken while something older of it waits. A
 * receiver that did not take the last one rests, and is tried with one message at a time then. Receivers take turns. Of several
 * processes each takes others.
 */
const TAKE = sql(
  'delivery_take',
  `WITH ready AS (
     SELECT d.tenant_id, d.id, d.next_at, r.failures,
            row_number() OVER (PARTITION BY d.receiver_id ORDER BY d.next_at, d.id) AS turn
       FROM trivet.alert_delivery d
       JOIN trivet.alert_receiver r ON r.tenant_id = d.tenant_id AND r.id = d.receiver_id AND r.enabled
      WHERE d.tenant_id = $1 AND d.state = 'waiting' AND d.next_at <= now() AND d.event <> 'test'
        AND (r.rests_until IS NULL OR r.rests_until <= now())
        AND NOT EXISTS (SELECT FROM trivet.alert_delivery o
                         WHERE o.tenant_id = d.tenant_id AND o.alert_id = d.alert_id AND o.receiver_id = d.receiver_id
                           AND o.state = 'waiting' AND o.created_at < d.created_at)
   ), due AS (
     SELECT d.tenant_id, d.id, ready.failures
       FROM ready JOIN trivet.alert_delivery d ON d.tenant_id = ready.tenant_id AND d.id = ready.id
      WHERE d.state = 'waiting' AND (d.taken_until IS NULL OR d.taken_until < now()) AND (ready.failures = 0 OR ready.turn = 1)
      ORDER BY ready.turn, ready.next_at LIMIT $3 FOR UPDATE OF d SKIP LOCKED
   )
   UPDATE trivet.alert_delivery d SET attempts = d.attempts + 1, taken_until = now() + $2 * interval '1 ms'
     FROM due, trivet.secret s
    WHERE d.tenant_id = due.tenant_id AND d.id = due.id
      AND s.tenant_id = d.tenant_id AND s.owner_table = 'alert_receiver' AND s.owner_id = d.receiver_id AND s.name = 'target'
   RETURNING d.id, d.receiver_id AS "receiverId", d.event, d.content, d.attempts, due.failures, s.sealed`,
);
/** $2 id $3 receiver $4 content $5 ms. Taken at once by whoever writes it. */
const TEST = sql(
  'delivery_test',
  `WITH made AS (
     INSERT INTO trivet.alert_delivery (tenant_id, id, receiver_id, event, content, attempts, taken_until)
     VALUES ($1, $2, $3, 'test', $4, 1, now() + $5 * interval '1 ms') RETURNING tenant_id, id, receiver_id, event, content, attempts)
   SELECT made.id, made.receiver_id AS "receiverId", made.event, made.content, made.attempts, r.failures, s.sealed
     FROM made JOIN trivet.alert_receiver r ON r.tenant_id = made.tenant_id AND r.id = made.receiver_id
     JOIN trivet.secret s ON s.tenant_id = made.tenant_id AND s.owner_table = 'alert_receiver'
                                   AND s.owner_id = made.receiver_id AND s.name = 'target'`,
);
/** $3 who of several did not take it. */
const SENT = sql(
  'delivery_sent',
  `UPDATE trivet.alert_delivery SET state = 'sent', sent_at = now(), taken_until = NULL, error = $3
    WHERE tenant_id = $1 AND id = $2 AND state = 'waiting'`,
);
/**
 * $2 receiver $3 its failures when this was taken. One that takes things again: what was tried beside something that it did not
 * take says nothing of that. Always before a row of a delivery is changed, so that nobody waits for the other.
 */
const IS_BACK = sql(
  'delivery_is_back',
  `UPDATE trivet.alert_receiver SET failures = 0, rests_until = NULL
    WHERE tenant_id = $1 AND id = $2 AND failures BETWEEN 1 AND $3 RETURNING id`,
);
/** $2 receiver: what else it was to be told need not wait any longer. */
const DUE = sql(
  'delivery_due',
  `UPDATE trivet.alert_delivery SET next_at = now()
    WHERE tenant_id = $1 AND receiver_id = $2 AND state = 'waiting' AND next_at > now()`,
);
/** $2 receiver $3 its failures when this was taken $4 ms. What is tried at the same time is one failure. */
const RESTS = sql(
  'delivery_rests',
  `UPDATE trivet.alert_receiver
      SET failures = greatest(failures, $3 + 1), rests_until = greatest(rests_until, now() + $4 * interval '1 ms')
    WHERE tenant_id = $1 AND id = $2`,
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
  event: AlertEvent;
  content: Content;
  attempts: number;
  /** Of the receiver, one after the other, before this. */
  failures: number;
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
    const going = new Set<Promise<void>>();
    const defects: unknown[] = [];
    while (!signal.aborted && defects.length === 0) {
      const free = AT_ONCE - going.size;
      const values = [tenantId, TAKEN_MS, free];
      const taken = free === 0 ? [] : await database.withTenant(tenantId, tx => tx.query<Taken>(TAKE, values));
      for (const one of taken) {
        const sent: Promise<void> = this.one(tenantId, one)
          .catch(error => void defects.push(error))
          .finally(() => going.delete(sent));
        going.add(sent);
      }
      if (going.size === 0) break;
      await Promise.race([...going, pause(LOOK_MS, undefined, { ref: false })]);
    }
    await Promise.all(going);
    if (defects.length > 0) throw defects[0];
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

  private async one(tenantId: string, taken: Taken): Promise<void> {
    const { database, secrets, outer, publicUrl } = this.parts;
    const { id, receiverId, event, content, attempts, failures, sealed } = taken;
    let partly: string | undefined;
    try {
      const target = JSON.parse(secrets.openText(decodeSealed(sealed), placeOf(tenantId, receiverId))) as Target;
      const source = publicUrl === undefined ? 'Trivet' : new URL(publicUrl).host;
      partly = await deliver(outer, target, { id, content, dashboard: publicUrl, source });
    } catch (error) {
      if (!(error instanceof NotTaken)) log.error({ delivery: id, err: error }, 'an alert could not be sent');
      const why = error instanceof NotTaken ? error.message : 'a defect; see the log';
      const asked = Math.min(AGAIN.most, (error instanceof NotTaken && error.afterMs) || 0);
      const again = Math.max(asked, pauseAfter(attempts, AGAIN));
      const rest = Math.max(asked, pauseAfter(failures + 1, REST));
      await database.withTenant(tenantId, async tx => {
        // Who tests sees it, and nobody else waits for that.
        if (event !== 'test') await tx.query(RESTS, [tenantId, receiverId, failures, Math.round(rest)]);
        await tx.query(FAILED, [tenantId, id, why, Math.round(again)]);
      });
      return;
    }
    await database.withTenant(tenantId, async tx => {
      const back = await tx.query(IS_BACK, [tenantId, receiverId, failures]);
      await tx.query(SENT, [tenantId, id, partly ?? null]);
      if (back.length > 0) await tx.query(DUE, [tenantId, receiverId]);
    });
  }
}

/** Doubled each time, and a quarter of it by chance, so that what failed together does not come together. */
const pauseAfter = (tries: number, { least, most }: { least: number; most: number }): number =>
  Math.min(most, least * 2 ** Math.min(tries - 1, 10)) * (0.75 + Math.random() / 4);
