import { StorageError } from '#platform/errors';

/**
 * Logins of users, as the protocol libraries need them: tokens that several processes know, that survive restarts, and of
 * which one user may have many (docs/callers.md#logins). Implemented by Sessions; the tests of a room have their own.
 */
export interface SessionDirectory {
  /**
   * Throws StorageError: `unauthenticated` for an unknown user, a wrong password or a disabled user, all alike;
   * LoginThrottled; and only to whom the password was right TenantSuspended, or `invalid_argument` with field `array_ip`
   * when the tenant has no such backend.
   */
  login(request: LoginRequest): Promise<OpenedSession>;

  /**
   * Who has this token; undefined when nobody has: unknown, expired, revoked, its user disabled. Called before
   * every request: answered from memory mostly. Throws TenantSuspended, within 2 s of the suspension; else only when the
   * answer cannot be known (`unavailable`, `timeout`).
   */
  authenticate(token: string): Promise<Session | undefined>;

  /**
   * The backend of the session's tenant that `arrayIp` names, by the rules of login; '' is the session's own. Unknown:
   * `invalid_argument`, field `x-array-ip`. Called with the header of every request: answered from memory mostly.
   */
  selectBackend(session: Session, arrayIp: string): Promise<SessionBackend>;

  /** Ends a token of the session's own user. `tokenId` is any text; another user's or none: `not_found`. */
  revoke(session: Session, tokenId: string): Promise<void>;
}

export interface LoginRequest {
  /** `user`, or `user@tenant`. */
  username: string;
  password: string;
  /** Name or address of a registered backend; '' is the tenant's default. Never an address to connect to. */
  arrayIp: string;
  /** How the login was written, in a `data` envelope or bare: all replies to the session are written alike. */
  enveloped: boolean;
  /** Of the peer, for the throttle. */
  address: string;
}

export interface SessionBackend {
  backendId: string;
  backendKind: string;
}

export interface Session extends SessionBackend {
  /** Of the token, not secret. */
  id: string;
  userId: string;
  username: string;
  tenantId: string;
  role: 'viewer' | 'operator' | 'admin';
  enveloped: boolean;
  /** As given at login. */
  arrayIp: string;
}

export interface OpenedSession extends Session {
  /** The secret itself; kept nowhere. */
  token: string;
  createdAt: Date;
  expiresAt: Date;
}

/** Too many wrong passwords for this account or from this address. */
export class LoginThrottled extends StorageError {
  constructor(readonly retryAfterSeconds: number) {
    super('resource_exhausted', `too many failed logins; wait ${retryAfterSeconds} s`);
  }
}
