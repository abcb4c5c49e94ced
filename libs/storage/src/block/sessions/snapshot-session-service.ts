import { randomBytes } from 'node:crypto';
import { type ChangeObserver, noting } from '#operations/accepting/change-observer';
import { decodeSealed, encodeSealed, type SecretBox, type SecretPlace } from '#platform/crypto/secrets';
import type { Database, Tx } from '#platform/database/database';
import { invalid, StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import { findAsked } from '#storage/block/sessions/asked-snapshots';
import {
  allSessions,
  countSessions,
  deleteSession,
  failSession,
  findSessionById,
  findSessionByName,
  giveWay,
  insertSession,
  lockPendingSession,
  pendingSessions,
  readySession,
  reapSessions,
  type SessionRow,
} from '#storage/block/sessions/session-store';
import { hashOfToken, newSessionToken } from '#storage/block/sessions/session-token';
import { SessionTokens } from '#storage/block/sessions/session-tokens';
import {
  MAX_SESSION_SNAPSHOTS,
  MAX_SESSION_TTL_MS,
  MAX_SESSIONS,
  MIN_SESSION_TTL_MS,
  type SessionOwner,
  type SessionRequest,
  type SessionView,
  type SnapshotSession,
  type SnapshotSessions,
} from '#storage/block/sessions/snapshot-session';
import type { SuspendedTenants } from '#tenancy/tenants/suspended-tenants';

/** What the names of custom resources may look like. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const MAX_ASKED = 255;

export interface SnapshotSessionOptions {
  database: Database;
  secrets: SecretBox;
  /** The CSI driver whose snapshots backends of this kind hold; undefined when none serves their metadata. */
  driverOf(backendKind: string): string | undefined;
  ttlMs: number;
  /** For whom is answered from memory. */
  suspended?: Pick<SuspendedTenants, 'require'>;
  /** Milliseconds that only grow. */
  clock?: () => number;
}

/**
 * Sessions as rows. A request is accepted in one transaction and decided in another, as the KEP has it; who dies between
 * the two leaves a pending session that the next look at it decides, or a worker's round.
 */
export class SnapshotSessionService implements SnapshotSessions {
  private readonly database: Database;
  private readonly tokens: SessionTokens;

  constructor(private readonly options: SnapshotSessionOptions) {
    this.database = options.database;
    this.tokens = new SessionTokens(options.database, options.clock, options.suspended);
  }

  async create(owner: SessionOwner, request: SessionRequest, observer?: ChangeObserver): Promise<SessionView> {
    const { snapshots, ttlMs = this.options.ttlMs } = request;
    const name = request.name ?? `session-${randomBytes(6).toString('hex')}`;
    requireValid({ name, snapshots, ttlMs });
    const { tenantId } = owner;
    const id = await this.database.withTenant(tenantId, async tx => {
      const made = uuidv7();
      if (await insertSession(tx, tenantId, { id: made, name, owner, ttlMs, snapshots })) {
        const over = (await countSessions(tx, tenantId)) - MAX_SESSIONS;
        if (over > 0 && (await giveWay(tx, tenantId, over)) < over)
          throw new StorageError('resource_exhausted', `${MAX_SESSIONS} sessions are open: delete some`, {
            resource: 'session',
          });
        const change = { kind: 'snapshot-session.create', resourceId: made, resourceName: name, after: { snapshots } };
        for (const [statement, params] of noting(observer, change)) await tx.query(statement, params);
        return made;
      }
      const found = await findSessionByName(tx, tenantId, name);
      if (!found) throw new StorageError('aborted', `session ${name} ended meanwhile; try again`);
      if (isOf(owner, found) && found.ttlMs === String(ttlMs) && alike(found.asked, snapshots)) return found.id;
      throw new StorageError('already_exists', `session ${name} exists with another request; choose another name`, {
        resource: `session ${name}`,
      });
    });
    return this.get(owner, id);
  }

  async get(owner: SessionOwner, key: string): Promise<SessionView> {
    const row = await this.find(owner.tenantId, key);
    if (row.state !== 'pending') return this.view(owner, row);
    await this.decide(owner.tenantId, row.id);
    return this.view(owner, await this.find(owner.tenantId, row.id));
  }

  async list(owner: SessionOwner): Promise<SessionView[]> {
    const { tenantId } = owner;
    const read = () => this.database.withTenant(tenantId, tx => allSessions(tx, tenantId));
    let rows = await read();
    const pending = rows.filter(({ state }) => state === 'pending');
    for (const { id } of pending) await this.decide(tenantId, id);
    if (pending.length > 0) rows = await read();
    return rows.map(row => this.view(owner, row));
  }

  async delete({ tenantId }: Pick<SessionOwner, 'tenantId'>, key: string, observer?: ChangeObserver): Promise<void> {
    const { id, name } = await this.find(tenantId, key);
    await this.database.withTenant(tenantId, async tx => {
      await observer?.before?.(tx);
      await deleteSession(tx, tenantId, id);
      await tx.commit(...noting(observer, { kind: 'snapshot-session.end', resourceId: id, resourceName: name }));
    });
    this.tokens.forget(id);
  }

