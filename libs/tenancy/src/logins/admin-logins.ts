import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { uuidv7 } from '#platform/uuid';
import { type Actor, type AuditEntry, auditWrite } from '#tenancy/audit-log/audit-log';
import { showLoginName } from '#tenancy/credentials/login-name';
import { Passwords, requirePassword } from '#tenancy/credentials/passwords';
import { hashOfToken, isToken, newToken } from '#tenancy/credentials/secret-tokens';
import type { CountedTries, FactorOwner, ProvedBy, SecondFactors } from '#tenancy/factors/second-factors';
import type {
  AdminDirectory,
  LoginRequest,
  OpenedLogin,
  PasswordChange,
  Principal,
} from '#tenancy/logins/admin-directory';
import {
  type AskCode,
  CodeNeeded,
  type FailedLogin,
  type KnownLogin,
  type PasswordLogin,
  PasswordLogins,
  refused,
} from '#tenancy/logins/password-logins';
import type { SuspendedTenants } from '#tenancy/tenants/suspended-tenants';

const log = createLogger('admin-logins');

/** What was revoked elsewhere works here no longer than this (invariant T1). */
const CACHE_MS = 5_000;
const CACHED = 10_000;
/** Of one user, between two entries of the audit log for a password without its code. */
const NOTED_MS = 60_000;
/** A login at the page ends after so long, used or not. */
export const LOGIN_MS = 12 * 3_600_000;

const FIND = sql(
  'admin_token_find',
  `SELECT id, kind, name AS "tokenName", tenant_id AS "tenantId", tenant_name AS tenant, tenant_kind AS "tenantKind",
          tenant_state AS "tenantState", user_id AS "userId", user_name AS "user", role, remaining_ms AS "remainingMs"
     FROM trivet.find_admin_token($1)`,
);
/**
 * The row lock and the conditions: a user who is disabled, gets another password or a second factor meanwhile opens nothing.
 */
const OPEN = sql(
  'admin_token_open',
  `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash, address, expires_at, user_agent,
                                   opened_by)
   SELECT $1, $2, u.id, 'session', '', u.role, $5, $6, now() + $7 * interval '1 ms', $8, $9
     FROM trivet.tenant_user u
    WHERE u.tenant_id = $1 AND u.id = $3 AND u.password = $4 AND u.state = 'active'
      AND (u.totp_since IS NULL) = ($9 = 'password')
      FOR SHARE OF u
   RETURNING id`,
);
export const REAP_LOGINS = sql(
  'admin_token_reap',
  `DELETE FROM trivet.admin_token
    WHERE tenant_id = $1
      AND id IN (SELECT id FROM trivet.admin_token WHERE tenant_id = $1 AND expires_at < now()
                  ORDER BY expires_at LIMIT 100 FOR UPDATE SKIP LOCKED)`,
);
const END = sql('admin_token_end', 'DELETE FROM trivet.admin_token WHERE tenant_id = $1 AND id = $2');
const SET_PASSWORD = sql(
  'admin_set_password',
  `UPDATE trivet.tenant_user SET password = $3, version = version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND password = $4 AND (totp_since IS NULL OR $5::boolean) RETURNING id`,
);
/** Tokens of drivers too: whoever had the old password may have some. */
const END_OTHER_LOGINS = sql(
  'admin_end_other_logins',
  `WITH driver AS (DELETE FROM trivet.session_token WHERE tenant_id = $1 AND user_id = $2)
   DELETE FROM trivet.admin_token WHERE tenant_id = $1 AND user_id = $2 AND kind = 'session' AND id <> $3`,
);
const USED = sql(
  'admin_token_used',
  'UPDATE trivet.admin_token SET last_used_at = now() WHERE tenant_id = $1 AND id = $2',
);

interface Found extends Omit<Principal, 'appliance' | 'active' | 'username' | 'expiresAt'> {
  tenantKind: string;
  tenantState: string;
  remainingMs: number | null;
}

/** Tokens are 256 random bits; only their SHA-256 is stored and compared. */
export class AdminLogins implements AdminDirectory {
  private readonly logins: PasswordLogins;
  private readonly passwords: Passwords;
  private readonly cache = new Map<string, { principal: Principal; until: number }>();
  /** When a right password without a code was last written down, by user. */
  private readonly noted = new Map<string, number>();
  /** Grows with each revocation: what was read before one is not kept after it. */
  private revocations = 0;

  constructor(
    private readonly database: Database,
    passwords = new Passwords(),
    /** For whom is looked again instead of answering from memory. */
    private readonly suspended?: Pick<SuspendedTenants, 'has'>,
    private readonly factors?: Pick<SecondFactors, 'prove'>,
  ) {
    this.passwords = passwords;
    this.logins = new PasswordLogins(database, passwords, failed => this.noteFailure(failed));
  }

  async login(request: LoginRequest): Promise<OpenedLogin> {
    const known = await this.logins.verify(request, (owner, tries) => this.askCode(owner, request.code, tries));
    const { tenantId, userId, account, password } = known;
    const { address } = request;
    const token = newToken();
    await this.database.withTenant(tenantId, async tx => {
      const opened = [
        hashOfToken(token),
        address,
        LOGIN_MS,
        shownAgent(request.userAgent),
        known.provedBy ?? 'password',
      ];
      const values = [tenantId, uuidv7(), userId, password, ...opened];
      if ((await tx.query(OPEN, values)).length === 0) throw refused();
      await tx.commit(
        [REAP_LOGINS, [tenantId]],
        auditWrite(
          { kind: 'user', name: account, address },
          loginEntry('session.login', { ...known, username: account }, provedWith(known.provedBy)),
        ),
      );
    });
    await this.logins.succeeded(known);
    const principal = await this.authenticate(token);
    if (!principal) throw refused();
    return { principal, token };
  }

