import { randomBytes, randomUUID } from 'node:crypto';
import { invalid, StorageError } from '#platform/errors';
import {
  type LoginRequest,
  LoginThrottled,
  type OpenedSession,
  type Session,
  type SessionBackend,
  type SessionDirectory,
} from '#tenancy/logins/session-directory';

export interface MemoryUser {
  password: string;
  tenantId: string;
  role: Session['role'];
}

const LIFE_MS = 1_800_000;

/** Logins in a map: who may, with which backends, and what was thrown when they might not. */
export class MemorySessions implements SessionDirectory {
  readonly users = new Map<string, MemoryUser>();
  /** By tenant, then by name or address. */
  readonly backends = new Map<string, Map<string, SessionBackend>>();
  readonly live = new Map<string, OpenedSession>();
  /** Set: every login is refused for so many seconds. */
  throttledFor: number | undefined;
  /** Set: nobody can say who has a token. */
  down = false;

  async login({ username, password, arrayIp, enveloped }: LoginRequest): Promise<OpenedSession> {
    if (this.throttledFor !== undefined) throw new LoginThrottled(this.throttledFor);
    const user = this.users.get(username);
    if (user?.password !== password) throw new StorageError('unauthenticated', 'unknown user or wrong password');
    const backend = this.backendOf(user.tenantId, arrayIp, 'array_ip');
    const createdAt = new Date();
    const session: OpenedSession = {
      id: randomUUID(),
      userId: username,
      username,
      tenantId: user.tenantId,
      role: user.role,
      enveloped,
      arrayIp,
      ...backend,
      token: randomBytes(32).toString('hex'),
      createdAt,
      expiresAt: new Date(createdAt.getTime() + LIFE_MS),
    };
    this.live.set(session.token, session);
    return session;
  }

  async authenticate(token: string): Promise<Session | undefined> {
    if (this.down) throw new StorageError('unavailable', 'the database does not answer');
    return this.live.get(token);
  }

  async selectBackend(session: Session, arrayIp: string): Promise<SessionBackend> {
    return arrayIp === '' ? session : this.backendOf(session.tenantId, arrayIp, 'x-array-ip');
  }

  async revoke(session: Session, tokenId: string): Promise<void> {
    const found = [...this.live.values()].find(({ id, userId }) => id === tokenId && userId === session.userId);
    if (!found) throw new StorageError('not_found', `there is no token ${tokenId}`);
    this.live.delete(found.token);
  }

  private backendOf(tenantId: string, arrayIp: string, field: string): SessionBackend {
    const found = this.backends.get(tenantId)?.get(arrayIp);
    if (!found) throw invalid(field, `no backend ${arrayIp} is registered`);
    return found;
  }
}
