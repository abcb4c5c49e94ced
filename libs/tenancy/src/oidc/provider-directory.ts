import type { LoginOrigin, OpenedLogin } from '#tenancy/logins/admin-directory';

/** A login by the provider that has begun: both halves are needed to end it. */
export interface BegunLogin {
  /** Where the browser goes. */
  location: string;
  /** For the browser's cookie; whoever reads it learns nothing. */
  sealed: string;
}

export interface FinishRequest extends LoginOrigin {
  /** Of BegunLogin, if the browser has it still. */
  sealed: string | undefined;
  /** The query that the provider sent the browser back with. */
  answer: string;
}

/** Logins of people whom an OpenID Connect provider vouches for. Implemented by ProviderLogins. */
export interface ProviderDirectory {
  /** For people, such as `Keycloak`. */
  readonly name: string;
  /** `unavailable` when the provider does not answer. */
  begin(): Promise<BegunLogin>;
  /**
   * Throws LoginThrottled; `unauthenticated` when the answer does not belong to this login, or the provider refuses it;
   * `permission_denied` when nobody here is that person; TenantSuspended; `unavailable`, `failed_precondition` when the
   * provider cannot be used.
   */
  finish(request: FinishRequest): Promise<OpenedLogin>;
}
