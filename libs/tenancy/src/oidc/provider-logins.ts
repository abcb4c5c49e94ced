import type { SecretBox } from '#platform/crypto/secrets';
import { type Database, isUniqueViolation, type Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { uuidv7 } from '#platform/uuid';
import { type Actor, type AuditEntry, auditWrite } from '#tenancy/audit-log/audit-log';
import { APPLIANCE_TENANT, type LoginName, parseLoginName, showLoginName } from '#tenancy/credentials/login-name';
import { hashOfToken, newToken } from '#tenancy/credentials/secret-tokens';
import type { LoginOrigin, OpenedLogin } from '#tenancy/logins/admin-directory';
import { type AdminLogins, LOGIN_MS, loginEntry, REAP_LOGINS, shownAgent } from '#tenancy/logins/admin-logins';
import { LoginThrottle } from '#tenancy/logins/login-throttle';
import { IdentityProvider, LoginUnproved, type Person } from '#tenancy/oidc/identity-provider';
import type { BegunLogin, FinishRequest, ProviderDirectory } from '#tenancy/oidc/provider-directory';
import { openLogin, sealLogin } from '#tenancy/oidc/sealed-login';
import { TenantSuspended } from '#tenancy/tenants/suspended-tenants';

const log = createLogger('provider-logins');

const BY_IDENTITY = sql(
  'provider_by_identity',
  `SELECT tenant_id AS "tenantId", tenant_name AS tenant, tenant_state AS "tenantState", user_id AS "userId",
          user_name AS "user"
     FROM trivet.find_identity($1, $2)`,
);
const BY_NAME = sql(
  'provider_by_name',
  `SELECT tenant_id AS "tenantId", tenant_state AS "tenantState", user_id AS "userId"
     FROM trivet.find_login($1, $2)`,
);
/** Whom nobody linked, or whose link is one with the provider before this one. */
const LINK = sql(
  'provider_link',
  `UPDATE trivet.tenant_user SET issuer = $3, subject = $4, version = version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND state = 'active' AND issuer IS DISTINCT FROM $3
   RETURNING id`,
);
/** The row lock and the conditions: a user who is disabled or unlinked meanwhile opens nothing. */
const OPEN = sql(
  'provider_open',
  `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash, address, expires_at, user_agent,
                                   opened_by)
   SELECT $1, $2, u.id, 'session', '', u.role, $6, $7, now() + $8 * interval '1 ms', $9, 'provider'
     FROM trivet.tenant_user u
    WHERE u.tenant_id = $1 AND u.id = $3 AND u.issuer = $4 AND u.subject = $5 AND u.state = 'active'
      FOR SHARE OF u
   RETURNING id`,
);
const APPLIANCE = sql('provider_appliance', 'SELECT tenant_id AS "tenantId" FROM trivet.appliance_tenant()');

interface Known {
  tenantId: string;
  tenant: string;
  tenantState: string;
  userId: string;
  user: string;
  /** By its login name, and to be linked by this login. */
  unlinked: boolean;
}

interface Parts {
  database: Database;
  secrets: SecretBox;
  provider: IdentityProvider;
  logins: Pick<AdminLogins, 'authenticate'>;
}

/**
 * Says which user a person is, and opens a login as a password does. Who is nobody here stays nobody: users and roles are
 * made in Trivet alone (docs/adr/0021).
 */
export class ProviderLogins implements ProviderDirectory {
  private readonly throttle: LoginThrottle;

  constructor(private readonly parts: Parts) {
    this.throttle = new LoginThrottle(parts.database);
  }

  get name(): string {
    return this.parts.provider.settings.name;
  }

  async begin(): Promise<BegunLogin> {
    const { location, begun } = await this.parts.provider.begin();
    return { location, sealed: sealLogin(this.parts.secrets, begun) };
  }

  async finish({ sealed, answer, ...origin }: FinishRequest): Promise<OpenedLogin> {
    const { address } = origin;
    await this.throttle.checkAddress(address);
    try {
      const begun = openLogin(this.parts.secrets, sealed ?? '');
      if (!begun) throw new LoginUnproved('this login did not begin in this browser, or took too long; begin again');
      const person = await this.parts.provider.person(answer, begun);
      return await this.open(person, origin);
    } catch (error) {
      if (error instanceof LoginUnproved || error instanceof Unknown) await this.throttle.failedFrom(address);
      throw error;
    }
  }

  private async open(person: Person, origin: LoginOrigin): Promise<OpenedLogin> {
    const { address } = origin;
    const known = await this.find(person);
    if (!known) {
      await this.noteStranger(person, address);
      throw new Unknown(this.name);
    }
    const user = { ...known, username: showLoginName(known) };
    const by: Actor = { kind: 'user', name: user.username, address };
    try {
      return await this.enter(user, person, by, shownAgent(origin.userAgent));
    } catch (error) {
      const after = { provider: this.name, subject: person.subject };
      if (error instanceof Unknown || error instanceof TenantSuspended)
        await this.note(known.tenantId, auditWrite(by, loginEntry('session.refused', user, after)));
      throw error;
    }
  }

  private async enter(
    user: Known & { username: string },
    person: Person,
    by: Actor,
    userAgent: string,
  ): Promise<OpenedLogin> {
    const { database, provider, logins } = this.parts;
    const { tenantId, userId } = user;
    if (user.tenantState !== 'active') throw new TenantSuspended(user.tenant, user.tenantState);
    const token = newToken();
    await database.withTenant(tenantId, async tx => {
      const linked = user.unlinked && (await this.link(tx, user, person));
      const identity = [provider.settings.issuer, person.subject];
      const values = [tenantId, uuidv7(), userId, ...identity, hashOfToken(token), by.address, LOGIN_MS, userAgent];
      if ((await tx.query(OPEN, values)).length === 0) throw new Unknown(this.name);
      if (linked) await tx.query(...auditWrite(by, loginEntry('user.link', user, { subject: person.subject })));
      await tx.commit(
        [REAP_LOGINS, [tenantId]],
        auditWrite(by, loginEntry('session.login', user, { provider: this.name })),
      );
    });
    const principal = await logins.authenticate(token);
    if (!principal) throw new Unknown(this.name);
    return { principal, token };
  }

  private async find({ subject, login }: Person): Promise<Known | undefined> {
    const { database, provider } = this.parts;
    const [linked] = await database.call<Known>(BY_IDENTITY, [provider.settings.issuer, subject]);
    if (linked) return linked;
    const name = login === undefined ? undefined : this.loginName(login);
    if (!name) return undefined;
    const [found] = await database.call<Known>(BY_NAME, [name.tenant, name.user]);
    return found && { ...found, ...name, unlinked: true };
  }

  private loginName(login: string): LoginName | undefined {
    return parseLoginName(login.includes('@') ? login : `${login}@${this.parts.provider.settings.loginTenant}`);
  }

  private async link(tx: Tx, { tenantId, userId }: Known, { subject }: Person): Promise<boolean> {
    try {
      return (await tx.query(LINK, [tenantId, userId, this.parts.provider.settings.issuer, subject])).length > 0;
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new StorageError('aborted', 'this person was linked with a user at the same moment', { cause: error });
    }
  }

  /** With what an administrator needs to link them. */
  private async noteStranger({ subject, login }: Person, address: string): Promise<void> {
    const [row] = await this.parts.database.call<{ tenantId: string }>(APPLIANCE, []);
    const entry: AuditEntry = {
      tenantId: row!.tenantId,
      tenantName: APPLIANCE_TENANT,
      action: 'session.refused',
      subject: { kind: 'person', id: subject, name: login === undefined ? '' : writable(login) },
      after: { provider: this.name },
    };
    await this.note(row!.tenantId, auditWrite({ kind: 'system', name: 'login', address }, entry));
  }

  /** A login is refused whether or not this can be written. */
  private async note(tenantId: string, [statement, values]: ReturnType<typeof auditWrite>): Promise<void> {
    try {
      await this.parts.database.withTenant(tenantId, tx => tx.query(statement, values));
    } catch (error) {
      log.error({ err: error }, 'a refused login was not written down');
    }
  }
}

/** PostgreSQL keeps neither NUL nor half a character. */
const writable = (text: string): string =>
  text
    .replace(/\p{Cc}/gu, '')
    .slice(0, 255)
    .toWellFormed();

/** The same for whoever is no user here, and for whoever is disabled. */
class Unknown extends StorageError {
  constructor(provider: string) {
    super(
      'permission_denied',
      `${provider} knows you, but no user of Trivet is linked with you: ask whoever runs the appliance`,
      { retry: 'never' },
    );
  }
}
