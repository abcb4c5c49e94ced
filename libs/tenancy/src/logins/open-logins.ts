import type { Database } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';
import { showLoginName } from '#tenancy/credentials/login-name';
import type { Principal } from '#tenancy/logins/admin-directory';
import { loginEntry } from '#tenancy/logins/admin-logins';
import type { TenantRef } from '#tenancy/users/user-directory';

/** Of logins that end at once, their ids in the audit log: an entry has a bound. */
const SHOWN = 100;

const SELECT = `SELECT a.id, a.address, a.user_agent AS "userAgent", a.opened_by AS "openedBy", a.created_at AS "createdAt",
       a.last_used_at AS "lastUsedAt", a.expires_at AS "expiresAt"
  FROM trivet.admin_token a`;
const USER = sql('open_logins_user', 'SELECT id FROM trivet.tenant_user WHERE tenant_id = $1 AND name = $2');
const END = sql(
  'open_logins_end',
  `DELETE FROM trivet.admin_token
    WHERE tenant_id = $1 AND id = $2 AND user_id = $3 AND kind = 'session' RETURNING id, address`,
);
const END_ALL = sql(
  'open_logins_end_all',
  `DELETE FROM trivet.admin_token
    WHERE tenant_id = $1 AND user_id = $2 AND kind = 'session' AND id IS DISTINCT FROM $3 RETURNING id`,
);

/** A login at the page that has not ended. */
export interface LoginView {
  id: string;
  /** Of the peer at the login. */
  address: string;
  /** As the browser named itself; '' when it did not, or before this was written down. */
  userAgent: string;
  /** '': before this was written down. */
  openedBy: '' | 'password' | 'totp' | 'recovery' | 'passkey' | 'provider';
  createdAt: Date;
  /** Within seconds; null: never since it was opened. */
  lastUsedAt: Date | null;
  expiresAt: Date;
}

/** Whose logins: a user by both its ids, and by its login name for the audit log. */
export type LoginOwner = Pick<Principal, 'tenantId' | 'tenant' | 'userId' | 'username'>;

/**
 * Logins at the page, one by one. Each is a row, and a request reads it once in five seconds at most: one that is ended here
 * works at another gateway no longer than that (invariant T1). API tokens and tokens of drivers are no logins.
 */
export class OpenLogins {
  constructor(
    private readonly database: Database,
    /** After an end by this process, which may remember whom the login is of. */
    private readonly onEnd: (loginId: string) => void = () => {},
  ) {}

  /** Newest first. */
  list({ tenantId, userId }: Pick<LoginOwner, 'tenantId' | 'userId'>, page: PageRequest): Promise<PageOf<LoginView>> {
    const query = new ListQuery()
      .where(`a.tenant_id = ? AND a.kind = 'session' AND a.expires_at > now()`, tenantId)
      .where('a.user_id = ?', userId);
    const order = { columns: [{ sql: 'a.id', type: 'uuid' }], descending: true } as const;
    return this.database.withTenant(tenantId, tx => readPage<LoginView>(tx, query, SELECT, order, page));
  }

  /** The user of that name; `not_found` if there is none. */
  async ownerOf({ id: tenantId, name: tenant }: TenantRef, user: string): Promise<LoginOwner> {
    const rows = await this.database.withTenant(tenantId, tx => tx.query<{ id: string }>(USER, [tenantId, user]));
    if (!rows[0]) throw new StorageError('not_found', `tenant ${tenant} has no user ${user}`);
    return { tenantId, tenant, userId: rows[0].id, username: showLoginName({ tenant, user }) };
  }

  /** `id` is any text; one that is not the owner's, or none: `not_found`. */
  async end(actor: Actor, owner: LoginOwner, id: string): Promise<void> {
    const { tenantId, userId } = owner;
    await this.database.withTenant(tenantId, async tx => {
      const [gone] = isUuid(id) ? await tx.query<{ address: string }>(END, [tenantId, id, userId]) : [];
      if (!gone) throw new StorageError('not_found', 'there is no such login', { resource: 'login' });
      await tx.commit(auditWrite(actor, loginEntry('session.end', owner, { login: id, from: gone.address })));
    });
    this.onEnd(id);
  }

  /** But for the one that is spared. Gives how many ended; of none nothing is written. */
  async endAll(actor: Actor, owner: LoginOwner, spared?: string): Promise<number> {
    const { tenantId, userId } = owner;
    const gone = await this.database.withTenant(tenantId, async tx => {
      const rows = await tx.query<{ id: string }>(END_ALL, [tenantId, userId, spared ?? null]);
      const logins = rows.slice(0, SHOWN).map(({ id }) => id);
      if (rows.length > 0)
        await tx.commit(auditWrite(actor, loginEntry('session.end', owner, { count: rows.length, logins })));
      return rows;
    });
    for (const { id } of gone) this.onEnd(id);
    return gone.length;
  }
}
