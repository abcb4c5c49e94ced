import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const TABLES = `
-- Who is told of alerts. Where that leads is sealed as a whole (trivet.secret), since the address of a channel is a secret itself.
CREATE TABLE trivet.alert_receiver (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  id uuid NOT NULL,
  name text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  kind text NOT NULL CHECK (kind IN ('webhook', 'slack', 'teams', 'pagerduty', 'smtp')),
  -- For people; says nothing that is secret.
  address text NOT NULL,
  -- The least that it is told of.
  severity text NOT NULL DEFAULT 'warning' CHECK (severity IN ('warning', 'error')),
  enabled boolean NOT NULL DEFAULT true,
  -- It is told alone of what nobody acknowledged at another receiver.
  only_escalated boolean NOT NULL DEFAULT false,
  escalate_to uuid,
  escalate_minutes integer CHECK (escalate_minutes BETWEEN 1 AND 10080),
  -- Tries in a row that it did not take, and until when nothing is tried for that.
  failures integer NOT NULL DEFAULT 0,
  rests_until timestamptz,
  version integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, name),
  FOREIGN KEY (tenant_id, escalate_to) REFERENCES trivet.alert_receiver (tenant_id, id),
  CHECK ((escalate_to IS NULL) = (escalate_minutes IS NULL) AND escalate_to <> id)
);
CREATE INDEX alert_receiver_escalates ON trivet.alert_receiver (tenant_id, escalate_to) WHERE escalate_to IS NOT NULL;

-- One row a rule and object while it lasts, and then its history.
CREATE TABLE trivet.alert (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  id uuid NOT NULL,
  rule text NOT NULL,
  object text NOT NULL,
  severity text NOT NULL CHECK (severity IN ('warning', 'error')),
  -- pending: seen, and not for long enough that anybody is told.
  state text NOT NULL CHECK (state IN ('pending', 'open', 'acknowledged', 'ended')),
  what text NOT NULL,
  means text NOT NULL,
  todo text NOT NULL,
  link text,
  since timestamptz NOT NULL DEFAULT now(),
  opened_at timestamptz,
  acknowledged_at timestamptz,
  acknowledged_by text,
  note text,
  -- Not seen since; it ends when it stays so.
  gone_at timestamptz,
  ended_at timestamptz,
  PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX alert_live ON trivet.alert (tenant_id, rule, object) WHERE state <> 'ended';
CREATE INDEX alert_of_state ON trivet.alert (tenant_id, state, id);
CREATE INDEX alert_ended ON trivet.alert (tenant_id, ended_at) WHERE state = 'ended';

-- Of what fits nobody is told until then. NULL: fits all.
CREATE TABLE trivet.alert_silence (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  id uuid NOT NULL,
  rule text,
  object text,
  until timestamptz NOT NULL,
  reason text NOT NULL,
  made_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id)
);

-- What is to be told to whom: written in the transaction that changes the alert, and sent until it was taken.
CREATE TABLE trivet.alert_delivery (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  id uuid NOT NULL,
  receiver_id uuid NOT NULL,
  -- NULL: a test.
  alert_id uuid,
  event text NOT NULL CHECK (event IN ('opened', 'escalated', 'acknowledged', 'ended', 'test')),
  -- As it is told, however often.
  content jsonb NOT NULL,
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'given_up')),
  attempts integer NOT NULL DEFAULT 0,
  next_at timestamptz NOT NULL DEFAULT now(),
  -- Somebody is at it; who dies in it leaves it to others from then on.
  taken_until timestamptz,
  error text,
  sent_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, alert_id, receiver_id, event),
  FOREIGN KEY (tenant_id, receiver_id) REFERENCES trivet.alert_receiver (tenant_id, id) ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, alert_id) REFERENCES trivet.alert (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX alert_delivery_waiting ON trivet.alert_delivery (tenant_id, next_at) WHERE state = 'waiting';
CREATE INDEX alert_delivery_tests ON trivet.alert_delivery (tenant_id, created_at) WHERE event = 'test';
CREATE INDEX alert_delivery_of_receiver ON trivet.alert_delivery (tenant_id, receiver_id, id);

-- What a gateway alone knows, as it said last: how it serves its interfaces, and until when its certificate is good.
CREATE TABLE trivet.gateway_doors (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  gateway text NOT NULL,
  doors jsonb NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, gateway)
);
`;

