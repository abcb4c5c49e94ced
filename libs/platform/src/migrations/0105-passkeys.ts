import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const PASSKEYS = `
CREATE TABLE trivet.passkey (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  user_id uuid NOT NULL,
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  credential_id bytea NOT NULL CHECK (octet_length(credential_id) BETWEEN 16 AND 1023),
  -- COSE, as the authenticator gave it.
  public_key bytea NOT NULL,
  -- Of signatures, as the authenticator last said; 0: it does not count.
  counter bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, user_id, name),
  FOREIGN KEY (tenant_id, user_id) REFERENCES trivet.tenant_user ON DELETE CASCADE
);
CREATE INDEX passkey_by_credential ON trivet.passkey (credential_id);

-- Rule: one user a passkey. Of the whole appliance, since at a login the passkey alone says whose it is; no unique index says so, as with
-- identities (invariant T2). The lock makes two who add the same one at once see each other.
CREATE FUNCTION trivet.one_user_a_passkey() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(encode(NEW.credential_id, 'hex'), 7412));
  IF EXISTS (SELECT FROM trivet.passkey WHERE credential_id = NEW.credential_id) THEN
    RAISE unique_violation;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER passkey_credential BEFORE INSERT OR UPDATE OF credential_id ON trivet.passkey
  FOR EACH ROW EXECUTE FUNCTION trivet.one_user_a_passkey();

-- What a browser was asked to sign, once and for minutes. user_id: who adds a passkey; NULL: somebody logs in. Reached by the
-- functions below and by nothing else.
CREATE TABLE trivet.passkey_challenge (
  challenge_hash bytea PRIMARY KEY CHECK (octet_length(challenge_hash) = 32),
  user_id uuid,
  -- Of that user when the password was proved: what changes the user ends what was begun before.
  user_version bigint,
  expires_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenge_expiry ON trivet.passkey_challenge (expires_at);
CREATE INDEX passkey_challenge_login ON trivet.passkey_challenge (expires_at) WHERE user_id IS NULL;
`;

const FUNCTIONS = `
-- What is over goes along, in a portion that is larger than what comes; and of logins, which anybody may begin, no more than p_most
-- are open at once. Gives whether it was begun.
CREATE FUNCTION trivet.passkey_begin(p_hash bytea, p_user uuid, p_version bigint, p_seconds integer, p_most integer) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM trivet.passkey_challenge
   WHERE challenge_hash IN (SELECT challenge_hash FROM trivet.passkey_challenge WHERE expires_at < now()
                             ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED);
  WITH begun AS (
    INSERT INTO trivet.passkey_challenge (challenge_hash, user_id, user_version, expires_at)
    SELECT p_hash, p_user, p_version, now() + p_seconds * interval '1 second'
     WHERE p_user IS NOT NULL
        OR (SELECT count(*) FROM (SELECT FROM trivet.passkey_challenge
                                   WHERE user_id IS NULL AND expires_at > now() LIMIT p_most) AS logins) < p_most
    RETURNING challenge_hash)
  SELECT EXISTS (SELECT FROM begun);
$$;

-- Of two who bring one answer the second finds nothing. No row: it is not good.
CREATE FUNCTION trivet.passkey_take(p_hash bytea, p_user uuid) RETURNS TABLE (user_version bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH taken AS (
    DELETE FROM trivet.passkey_challenge c WHERE c.challenge_hash = p_hash
    RETURNING c.user_version, c.expires_at > now() AND c.user_id IS NOT DISTINCT FROM p_user AS good)
  SELECT t.user_version FROM taken t WHERE t.good;
$$;

CREATE FUNCTION trivet.find_passkey(p_credential bytea)
RETURNS TABLE (tenant_id uuid, tenant_name text, tenant_state text, user_id uuid, user_name text, id uuid, public_key bytea,
               counter bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, t.name, t.state, u.id, u.name, p.id, p.public_key, p.counter
    FROM trivet.passkey p
    JOIN trivet.tenant t ON t.id = p.tenant_id
    JOIN trivet.tenant_user u ON u.tenant_id = p.tenant_id AND u.id = p.user_id AND u.state = 'active'
   WHERE p.credential_id = p_credential;
$$;

REVOKE EXECUTE ON FUNCTION trivet.one_user_a_passkey, trivet.passkey_begin, trivet.passkey_take, trivet.find_passkey FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.passkey_begin, trivet.passkey_take, trivet.find_passkey TO trivet_app;
`;

/** Logins without a password. Rules: docs/adr/0070. */
export class Passkeys1797210001830 implements Migration {
  readonly locks: Migration['locks'] = {
    // For the key that points at it.
    tenant_user: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(PASSKEYS + FUNCTIONS + rowSecurity(['passkey']));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.passkey_begin, trivet.passkey_take, trivet.find_passkey');
    await runner.query('DROP TABLE trivet.passkey, trivet.passkey_challenge');
    await runner.query('DROP FUNCTION trivet.one_user_a_passkey');
  }
}
