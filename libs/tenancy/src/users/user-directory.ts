import type { PageOf, PageRequest } from '#platform/database/keyset';
import type { Actor } from '#tenancy/audit-log/audit-log';
import type { Role } from '#tenancy/users/roles';

/** A tenant, as much of it as its users need. */
export interface TenantRef {
  id: string;
  name: string;
}

export interface UserView {
  id: string;
  /** Within its tenant. */
  name: string;
  role: Role;
  state: 'active' | 'disabled';
  /** By which an OpenID Connect provider knows them. */
  identity: { issuer: string; subject: string } | null;
  /** Grows with each change. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
  /** Live API tokens. */
  tokens: number;
  /** Live tokens of its drivers. */
  driverTokens: number;
}

export interface UserChanges {
  role?: Role | undefined;
  state?: UserView['state'] | undefined;
  password?: string | undefined;
  /** Of the provider that is configured now; null: unlink. */
  subject?: string | null | undefined;
}

/** Users of tenants, the appliance's own administrators among them. Implemented by Users. */
export interface UserDirectory {
  /** By name. */
  list(tenant: TenantRef, page: PageRequest): Promise<PageOf<UserView>>;
  /** `not_found` if there is none. */
  get(tenant: TenantRef, name: string): Promise<UserView>;
  /** Name taken: `already_exists`. */
  create(actor: Actor, tenant: TenantRef, request: { name: string; role: Role; password: string }): Promise<UserView>;
  /**
   * Another password, another identity and disabling end the logins of the user and the tokens of its drivers. `check`
   * sees the user before the change, under its lock, and throws to refuse. The last administrator of the appliance who can
   * log in stays so: `failed_precondition`. An identity without a provider: the same; one that another user has:
   * `already_exists`.
   */
  change(actor: Actor, tenant: TenantRef, name: string, changes: UserChanges, check?: UserCheck): Promise<UserView>;
  /** With its logins and tokens; else as `change`. */
  delete(actor: Actor, tenant: TenantRef, name: string, check?: UserCheck): Promise<void>;
}

export type UserCheck = (user: UserView) => void;
