import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { parseLoginName, showLoginName } from '#tenancy/credentials/login-name';
import { Passwords } from '#tenancy/credentials/passwords';
import type { CountedTries, FactorOwner, ProvedBy } from '#tenancy/factors/second-factors';
import { LoginThrottle } from '#tenancy/logins/login-throttle';
import { TenantSuspended } from '#tenancy/tenants/suspended-tenants';
import type { Role } from '#tenancy/users/users';

const log = createLogger('logins');

const FIND = sql(
  'login_find',
  `SELECT tenant_id AS "tenantId", user_id AS "userId", password, role, active,
          tenant_state AS "tenantState", asks_code AS "asksCode"
     FROM trivet.find_login($1, $2)`,
);
const REHASH = sql(
  'login_rehash',
  'UPDATE trivet.tenant_user SET password = $4 WHERE tenant_id = $1 AND id = $2 AND password = $3',
);

export interface PasswordLogin {
  username: string;
  password: string;
  /** Of the peer, for the throttle. */
  address: string;
}

export interface KnownLogin {
  tenantId: string;
  tenant: string;
  userId: string;
  /** As it shows everywhere. */
  account: string;
  role: Role;
  /** The stored string: whoever opens something makes sure that it is the same still. */
  password: string;
  /** By which code, of a user that is asked for one; undefined: it is not. */
  provedBy?: ProvedBy;
}

interface Row extends Omit<KnownLogin, 'account' | 'tenant' | 'provedBy'> {
  active: boolean;
  tenantState: string;
  /** It has a second factor. */
  asksCode: boolean;
}

/** A refused login of a user that there is. */
export type FailedLogin = Pick<KnownLogin, 'tenantId' | 'tenant' | 'userId' | 'account'> & {
  address: string;
  /** The password was right, and no code came with it. */
  needs?: 'code';
};

/**
 * Of a user that has a second factor, once the password was right: proves the code, and counts a wrong one by `tries`; or throws
 * CodeNeeded when there is none.
 */
export type AskCode = (owner: FactorOwner, tries: CountedTries) => Promise<ProvedBy>;

/** For ways in that have no place for a code, such as those of drivers. */
const noCode: AskCode = async () => {
  throw new StorageError(
    'permission_denied',
    'this user has a second factor, which is not asked for here: let drivers have a user of their own',
    { retry: 'never' },
  );
};

/**
 * A name and a password, for every interface that has such logins. Throws LoginThrottled, and `unauthenticated` for an unknown
 * user, a wrong password or a disabled user, all alike. Only to whom the password was right: TenantSuspended, and what
 * `askCode` throws; a wrong code counts as a wrong password does.
 */
export class PasswordLogins {
  private readonly throttle: LoginThrottle;

  constructor(
    private readonly database: Database,
    private readonly passwords = new Passwords(),
    /** Not waited for: the time of a refusal would tell who is a user. The throttle bounds how often. */
    private readonly onFailure: (failed: FailedLogin) => void = () => {},
  ) {
    this.throttle = new LoginThrottle(database);
  }

  async verify({ username, password, address }: PasswordLogin, askCode: AskCode = noCode): Promise<KnownLogin> {
    const name = parseLoginName(username);
    const account = name ? showLoginName(name) : username;
    let login: Row | undefined;
    const find = async () => {
      await this.throttle.check(account, address);
      if (name) [login] = await this.database.call<Row>(FIND, [name.tenant, name.user]);
      return login?.password;
    };
    // Counted before the next one's turn: who guesses in parallel gets no more tries of this gateway's.
    const { known, outdated } = await this.passwords.verify(password, find, async verdict => {
      if (login?.active && verdict.matches && login.tenantState !== 'active')
        throw new TenantSuspended(name!.tenant, login.tenantState);
      let wrong: StorageError | undefined;
      if (login?.active && verdict.matches) {
        const { active: _, tenantState: __, asksCode, ...rest } = login;
        const tries = LoginThrottle.triesOf(account, address);
        const { tenantId, userId } = login;
        const missing = (error: unknown): never => {
          if (error instanceof CodeNeeded)
            this.onFailure({ tenantId, tenant: name!.tenant, userId, account, address, needs: 'code' });
          throw error;
        };
        const provedBy = asksCode ? await askCode(login, tries).catch(missing) : undefined;
        if (!asksCode || provedBy !== undefined)
          return { known: { ...rest, tenant: name!.tenant, account, provedBy }, outdated: verdict.outdated };
        wrong = new CodeNeeded(WRONG_CODE);
      }
      // Of an unknown account nothing is written down: it may be a password.
      log.warn({ user: login && account, address }, 'a login failed');
      if (!wrong) await this.throttle.failed(account, address);
      if (login) {
        const { tenantId, userId } = login;
        this.onFailure({ tenantId, tenant: name!.tenant, userId, account, address });
      }
      throw wrong ?? refused();
    });
    if (outdated) known.password = await this.rehash(known, password);
    return known;
  }

  /** Its failures are forgotten. */
  succeeded({ account }: KnownLogin): Promise<void> {
    return this.throttle.succeeded(account);
  }

  private async rehash({ tenantId, userId, password }: KnownLogin, plain: string): Promise<string> {
    const stored = await this.passwords.hash(plain);
    await this.database.withTenant(tenantId, tx => tx.query(REHASH, [tenantId, userId, password, stored]));
    return stored;
  }
}

const WRONG_CODE = 'the code is wrong, or was used already: send the next one, or a recovery code';

/** To whom the password was right: there is no code, or a wrong one. */
export class CodeNeeded extends StorageError {
  constructor(message = 'this user has a second factor: send a code of the app, or a recovery code, as `code`') {
    super('unauthenticated', message, { retry: 'never' });
  }
}

/** The same for everybody who may not in. */
export const refused = (): StorageError =>
  new StorageError('unauthenticated', 'the user name or the password is wrong', { retry: 'never' });
