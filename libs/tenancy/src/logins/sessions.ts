import { createHash, randomBytes } from 'node:crypto';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import { showLoginName } from '#tenancy/credentials/login-name';
import type { Passwords } from '#tenancy/credentials/passwords';
import { type BackendChoice, chooseBackend, readBackends } from '#tenancy/logins/backend-choice';
import { type KnownLogin, PasswordLogins, refused } from '#tenancy/logins/password-logins';
import type {
  LoginRequest,
  OpenedSession,
  Session,
  SessionBackend,
  SessionDirectory,
} from '#tenancy/logins/session-directory';
import { type SuspendedTenants, TenantSuspended } from '#tenancy/tenants/suspended-tenants';

/** What was revoked elsewhere works here no longer than this (invariant T1). */
const CACHE_MS = 5_000;
const CACHED = 10_000;
/** Expired tokens that a login removes on its way. */
const REAPED = 100;

const FIND = sql(
  'session_find',
  `SELECT id, tenant_id AS "tenantId", tenant_name AS tenant, user_id AS "userId", user_name AS "user", role,
          backend_id AS "backendId", backend_kind AS "backendKind", enveloped, array_ip AS "arrayIp",
          remaining_ms AS "remainingMs", tenant_state AS "tenantState"
     FROM trivet.find_session($1)`,
);
/** The row lock and the conditions: a user who is disabled or gets another password meanwhile opens nothing. */
const OPEN = sql(
  'session_open',
  `INSERT INTO trivet.session_token (tenant_id, id, user_id, token_hash, backend_id, enveloped, array_ip, expires_at)
   SELECT $1, $2, u.id, $5, $6, $7, $8, now() + $9 * interval '1 ms'
     FROM trivet.tenant_user u
    WHERE u.tenant_id = $1 AND u.id = $3 AND u.password = $4 AND u.state = 'active' AND u.totp_since IS NULL
      AND EXISTS (SELECT FROM trivet.tenant t WHERE t.id = $1 AND t.state = 'active')
      FOR SHARE OF u
   RETURNING created_at AS "createdAt", expires_at AS "expiresAt"`,
);
const REAP = sql(
  'session_reap',
  `DELETE FROM trivet.session_token
    WHERE tenant_id = $1
      AND id IN (SELECT id FROM trivet.session_token WHERE tenant_id = $1 AND expires_at < now()
                  ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
);
const REVOKE = sql(
  'session_revoke',
  'DELETE FROM trivet.session_token WHERE tenant_id = $1 AND id = $2 AND user_id = $3 RETURNING id',
);

type Found = Omit<Session, 'username'> & {
  tenant: string;
  user: string;
  remainingMs: number;
  tenantState: string;
};

export interface SessionsOptions {
  database: Database;
  /** Is a backend of this kind one of block volumes? */
  isBlockKind(kind: string): boolean;
  /** How long a token lives. */
  ttlMs: number;
  passwords?: Passwords;
  /** For whom is answered from memory. */
  suspended?: Pick<SuspendedTenants, 'require'>;
  /** Milliseconds that only grow. */
  clock?: () => number;
}

/**
 * Tokens are 256 random bits in base64url. Only their SHA-256 is stored and compared: finding a row by the hash of what
 * was sent tells nothing by its time. They live in Postgres, so every gateway knows them and a restart ends none.
 */
export class Sessions implements SessionDirectory {
  private readonly database: Database;
  private readonly logins: PasswordLogins;
  private readonly clock: () => number;
  private readonly cache = new Map<string, { session: Session; until: number }>();
  private readonly backends = new Map<string, { all: BackendChoice[]; until: number }>();
  /** Grows with each revocation: what was read before one is not kept after it. */
  private revocations = 0;

  constructor(private readonly options: SessionsOptions) {
    this.database = options.database;
    this.logins = new PasswordLogins(options.database, options.passwords);
    this.clock = options.clock ?? (() => performance.now());
  }

  async login(request: LoginRequest): Promise<OpenedSession> {
    const known = await this.logins.verify(request);
    const opened = await this.open(known, request);
    await this.logins.succeeded(known);
    return opened;
  }

  async authenticate(token: string): Promise<Session | undefined> {
    if (!/^[A-Za-z0-9_-]{43}$/.test(token)) return undefined;
    const hash = hashOf(token);
    const key = hash.toString('base64');
    const cached = this.cache.get(key);
    if (cached && this.clock() < cached.until) {
      this.options.suspended?.require(cached.session.tenantId);
      return cached.session;
    }
    this.cache.delete(key);
    const revocations = this.revocations;
    const asked = this.clock();
    const [row] = await this.database.call<Found>(FIND, [hash]);
    if (!row) return undefined;
    const { tenant, user, remainingMs, tenantState, ...rest } = row;
    if (tenantState !== 'active') throw new TenantSuspended(tenant, tenantState);
    const session = { ...rest, username: showLoginName({ tenant, user }) };
    if (revocations === this.revocations) {
      if (this.cache.size >= CACHED) this.cache.delete(this.cache.keys().next().value!);
      this.cache.set(key, { session, until: asked + Math.min(CACHE_MS, remainingMs) });
    }
    return session;
  }

  async selectBackend(session: Session, arrayIp: string): Promise<SessionBackend> {
    const { backendId, backendKind, tenantId } = session;
    if (arrayIp === '' || arrayIp === session.arrayIp) return { backendId, backendKind };
    let known = this.backends.get(tenantId);
    if (!known || known.until <= this.clock()) {
      const until = this.clock() + CACHE_MS;
      known = { all: await this.database.withTenant(tenantId, tx => this.blockBackends(tx, tenantId)), until };
      this.backends.set(tenantId, known);
    }
    return requireChosen(known.all, arrayIp, 'x-array-ip');
  }

  async revoke(session: Session, tokenId: string): Promise<void> {
    const { tenantId, userId } = session;
    const rows = isUuid(tokenId)
      ? await this.database.withTenant(tenantId, tx => tx.query(REVOKE, [tenantId, tokenId, userId]))
      : [];
    if (rows.length === 0) throw new StorageError('not_found', 'you have no such token', { resource: 'token' });
    this.forget(known => known.id === tokenId);
  }

  /** For changes of users by this process: they count at once here. */
  forget(which: (session: Session) => boolean): void {
    this.revocations++;
    for (const [key, { session }] of this.cache) if (which(session)) this.cache.delete(key);
  }

  private async open(login: KnownLogin, request: LoginRequest): Promise<OpenedSession> {
    const { tenantId, userId, role } = login;
    const { username, arrayIp, enveloped } = request;
    const token = randomBytes(32).toString('base64url');
    const id = uuidv7();
    return this.database.withTenant(tenantId, async tx => {
      const all = await this.blockBackends(tx, tenantId);
      const backend = requireChosen(all, arrayIp, 'array_ip');
      const values = [tenantId, id, userId, login.password, hashOf(token), backend.backendId, enveloped, arrayIp];
      const [row] = await tx.query<{ createdAt: Date; expiresAt: Date }>(OPEN, [...values, this.options.ttlMs]);
      if (!row) throw refused();
      await tx.commit([REAP, [tenantId, REAPED]]);
      return { id, userId, username, tenantId, role, enveloped, arrayIp, ...backend, token, ...row };
    });
  }

  private async blockBackends(tx: Tx, tenantId: string): Promise<BackendChoice[]> {
    const rows = await readBackends(tx, tenantId);
    return rows.filter(({ kind }) => this.options.isBlockKind(kind));
  }
}

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

function requireChosen(backends: readonly BackendChoice[], arrayIp: string, field: string): SessionBackend {
  const backend = chooseBackend(backends, arrayIp);
  if (backend) return { backendId: backend.id, backendKind: backend.kind };
  throw invalid(
    field,
    backends.length === 0
      ? 'no backend for block volumes is registered'
      : `no backend is registered under this name or address; known are ${backends.map(({ name }) => name).join(', ')}`,
  );
}