const FUNCTIONS = `
CREATE FUNCTION trivet.newest_backup() RETURNS TABLE (taken_at timestamptz, host text, file text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT b.taken_at, b.host, b.file FROM trivet.appliance_backup b ORDER BY b.taken_at DESC LIMIT 1;
$$;

-- Quotas of all tenants of which this part is used, or more. One of nothing is meant to be full.
CREATE FUNCTION trivet.quotas_nearly_used(p_part double precision)
RETURNS TABLE (tenant text, key text, value bigint, used bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, q.key, q.value, u.used
    FROM trivet.tenant_quota q
    JOIN trivet.tenant t ON t.id = q.tenant_id AND t.state = 'active'
    CROSS JOIN LATERAL (SELECT trivet.quota_used(q.tenant_id, q.key) AS used) AS u
   WHERE q.value > 0 AND u.used >= p_part * q.value;
$$;

-- Whose logins failed so often that less was forgiven meanwhile, a hundred at most. An account that nobody has is not named: it may
-- be a password. Names of all users are hashed once, and only where an account is one of them.
CREATE FUNCTION trivet.failing_logins(p_failures integer) RETURNS TABLE (subject text, failures integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH failing AS MATERIALIZED (
    SELECT l.subject, l.failures - floor(extract(epoch FROM now() - l.failed_at) / 60)::integer AS failures
      FROM trivet.login_throttle l
     WHERE l.failed_at > now() - interval '1 day'
       AND l.failures - floor(extract(epoch FROM now() - l.failed_at) / 60)::integer >= p_failures
     ORDER BY l.subject LIMIT 100
  ), account AS MATERIALIZED (
    SELECT 'account:' || encode(sha256(convert_to(login.name, 'UTF8')), 'hex') AS subject, min(login.name) AS name
      FROM trivet.tenant_user u JOIN trivet.tenant t ON t.id = u.tenant_id
     CROSS JOIN LATERAL (SELECT CASE WHEN t.name = 'default' THEN u.name ELSE u.name || '@' || t.name END AS name) AS login
     WHERE EXISTS (SELECT FROM failing f WHERE f.subject LIKE 'account:%')
     GROUP BY 1
  )
  SELECT CASE WHEN f.subject LIKE 'address:%' THEN 'address ' || substr(f.subject, 9)
              ELSE coalesce('account ' || a.name, 'an account that nobody has, ' || substr(f.subject, 9, 8)) END,
         f.failures
    FROM failing f LEFT JOIN account a ON a.subject = f.subject;
$$;

-- Clusters of all tenants that are silent, or whose certificate ends soon.
CREATE FUNCTION trivet.clusters_in_need(p_silent interval, p_soon interval)
RETURNS TABLE (tenant text, name text, silent boolean, ends_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, c.name, c.seen_at < now() - p_silent,
         CASE WHEN c.certificate_until < now() + p_soon THEN c.certificate_until END
    FROM trivet.cluster c JOIN trivet.tenant t ON t.id = c.tenant_id AND t.state = 'active'
   WHERE c.revoked_at IS NULL AND (c.seen_at < now() - p_silent OR c.certificate_until < now() + p_soon);
$$;

-- Receivers that have not taken something for so many minutes.
CREATE FUNCTION trivet.receivers_failing(p_minutes integer) RETURNS TABLE (name text, waiting integer, error text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.name, count(*)::integer, (array_agg(d.error ORDER BY d.next_at DESC))[1]
    FROM trivet.alert_delivery d JOIN trivet.alert_receiver r ON r.tenant_id = d.tenant_id AND r.id = d.receiver_id
   WHERE d.state = 'waiting' AND d.event <> 'test' AND d.attempts > 0
     AND d.created_at < now() - p_minutes * interval '1 minute' AND r.enabled
   GROUP BY r.tenant_id, r.id, r.name;
$$;

REVOKE EXECUTE ON FUNCTION trivet.newest_backup, trivet.quotas_nearly_used, trivet.failing_logins, trivet.clusters_in_need,
  trivet.receivers_failing FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.newest_backup, trivet.quotas_nearly_used, trivet.failing_logins, trivet.clusters_in_need,
  trivet.receivers_failing TO trivet_app;
`;

const NEW = ['alert_receiver', 'alert', 'alert_silence', 'alert_delivery', 'gateway_doors'];

/** What is wrong and who is told of it. Rules: docs/adr/0060. */
export class Alerts1797210000430 implements Migration {
  readonly locks: Migration['locks'] = {
    // For the keys that point at it.
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLES + FUNCTIONS + rowSecurity(NEW));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION trivet.newest_backup, trivet.quotas_nearly_used, trivet.failing_logins,
      trivet.clusters_in_need, trivet.receivers_failing`);
    await runner.query(`DROP TABLE ${[...NEW].reverse().map(table => `trivet.${table}`)}`);
    // Where receivers that are no more were.
    await runner.query(`DELETE FROM trivet.secret WHERE owner_table = 'alert_receiver'`);
  }
}
