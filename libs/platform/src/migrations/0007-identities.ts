import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Users whom an OpenID Connect provider vouches for. Rules: docs/adr/0021. */
export class Identities1795651200000 implements Migration {
  readonly locks: Migration['locks'] = {
    tenant_user: { mode: 'ACCESS EXCLUSIVE', work: ['scan', 'index'], seconds: 6 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(IDENTITIES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TRIGGER tenant_user_identity ON trivet.tenant_user;
      DROP FUNCTION trivet.one_user_an_identity, trivet.find_identity;
      ALTER TABLE trivet.tenant_user DROP COLUMN issuer, DROP COLUMN subject`);
  }
}

const IDENTITIES = `
-- The only pair that OpenID Connect promises to be one person's for ever.
ALTER TABLE trivet.tenant_user
  ADD COLUMN issuer text,
  ADD COLUMN subject text CHECK (subject ~ '^[ -~]{1,255}$'),
  ADD CONSTRAINT tenant_user_identity_check CHECK ((issuer IS NULL) = (subject IS NULL));
CREATE INDEX tenant_user_identity ON trivet.tenant_user (issuer, subject) WHERE subject IS NOT NULL;

-- Rule: one user a person. Of the whole appliance, and no unique index says so: it would tell a tenant about another's users
-- (invariant T2), so only the appliance's administrators and logins set an identity. The lock makes two who set the
-- same one at once see each other.
CREATE FUNCTION trivet.one_user_an_identity() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(NEW.issuer || chr(10) || NEW.subject, 7411));
  IF EXISTS (SELECT FROM trivet.tenant_user
              WHERE issuer = NEW.issuer AND subject = NEW.subject AND (tenant_id, id) <> (NEW.tenant_id, NEW.id)) THEN
    RAISE unique_violation;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER tenant_user_identity BEFORE INSERT OR UPDATE OF issuer, subject ON trivet.tenant_user
  FOR EACH ROW WHEN (NEW.subject IS NOT NULL) EXECUTE FUNCTION trivet.one_user_an_identity();

CREATE FUNCTION trivet.find_identity(p_issuer text, p_subject text)
RETURNS TABLE (tenant_id uuid, tenant_name text, tenant_state text, user_id uuid, user_name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, t.name, t.state, u.id, u.name
    FROM trivet.tenant_user u JOIN trivet.tenant t ON t.id = u.tenant_id
   WHERE u.issuer = p_issuer AND u.subject = p_subject;
$$;

REVOKE EXECUTE ON FUNCTION trivet.one_user_an_identity, trivet.find_identity FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.find_identity TO trivet_app;
`;
