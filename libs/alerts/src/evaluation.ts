import type { Finding } from '#alerts/findings/attention';
import { gotWorse, keyOf, withinBounds } from '#alerts/findings/within-bounds';
import { RULES, type RuleName, type Severity } from '#alerts/rules';
import { TELL_ESCALATED, TELL_MORE, TELL_OPENED } from '#alerts/tell';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';

/** Whoever looked longer ago stood still meanwhile, and another one has looked since. */
const STALE_SECONDS = 10;
/** What is not seen for a moment, as while a worker is restarted, has not ended. */
const GONE_MS = 10_000;
/** For which it is kept as history. */
const KEPT = '90 days';
const FORGOTTEN = 500;

const LOCK = sql(
  'alerts_lock',
  `SELECT pg_try_advisory_xact_lock(hashtextextended('trivet.alerts', 0)) AS ours,
          now() - $1::timestamptz > interval '${STALE_SECONDS} s' AS stale`,
);
const CLOCK = sql('alerts_clock', 'SELECT now() AS now');
const LIVE = sql(
  'alerts_live',
  `SELECT id, rule, object, state, what, means, todo, link, severity, gone_at IS NOT NULL AS gone,
          extract(epoch FROM now() - since)::float8 AS "sinceSeconds",
          extract(epoch FROM now() - gone_at)::float8 * 1000 AS "goneMs"
     FROM trivet.alert WHERE tenant_id = $1 AND state <> 'ended'`,
);
const ADD = sql(
  'alerts_add',
  `INSERT INTO trivet.alert (tenant_id, id, rule, object, severity, state, what, means, todo, link, opened_at)
   SELECT $1, f.id, f.rule, f.object, f.severity, CASE WHEN f.opens THEN 'open' ELSE 'pending' END, f.what, f.means, f.todo, f.link,
          CASE WHEN f.opens THEN now() END
     FROM jsonb_to_recordset($2) AS f (id uuid, rule text, object text, severity text, opens boolean, what text, means text,
                                       todo text, link text)
   ON CONFLICT DO NOTHING`,
);
/** Whoever acknowledges it meanwhile keeps its state. */
const SEEN = sql(
  'alerts_seen',
  `UPDATE trivet.alert a
      SET severity = f.severity, what = f.what, means = f.means, todo = f.todo, link = f.link, gone_at = NULL,
          state = CASE WHEN f.opens AND a.state = 'pending' THEN 'open' ELSE a.state END,
          opened_at = CASE WHEN f.opens THEN coalesce(a.opened_at, now()) ELSE a.opened_at END
     FROM jsonb_to_recordset($2) AS f (id uuid, severity text, opens boolean, what text, means text, todo text, link text)
    WHERE a.tenant_id = $1 AND a.id = f.id`,
);
const GONE = sql(
  'alerts_gone',
  'UPDATE trivet.alert SET gone_at = now() WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) AND gone_at IS NULL',
);
const DROP = sql(
  'alerts_drop',
  `DELETE FROM trivet.alert WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) AND state = 'pending'`,
);
const END = sql(
  'alerts_end',
  `UPDATE trivet.alert SET state = 'ended', ended_at = gone_at WHERE tenant_id = $1 AND id = ANY ($2::uuid[])`,
);
const FORGET = sql(
  'alerts_forget',
  `DELETE FROM trivet.alert
    WHERE tenant_id = $1 AND id IN (
      SELECT id FROM trivet.alert
       WHERE tenant_id = $1 AND state = 'ended' AND ended_at < now() - interval '${KEPT}' LIMIT ${FORGOTTEN})`,
);
const FORGET_SILENCES = sql(
  'alerts_forget_silences',
  `DELETE FROM trivet.alert_silence WHERE tenant_id = $1 AND until < now() - interval '1 day'`,
);
/** Of an alert they go with it; tests are of none. */
const FORGET_TESTS = sql(
  'alerts_forget_tests',
  `DELETE FROM trivet.alert_delivery
    WHERE tenant_id = $1 AND event = 'test' AND state <> 'waiting' AND created_at < now() - interval '1 day'`,
);

interface Live {
  id: string;
  rule: RuleName;
  object: string;
  state: 'pending' | 'open' | 'acknowledged';
  what: string;
  means: string;
  todo: string;
  link: string | null;
  severity: Severity;
  gone: boolean;
  sinceSeconds: number;
  goneMs: number | null;
}

