/** What is to be told to whom, as statements that write it into the outbox. */
import { sql } from '#platform/database/sql';

/** As `Content` of an alert `a`. */
const content = (event: string): string =>
  `jsonb_build_object('event', ${event}, 'alert', a.id, 'rule', a.rule, 'object', a.object, 'severity', a.severity,
     'what', a.what, 'means', a.means, 'todo', a.todo, 'link', a.link, 'since', a.since, 'at', now(),
     'by', a.acknowledged_by, 'note', a.note)`;
const INTO = 'INSERT INTO trivet.alert_delivery (tenant_id, id, receiver_id, alert_id, event, content)';
const NOT_SILENT = `NOT EXISTS (
  SELECT FROM trivet.alert_silence s
   WHERE s.tenant_id = a.tenant_id AND s.until > now()
     AND (s.rule IS NULL OR s.rule = a.rule) AND (s.object IS NULL OR s.object = a.object))`;
const OPEN = `a.tenant_id = $1 AND a.state = 'open' AND a.gone_at IS NULL AND ${NOT_SILENT}`;

/**
 * Of open alerts, to all who are to know and were not told: whether it is the alert that is new, or the receiver, or a silence
 * is over. Locked: whoever acknowledges it just now is waited for, so that nobody is told after that.
 */
export const TELL_OPENED = sql(
  'alert_tell_opened',
  `${INTO}
   SELECT a.tenant_id, gen_random_uuid(), r.id, a.id, 'opened', ${content("'opened'")}
     FROM trivet.alert a JOIN trivet.alert_receiver r ON r.tenant_id = a.tenant_id
    WHERE ${OPEN} AND r.enabled AND NOT r.only_escalated AND (r.severity = 'warning' OR a.severity = 'error')
      AND NOT EXISTS (SELECT FROM trivet.alert_delivery d
                       WHERE d.tenant_id = a.tenant_id AND d.alert_id = a.id AND d.receiver_id = r.id)
     FOR SHARE OF a
   ON CONFLICT DO NOTHING RETURNING id`,
);

/** Of what nobody acknowledged, to whom a receiver escalates that was told so many minutes ago. */
export const TELL_ESCALATED = sql(
  'alert_tell_escalated',
  `${INTO}
   SELECT DISTINCT ON (a.id, a.told) a.tenant_id, gen_random_uuid(), a.told, a.id, 'escalated', ${content("'escalated'")}
     FROM (
       SELECT a.*, e.id AS told FROM trivet.alert a
         JOIN trivet.alert_delivery d ON d.tenant_id = a.tenant_id AND d.alert_id = a.id AND d.event IN ('opened', 'escalated')
         JOIN trivet.alert_receiver r ON r.tenant_id = d.tenant_id AND r.id = d.receiver_id
         JOIN trivet.alert_receiver e ON e.tenant_id = r.tenant_id AND e.id = r.escalate_to AND e.enabled
        WHERE ${OPEN} AND d.created_at <= now() - r.escalate_minutes * interval '1 minute'
          AND NOT EXISTS (SELECT FROM trivet.alert_delivery t
                           WHERE t.tenant_id = a.tenant_id AND t.alert_id = a.id AND t.receiver_id = e.id AND t.event = 'escalated')
          FOR SHARE OF a) AS a
   ON CONFLICT DO NOTHING RETURNING id`,
);

/** $2 ids of alerts $3 acknowledged or ended: to all who were told that they are there. */
export const TELL_MORE = sql(
  'alert_tell_more',
  `${INTO}
   SELECT DISTINCT ON (a.id, d.receiver_id) a.tenant_id, gen_random_uuid(), d.receiver_id, a.id, $3::text, ${content('$3::text')}
     FROM trivet.alert a
     JOIN trivet.alert_delivery d ON d.tenant_id = a.tenant_id AND d.alert_id = a.id AND d.event IN ('opened', 'escalated')
    WHERE a.tenant_id = $1 AND a.id = ANY ($2::uuid[])
   ON CONFLICT DO NOTHING RETURNING id`,
);
