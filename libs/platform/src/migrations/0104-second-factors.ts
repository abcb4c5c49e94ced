import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const TABLES = ['user_totp', 'recovery_code'];

const FACTORS = `
-- Since when a login by password asks for a code, too; NULL: it does not. In the row of the user, so that whoever opens a login under
-- its lock sees it.
ALTER TABLE trivet.tenant_user ADD COLUMN totp_since timestamptz;

-- What codes are made of; the secret itself is sealed in trivet.secret. Not proved yet while the user has no totp_since.
CREATE TABLE trivet.user_totp (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  -- Time step of the newest code that was taken: a code is good once (RFC 6238, 5.2), also at two gateways.
  used_step bigint NOT NULL DEFAULT 0,
  begun_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, user_id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES trivet.tenant_user ON DELETE CASCADE
);

-- In the place of a code, each once. By the SHA-256 of 80 random bits.
CREATE TABLE trivet.recovery_code (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  code_hash bytea NOT NULL CHECK (octet_length(code_hash) = 32),
  PRIMARY KEY (tenant_id, user_id, code_hash),
  FOREIGN KEY (tenant_id, user_id) REFERENCES trivet.tenant_user ON DELETE CASCADE
);
`;

const LOGIN = `
DROP FUNCTION trivet.find_login;
CREATE FUNCTION trivet.find_login(p_tenant text, p_user text)
RETURNS TABLE (tenant_id uuid, user_id uuid, password text, role text, active boolean, tenant_state text, asks_code boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT u.tenant_id, u.id, u.password, u.role, u.state = 'active', t.state, u.totp_since IS NOT NULL
    FROM trivet.tenant t JOIN trivet.tenant_user u ON u.tenant_id = t.id
   WHERE t.name = p_tenant AND u.name = p_user;
$$;
`;
const LOGIN_BEFORE = `
DROP FUNCTION trivet.find_login;
CREATE FUNCTION trivet.find_login(p_tenant text, p_user text)
RETURNS TABLE (tenant_id uuid, user_id uuid, password text, role text, active boolean, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT u.tenant_id, u.id, u.password, u.role, u.state = 'active', t.state
    FROM trivet.tenant t JOIN trivet.tenant_user u ON u.tenant_id = t.id
   WHERE t.name = p_tenant AND u.name = p_user;
$$;
`;
const RIGHTS = `
REVOKE EXECUTE ON FUNCTION trivet.find_login FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.find_login TO trivet_app;
`;

/** Codes besides passwords. Rules: docs/adr/0070. */
export class SecondFactors1797210001820 implements Migration {
  readonly locks: Migration['locks'] = { tenant_user: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(FACTORS + LOGIN + RIGHTS + rowSecurity(TABLES));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(LOGIN_BEFORE + RIGHTS);
    await runner.query(`DROP TABLE ${TABLES.map(table => `trivet.${table}`)}`);
    await runner.query('ALTER TABLE trivet.tenant_user DROP COLUMN totp_since');
    await runner.query(`DELETE FROM trivet.secret WHERE owner_table = 'user_totp'`);
  }
}
