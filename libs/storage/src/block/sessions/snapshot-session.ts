import type { ChangeObserver } from '#operations/accepting/change-observer';
/**
 * Snapshot sessions: the KEP's way to let backup software read the metadata of some snapshots for a while, without a
 * login at the metadata service (KEP 3314, "The Snapshot Session Manager"). Whoever may log in over CSP asks for one and
 * gets a token; whoever has the token may ask about the snapshots that the session covers, and about no others.
 */
export interface SnapshotSessions {
  /**
   * Makes a session and decides it: `ready` or `failed`, rarely still `pending`. The same request again answers the
   * session that it made. Throws StorageError: `invalid_argument` with its field; `already_exists` when the name belongs
   * to another request; `resource_exhausted` beyond MAX_SESSIONS of a tenant.
   */
  create(owner: SessionOwner, request: SessionRequest, observer?: ChangeObserver): Promise<SessionView>;

  /** `key` is an id or a name. `not_found` for another tenant's, an expired one, or none. */
  get(owner: SessionOwner, key: string): Promise<SessionView>;

  /** Of the tenant, oldest first, without those that have expired. */
  list(owner: SessionOwner): Promise<SessionView[]>;

  /** Its token is worth nothing from now on, on other gateways within 5 s. `not_found` as with `get`. */
  delete(owner: SessionOwner, key: string, observer?: ChangeObserver): Promise<void>;

  /** As `delete`; `permission_denied` for another user's. */
  deleteOwn(owner: SessionOwner, key: string, observer?: ChangeObserver): Promise<void>;

  /**
   * What this token may read now; undefined when it is unknown, expired or deleted or its creator disabled or revoked, all alike.
   * Called at the start of each call: answered from memory mostly. A stream that runs when its session expires is let
   * finish. Throws TenantSuspended; else only when the answer cannot be known (`unavailable`, `timeout`).
   */
  authenticate(token: string): Promise<SnapshotSession | undefined>;
}

/** What a token stands for. */
export interface SnapshotSession {
  id: string;
  tenantId: string;
  tenantName: string;
  /** The CSI driver whose snapshots it covers. */
  driver: string;
  expiresAt: Date;
  snapshots: readonly CoveredSnapshot[];
  /**
   * The id of the covered snapshot that a call means; undefined when it is not covered, which callers must answer alike
   * whether there is such a snapshot or not. A name means the snapshot that had it when the session became ready, also when another one has it
   * today; a name that two covered snapshots share means neither, unless the volume is said.
   */
  resolve(key: CoveredKey): string | undefined;
  covers(key: CoveredKey): boolean;
}

export type CoveredKey = { id: string } | { volumeId: string; name: string } | { name: string };

export interface CoveredSnapshot {
  id: string;
  volumeId: string;
  name: string;
}

export interface SessionUser {
  tenantId: string;
  userId: string;
}

/** One that was enrolled for the tenant. */
export interface SessionCluster {
  tenantId: string;
  clusterId: string;
}

/** Who asks for sessions. */
export type SessionOwner = SessionUser | SessionCluster;

export interface SessionRequest {
  /** Of Kubernetes' form for names; generated when absent. */
  name?: string;
  /** Ids or names. A deleted snapshot can be covered by its id, as a base (invariant C8). */
  snapshots: readonly string[];
  /** How long it lives, from its creation on; the configured time when absent. */
  ttlMs?: number;
}

export type SessionState = 'pending' | 'ready' | 'failed';

/** As its tenant sees it. */
export interface SessionView {
  id: string;
  name: string;
  state: SessionState;
  /** Why it failed. */
  error?: string;
  /** Of a ready one. */
  driver?: string;
  /** Of a ready one, for its creator alone: the user, or the cluster. */
  token?: string;
  /** As they were asked for, in order. */
  snapshots: readonly string[];
  createdAt: Date;
  expiresAt: Date;
  /** When it was read, by the database's clock, which is the one that ends it. */
  remainingMs: number;
}

/** Of a tenant. Failed ones are among them until another needs their place. */
export const MAX_SESSIONS = 1_000;
export const MAX_SESSION_SNAPSHOTS = 256;
export const MIN_SESSION_TTL_MS = 1_000;
export const MAX_SESSION_TTL_MS = 86_400_000;