  async authenticate(token: string): Promise<Principal | undefined> {
    if (!isToken(token)) return undefined;
    const hash = hashOfToken(token);
    const key = hash.toString('base64');
    const cached = this.cache.get(key);
    if (cached && performance.now() < cached.until && !this.suspended?.has(cached.principal.tenantId))
      return cached.principal;
    this.cache.delete(key);
    const { revocations } = this;
    const asked = performance.now();
    const [row] = await this.database.call<Found>(FIND, [hash]);
    if (!row) return undefined;
    const { tenantKind, tenantState, remainingMs, ...rest } = row;
    const principal: Principal = {
      ...rest,
      appliance: tenantKind === 'appliance',
      active: tenantState === 'active',
      username: showLoginName(rest),
      expiresAt: remainingMs === null ? null : new Date(Date.now() + remainingMs),
    };
    if (revocations === this.revocations && principal.active) {
      if (this.cache.size >= CACHED) this.cache.delete(this.cache.keys().next().value!);
      this.cache.set(key, { principal, until: asked + Math.min(CACHE_MS, remainingMs ?? CACHE_MS) });
    }
    // Once in the cache's time is often enough for a person who asks whether a token is used still.
    this.database
      .withTenant(principal.tenantId, tx => tx.query(USED, [principal.tenantId, principal.id]))
      .catch(error => log.debug({ err: error }, 'the use of a token was not noted'));
    return principal;
  }

  async logout(actor: Actor, principal: Principal): Promise<void> {
    const { tenantId, id } = principal;
    await this.database.withTenant(tenantId, tx =>
      tx.commit([END, [tenantId, id]], auditWrite(actor, loginEntry('session.logout', principal))),
    );
    this.forget(other => other.id === id);
  }

  async changePassword(
    actor: Actor,
    principal: Principal,
    { password: old, newPassword: wanted, code }: PasswordChange,
  ): Promise<void> {
    const { tenantId, userId, username } = principal;
    const stored = await this.passwords.hash(requirePassword(wanted, 'newPassword'));
    // A login has proved a code when it was opened, or has something as good; an API token never has.
    const known = await this.logins.verify({ username, password: old, address: actor.address }, (owner, tries) =>
      principal.kind === 'session' && code === undefined ? Promise.resolve('totp') : this.askCode(owner, code, tries),
    );
    await this.database.withTenant(tenantId, async tx => {
      const isProved = known.provedBy !== undefined;
      const rows = await tx.query(SET_PASSWORD, [tenantId, userId, stored, known.password, isProved]);
      if (rows.length === 0)
        throw new StorageError('aborted', 'the password was changed meanwhile, or a second factor came');
      await tx.commit(
        [END_OTHER_LOGINS, [tenantId, userId, principal.id]],
        auditWrite(actor, loginEntry('user.password', principal)),
      );
    });
    this.forget(other => other.userId === userId && other.id !== principal.id);
  }

  /** The password of somebody who is logged in, once more; `askCode` decides what else. */
  verifyAgain(request: PasswordLogin, askCode: AskCode): Promise<KnownLogin> {
    return this.logins.verify(request, askCode);
  }

  private async askCode(owner: FactorOwner, code: string | undefined, tries: CountedTries): Promise<ProvedBy> {
    if (!this.factors) throw new Error('logins without second factors know none');
    if (code === undefined) throw new CodeNeeded();
    return this.factors.prove(owner, code, tries);
  }

  /** For changes of users and tenants by this process: they count at once here. */
  forget(which: (principal: Principal) => boolean): void {
    this.revocations++;
    for (const [key, { principal }] of this.cache) if (which(principal)) this.cache.delete(key);
  }

  /** Not for a minute, by this gateway: the page itself sends the password first, and whoever has it would fill the log. */
  private isNews(userId: string): boolean {
    const now = performance.now();
    const last = this.noted.get(userId);
    if (last !== undefined && now < last + NOTED_MS) return false;
    this.noted.delete(userId);
    if (this.noted.size >= CACHED) this.noted.delete(this.noted.keys().next().value!);
    this.noted.set(userId, now);
    return true;
  }

  /** A login is refused whether or not this could be written. */
  private noteFailure(failed: FailedLogin): void {
    const { tenantId, account, address, needs } = failed;
    if (needs && !this.isNews(failed.userId)) return;
    const [statement, values] = auditWrite(
      { kind: 'user', name: account, address },
      loginEntry('session.refused', { ...failed, username: account }, needs && { needs }),
    );
    this.database
      .withTenant(tenantId, tx => tx.query(statement, values))
      .catch(error => log.error({ err: error, user: account, address }, 'a failed login was not written down'));
  }
}

/** One line that PostgreSQL keeps, and not more than tells browsers apart. */
export const shownAgent = (sent = ''): string =>
  sent
    .replace(/\p{Cc}/gu, '')
    .slice(0, 256)
    .toWellFormed();

const provedWith = (proved: ProvedBy) => (proved === undefined ? undefined : { proved });

type Subject = Pick<Principal, 'tenantId' | 'tenant' | 'userId' | 'username'>;
export const loginEntry = (action: string, user: Subject, after?: object): AuditEntry => ({
  tenantId: user.tenantId,
  tenantName: user.tenant,
  action,
  subject: { kind: 'user', id: user.userId, name: user.username },
  after,
});
