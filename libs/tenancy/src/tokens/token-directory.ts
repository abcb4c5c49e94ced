import type { PageOf, PageRequest } from '#platform/database/keyset';
import type { Actor } from '#tenancy/audit-log/audit-log';
import type { Role } from '#tenancy/users/roles';
import type { TenantRef } from '#tenancy/users/user-directory';

export interface TokenView {
  id: string;
  name: string;
  /** Login name of whose it is. */
  user: string;
  role: Role;
  createdAt: Date;
  lastUsedAt: Date | null;
  expiresAt: Date | null;
}

export interface TokenRequest {
  name: string;
  /** Whose, within the tenant. */
  user: string;
  role: Role;
  /** Absent: until it is revoked. */
  expiresInMs?: number | undefined;
}

/** Sees whose it is, and with what rights; throws to refuse. */
export type TokenCheck = (userId: string, role: Role) => void;

export interface TokenRotation {
  /** So long the one that is rotated works beside the new one; 0: it ends at once. */
  graceMs: number;
  /** Of the new one; absent: as long as the one before was made for. */
  expiresInMs?: number | undefined;
}

/** API tokens, for automation. The secret is shown when the token is made, and stored nowhere. Implemented by ApiTokens. */
export interface TokenDirectory {
  /** Oldest first. */
  list(tenant: TenantRef, filter: { user?: string | undefined }, page: PageRequest): Promise<PageOf<TokenView>>;
  /**
   * No such user: `not_found`; one that is disabled: `failed_precondition`; the user has one of this name:
   * `already_exists`; a role beyond the user's own: `invalid_argument`.
   */
  create(actor: Actor, tenant: TenantRef, request: TokenRequest): Promise<TokenView & { token: string }>;
  /**
   * Another token of the same name, user and role; the former is called `NAME (former)` until it ends. While there is one, only a
   * rotation without grace is accepted, which ends both: `failed_precondition`. So are a former one while the one after it
   * lives, one that has ended, one that may more than its user by now, and the launcher's. `check` as of `revoke`.
   */
  rotate(
    actor: Actor,
    tenant: TenantRef,
    id: string,
    rotation: TokenRotation,
    check?: TokenCheck,
  ): Promise<TokenView & { token: string }>;
  /**
   * `not_found` if there is none. `check` sees whose it is before it is gone, and throws to refuse. It works no more from
   * now on here, within 5 s elsewhere.
   */
  revoke(actor: Actor, tenant: TenantRef, id: string, check?: TokenCheck): Promise<void>;
}