/** Of the database, which all who look have in common. */
export async function clock(database: Pick<Database, 'withTenant'>, tenantId: string): Promise<Date> {
  const [row] = await database.withTenant(tenantId, tx => tx.query<{ now: Date }>(CLOCK));
  return row!.now;
}

/**
 * Makes the alerts match what was found, and writes what is to be told of that, all in one transaction. Processes that meet do not
 * disturb each other: the second one leaves it to the first.
 * @param lookedAt `clock` before it was looked for
 * @returns how many deliveries were written; undefined: another process is at it
 * @throws StorageError `unavailable`: that is too long ago to be true still
 */
export function evaluate(
  database: Pick<Database, 'withTenant'>,
  tenantId: string,
  found: readonly Finding[],
  lookedAt: Date,
): Promise<number | undefined> {
  return database.withTenant(tenantId, async tx => {
    const [lock] = await tx.query<{ ours: boolean; stale: boolean }>(LOCK, [lookedAt]);
    if (!lock!.ours) return undefined;
    if (lock!.stale)
      throw new StorageError(
        'unavailable',
        `what was found is older than ${STALE_SECONDS} s, and nobody is told of it`,
      );
    const live = await tx.query<Live>(LIVE, [tenantId]);
    const ended = await match(tx, tenantId, live, found);
    const told = ended.length === 0 ? [] : await tx.query(TELL_MORE, [tenantId, ended, 'ended']);
    const opened = await tx.query(TELL_OPENED, [tenantId]);
    const escalated = await tx.query(TELL_ESCALATED, [tenantId]);
    return told.length + opened.length + escalated.length;
  });
}

/** @returns ids of those that have ended by it */
async function match(tx: Tx, tenantId: string, live: readonly Live[], all: readonly Finding[]): Promise<string[]> {
  const known = new Map(live.map(alert => [keyOf(alert), alert]));
  const findings = withinBounds(all, known);
  const fresh = [...findings].filter(([key]) => !known.has(key)).map(([, finding]) => ({ ...finding, id: uuidv7() }));
  if (fresh.length > 0)
    await tx.query(ADD, [tenantId, JSON.stringify(fresh.map(one => ({ ...one, opens: RULES[one.rule].holds === 0 })))]);
  const lesser = live.filter(
    alert => alert.state !== 'pending' && !findings.has(keyOf(alert)) && gotWorse(alert, findings),
  );
  for (const alert of lesser) findings.set(keyOf(alert), alert);
  const changed = [...findings].flatMap(([key, finding]) => {
    const alert = known.get(key);
    if (!alert) return [];
    const opens = alert.state === 'pending' && alert.sinceSeconds >= RULES[finding.rule].holds;
    const same = !opens && !alert.gone && SHOWN.every(field => alert[field] === finding[field]);
    return same ? [] : [{ ...finding, id: alert.id, opens }];
  });
  if (changed.length > 0) await tx.query(SEEN, [tenantId, JSON.stringify(changed)]);
  const missing = live.filter(alert => !findings.has(keyOf(alert)));
  const dropped = missing.filter(({ state }) => state === 'pending').map(({ id }) => id);
  if (dropped.length > 0) await tx.query(DROP, [tenantId, dropped]);
  const left = missing.filter(({ state }) => state !== 'pending');
  const newlyGone = left.filter(({ gone }) => !gone).map(({ id }) => id);
  if (newlyGone.length > 0) await tx.query(GONE, [tenantId, newlyGone]);
  const over = left.filter(({ goneMs }) => goneMs !== null && goneMs >= GONE_MS).map(({ id }) => id);
  if (over.length > 0) await tx.query(END, [tenantId, over]);
  return over;
}

const SHOWN = ['severity', 'what', 'means', 'todo', 'link'] as const;

/** History that nobody needs any more. */
export const forgetOld = (database: Pick<Database, 'withTenant'>, tenantId: string): Promise<unknown> =>
  database.withTenant(tenantId, tx =>
    tx.commit([FORGET, [tenantId]], [FORGET_SILENCES, [tenantId]], [FORGET_TESTS, [tenantId]]),
  );
