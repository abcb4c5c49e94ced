import { type Database, isUniqueViolation, type Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { type Actor, type AuditEntry, auditWrite } from '#tenancy/audit-log/audit-log';
import { requireUserName, showLoginName } from '#tenancy/credentials/login-name';
import { Passwords, requirePassword } from '#tenancy/credentials/passwords';
import { forgetFactors } from '#tenancy/factors/second-factors';
import type { Role } from '#tenancy/users/roles';
import type { TenantRef, UserChanges, UserCheck, UserDirectory, UserView } from '#tenancy/users/user-directory';

export { ROLES, type Role } from '#tenancy/users/roles';

const FIND_TENANT = sql('user_find_tenant', 'SELECT tenant_id AS "tenantId" FROM trivet.find_tenant($1)');
const SELECT = `SELECT u.id, u.name, u.role, u.state, u.version,
       CASE WHEN u.subject IS NOT NULL THEN json_build_object('issuer', u.issuer, 'subject', u.subject) END AS identity, u.created_at AS "createdAt", u.updated_at AS "updatedAt",
       (SELECT count(*)::integer FROM trivet.admin_token a
         WHERE a.tenant_id = u.tenant_id AND a.user_id = u.id AND a.kind = 'token'
           AND (a.expires_at IS NULL OR a.expires_at > now())) AS tokens,
       (SELECT count(*)::integer FROM trivet.session_token s
         WHERE s.tenant_id = u.tenant_id AND s.user_id = u.id AND s.expires_at > now()) AS "driverTokens"
  FROM trivet.tenant_user u`;
const GET = sql('user_get', `${SELECT} WHERE u.tenant_id = $1 AND u.name = $2`);
const LOCK = sql('user_lock', `${SELECT} WHERE u.tenant_id = $1 AND u.name = $2 FOR UPDATE OF u`);
/**
 * Always in this order, and before the user itself: of two administrators who take each other's role at once the second
 * waits, and then sees what the first one did.
 */
const LOCK_ADMINS = sql(
  'user_lock_admins',
  `SELECT id FROM trivet.tenant_user
    WHERE tenant_id = $1 AND role = 'admin' AND state = 'active'
      AND EXISTS (SELECT FROM trivet.tenant WHERE id = $1 AND kind = 'appliance')
    ORDER BY id FOR UPDATE`,
);
const ADD = sql(
  'user_add',
  'INSERT INTO trivet.tenant_user (tenant_id, id, name, password, role) VALUES ($1, $2, $3, $4, $5)',
);
const CHANGE = sql(
  'user_change',
  `UPDATE trivet.tenant_user
      SET role = coalesce($3, role), state = coalesce($4, state), password = coalesce($5, password),
          version = version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
const IDENTIFY = sql(
  'user_identify',
  'UPDATE trivet.tenant_user SET issuer = $3, subject = $4 WHERE tenant_id = $1 AND id = $2',
);
const DELETE = sql('user_delete', 'DELETE FROM trivet.tenant_user WHERE tenant_id = $1 AND id = $2');
const END_LOGINS = sql(
  'user_end_logins',
  `WITH driver AS (DELETE FROM trivet.session_token WHERE tenant_id = $1 AND user_id = $2)
   DELETE FROM trivet.admin_token WHERE tenant_id = $1 AND user_id = $2 AND kind = 'session'`,
);

export interface UsersOptions {
  passwords?: Passwords;
  /** After a change by this process, whose logins other parts of it may remember. */
  onChange?: (userId: string) => void;
  /** Of the OpenID Connect provider, if there is one. */
  issuer?: string | undefined;
}

/** Every change stands in the audit log, and counts for logins at once, for what gateways remember within 5 s. */
export class Users implements UserDirectory {
  private readonly passwords: Passwords;

  constructor(
    private readonly database: Database,
    private readonly options: UsersOptions = {},
  ) {
    this.passwords = options.passwords ?? new Passwords();
  }

  list({ id }: TenantRef, page: PageRequest): Promise<PageOf<UserView>> {
    const query = new ListQuery().where('u.tenant_id = ?', id);
    const order = { columns: [{ sql: 'u.name', type: 'text' }] } as const;
    return this.database.withTenant(id, tx => readPage<UserView>(tx, query, SELECT, order, page));
  }

  async get(tenant: TenantRef, name: string): Promise<UserView> {
    return this.database.withTenant(tenant.id, tx => found(tx, GET, tenant, name));
  }

  async create(
    actor: Actor,
    tenant: TenantRef,
    { name, role, password }: { name: string; role: Role; password: string },
  ): Promise<UserView> {
    requireUserName(name);
    const stored = await this.passwords.hash(requirePassword(password));
    const id = uuidv7();
    try {
      return await this.database.withTenant(tenant.id, async tx => {
        await tx.query(ADD, [tenant.id, id, name, stored, role]);
        const made = await found(tx, GET, tenant, name);
        await tx.commit(auditWrite(actor, entry('create', tenant, made, undefined, shown(made))));
        return made;
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      const message = `tenant ${tenant.name} has a user ${name} already`;
      throw new StorageError('already_exists', message, { cause: error, field: 'name' });
    }
  }

  async change(
    actor: Actor,
    tenant: TenantRef,
    name: string,
    { role, state, password, subject }: UserChanges,
    check: UserCheck = () => {},
  ): Promise<UserView> {
    const { issuer } = this.options;
    if (typeof subject === 'string' && issuer === undefined)
      throw new StorageError('failed_precondition', 'there is no identity provider: TRIVET_OIDC_ISSUER is not set');
    const stored = password === undefined ? null : await this.passwords.hash(requirePassword(password));
    const { before, after } = await this.database.withTenant(tenant.id, async tx => {
      const stays = { role: role ?? 'admin', state: state ?? 'active' };
      const before = await this.lock(tx, tenant, name, check, stays.role === 'admin' && stays.state === 'active');
      await tx.query(CHANGE, [tenant.id, before.id, role ?? null, state ?? null, stored]);
      if (subject !== undefined) await identify(tx, tenant, before, subject === null ? null : issuer!, subject);
      if (stored !== null || state === 'disabled' || subject !== undefined)
        await tx.query(END_LOGINS, [tenant.id, before.id]);
      const after = await found(tx, GET, tenant, name);
      const now = { ...shown(after), ...(stored === null ? {} : { password: 'another' }) };
      await tx.commit(auditWrite(actor, entry('change', tenant, before, shown(before), now)));
      return { before, after };
    });
    this.options.onChange?.(before.id);
    return after;
  }

  async delete(actor: Actor, tenant: TenantRef, name: string, check: UserCheck = () => {}): Promise<void> {
    const gone = await this.database.withTenant(tenant.id, async tx => {
      const before = await this.lock(tx, tenant, name, check, false);
      await forgetFactors(tx, { tenantId: tenant.id, userId: before.id });
      await tx.commit(
        [DELETE, [tenant.id, before.id]],
        auditWrite(actor, entry('delete', tenant, before, shown(before), undefined)),
      );
      return before;
    });
    this.options.onChange?.(gone.id);
  }

  private async lock(tx: Tx, tenant: TenantRef, name: string, check: UserCheck, stays: boolean): Promise<UserView> {
    const admins = stays ? [] : await tx.query<{ id: string }>(LOCK_ADMINS, [tenant.id]);
    const user = await found(tx, LOCK, tenant, name);
    check(user);
    if (admins.length === 1 && admins[0]!.id === user.id)
      throw new StorageError(
        'failed_precondition',
        `${login(tenant, user)} is the last administrator of the appliance: make another one first`,
      );
    return user;
  }
}

export async function findTenant(database: Database, name: string): Promise<string> {
  const [row] = await database.call<{ tenantId: string }>(FIND_TENANT, [name]);
  if (!row) throw new StorageError('not_found', `there is no tenant ${name}`, { resource: `tenant ${name}` });
  return row.tenantId;
}

async function found(tx: Tx, statement: typeof GET, tenant: TenantRef, name: string): Promise<UserView> {
  const [row] = await tx.query<UserView>(statement, [tenant.id, name]);
  if (!row) throw new StorageError('not_found', `tenant ${tenant.name} has no user ${name}`);
  return row;
}

async function identify(
  tx: Tx,
  { id }: TenantRef,
  user: UserView,
  issuer: string | null,
  subject: string | null,
): Promise<void> {
  try {
    await tx.query(IDENTIFY, [id, user.id, issuer, subject]);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    const message = 'this person is linked with another user already: a person is one user of the appliance';
    throw new StorageError('already_exists', message, { cause: error, field: 'subject' });
  }
}

const login = (tenant: TenantRef, { name }: { name: string }): string =>
  showLoginName({ tenant: tenant.name, user: name });
const shown = ({ name, role, state, identity }: UserView) => ({ name, role, state, ...(identity ? { identity } : {}) });

const entry = (verb: string, tenant: TenantRef, user: UserView, before: unknown, after: unknown): AuditEntry => ({
  tenantId: tenant.id,
  tenantName: tenant.name,
  action: `user.${verb}`,
  subject: { kind: 'user', id: user.id, name: login(tenant, user) },
  before,
  after,
});
