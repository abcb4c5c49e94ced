import type { Actor } from '#tenancy/audit-log/audit-log';
import type { Role } from '#tenancy/users/roles';

/** Who calls the admin API, by a login at the page or by an API token. */
export interface Principal {
  /** Of the login or token, not secret. */
  id: string;
  kind: 'session' | 'token';
  tokenName: string;
  tenantId: string;
  tenant: string;
  /** Administers the appliance, with this role over all tenants. */
  appliance: boolean;
  /** The tenant is not suspended. */
  active: boolean;
  userId: string;
  /** Its name within the tenant. */
  user: string;
  /** As it logs in. */
  username: string;
  role: Role;
  expiresAt: Date | null;
}

export interface OpenedLogin {
  principal: Principal;
  /** The secret itself; kept nowhere. */
  token: string;
}

/** From where somebody logs in, for whoever looks at the list of logins later. */
export interface LoginOrigin {
  /** Of the peer, for the throttle, too. */
  address: string;
  /** Of the program, as it names itself. */
  userAgent?: string;
}

export interface LoginRequest extends LoginOrigin {
  username: string;
  password: string;
  /** Of a user with a second factor: six digits, or a recovery code. */
  code?: string | undefined;
}

export interface PasswordChange {
  /** The one until now. */
  password: string;
  newPassword: string;
  code?: string | undefined;
}

/** Logins of administrators at the page, and whose an API token is. Implemented by AdminLogins. */
export interface AdminDirectory {
  /** Throws as PasswordLogins.verify does, CodeNeeded of a user with a second factor. A failure of a known user stands in the audit log, too. */
  login(request: LoginRequest): Promise<OpenedLogin>;
  /** Answered from memory mostly; what was revoked elsewhere works no longer than 5 s. */
  authenticate(token: string): Promise<Principal | undefined>;
  logout(actor: Actor, principal: Principal): Promise<void>;
  /**
   * Ends the user's other logins; API tokens stay. Wrong old one: `unauthenticated`, and counted by the throttle. CodeNeeded: by an
   * API token of a user with a second factor, without a code.
   */
  changePassword(actor: Actor, principal: Principal, change: PasswordChange): Promise<void>;
}