  async deleteOwn(owner: SessionOwner, key: string, observer?: ChangeObserver): Promise<void> {
    const row = await this.find(owner.tenantId, key);
    const { id, name } = row;
    if (!isOf(owner, row))
      throw new StorageError('permission_denied', `session ${name} is another user's; an operator may end it`);
    await this.delete(owner, id, observer);
  }

  authenticate(token: string): Promise<SnapshotSession | undefined> {
    return this.tokens.authenticate(token);
  }

  /** Makes a pending session ready or failed; changes nothing else. */
  async decide(tenantId: string, id: string): Promise<void> {
    await this.database.withTenant(tenantId, async tx => {
      const asked = await lockPendingSession(tx, tenantId, id);
      if (!asked) return;
      const found = await findAsked(tx, tenantId, asked);
      const outcome = 'error' in found ? found : this.driverOf(found.snapshots);
      if ('error' in outcome || 'error' in found) {
        await failSession(tx, tenantId, id, (outcome as { error: string }).error);
        return;
      }
      const token = newSessionToken();
      await readySession(tx, tenantId, {
        id,
        driver: outcome.driver,
        tokenHash: hashOfToken(token),
        sealedToken: encodeSealed(this.options.secrets.seal(token, placeOf(tenantId, id))),
        snapshots: found.snapshots,
      });
    });
  }

  /** Decides what was left pending and removes what has expired: at most `portion` of each. Gives whether that was all. */
  async tidy(tenantId: string, portion: number): Promise<boolean> {
    const inTenant = <T>(work: (tx: Tx) => Promise<T>): Promise<T> => this.database.withTenant(tenantId, work);
    const pending = await inTenant(tx => pendingSessions(tx, tenantId, portion));
    for (const id of pending) await this.decide(tenantId, id);
    const reaped = await inTenant(tx => reapSessions(tx, tenantId, portion));
    return pending.length < portion && reaped < portion;
  }

  private driverOf(snapshots: readonly { backendKind: string }[]): { driver: string } | { error: string } {
    const drivers = new Set<string>();
    for (const kind of new Set(snapshots.map(({ backendKind }) => backendKind))) {
      const driver = this.options.driverOf(kind);
      if (driver === undefined) return { error: `no service for changed blocks is configured for backends of ${kind}` };
      drivers.add(driver);
    }
    const [driver, another] = drivers;
    if (another === undefined) return { driver: driver! };
    return { error: `the snapshots are of several drivers (${[...drivers].join(', ')}): open a session for each` };
  }

  private async find(tenantId: string, key: string): Promise<SessionRow> {
    const row = await this.database.withTenant(
      tenantId,
      async tx =>
        (isUuid(key) && (await findSessionById(tx, tenantId, key))) ||
        (NAME.test(key) ? findSessionByName(tx, tenantId, key) : undefined),
    );
    if (!row) throw new StorageError('not_found', 'there is no such session; it may have expired');
    return row;
  }

  private view(owner: SessionOwner, row: SessionRow): SessionView {
    const isOwn = isOf(owner, row) && row.state === 'ready' && row.sealed !== null;
    return {
      id: row.id,
      name: row.name,
      state: row.state,
      error: row.error ?? undefined,
      driver: row.driver ?? undefined,
      token: isOwn
        ? this.options.secrets.openText(decodeSealed(row.sealed!), placeOf(owner.tenantId, row.id))
        : undefined,
      snapshots: row.asked,
      createdAt: row.createdAt,
      expiresAt: row.expiresAt,
      remainingMs: row.remainingMs,
    };
  }
}

const isOf = (owner: SessionOwner, { createdBy, clusterId }: SessionRow): boolean =>
  'userId' in owner ? createdBy === owner.userId : clusterId === owner.clusterId;

const placeOf = (tenantId: string, rowId: string): SecretPlace => ({
  tenantId,
  table: 'snapshot_session',
  rowId,
  column: 'token',
});

const alike = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text, at) => text === b[at]);

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNFIT = /[\u0000-\u001f\u007f]/;

function requireValid({ name, snapshots, ttlMs }: { name: string; snapshots: readonly string[]; ttlMs: number }): void {
  if (!NAME.test(name))
    throw invalid('name', 'expected small letters, digits, - and ., a letter or digit at both ends, at most 253');
  if (snapshots.length === 0) throw invalid('snapshots', 'name at least one');
  if (snapshots.length > MAX_SESSION_SNAPSHOTS)
    throw invalid('snapshots', `at most ${MAX_SESSION_SNAPSHOTS}, got ${snapshots.length}`);
  for (const [at, asked] of snapshots.entries())
    if (asked.trim() === '' || asked.length > MAX_ASKED || UNFIT.test(asked) || !asked.isWellFormed())
      throw invalid(`snapshots.${at}`, 'expected the id or the name of a snapshot');
  if (!Number.isInteger(ttlMs) || ttlMs < MIN_SESSION_TTL_MS || ttlMs > MAX_SESSION_TTL_MS)
    throw invalid('ttlSeconds', `expected ${MIN_SESSION_TTL_MS / 1000} to ${MAX_SESSION_TTL_MS / 1000}`);
}
