import { type Database, isUniqueViolation } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import { type Actor, type AuditEntry, auditWrite } from '#tenancy/audit-log/audit-log';
import { showLoginName } from '#tenancy/credentials/login-name';
import { hashOfToken, newToken } from '#tenancy/credentials/secret-tokens';
import type { TokenDirectory, TokenRequest, TokenView } from '#tenancy/tokens/token-directory';
import { exceeds, type Role } from '#tenancy/users/roles';
import type { TenantRef } from '#tenancy/users/user-directory';

const COLUMNS = `a.id, a.name, u.name AS "user", a.role, a.created_at AS "createdAt", a.last_used_at AS "lastUsedAt",
                 a.expires_at AS "expiresAt"`;
const SELECT = `SELECT ${COLUMNS} FROM trivet.admin_token a
  JOIN trivet.tenant_user u ON u.tenant_id = a.tenant_id AND u.id = a.user_id`;
/** Locked: it is neither disabled nor given a lesser role meanwhile. */
const OWNER = sql(
  'api_token_owner',
  'SELECT id, role, state FROM trivet.tenant_user WHERE tenant_id = $1 AND name = $2 FOR SHARE',
);
const CREATE = sql(
  'api_token_create',
  `WITH a AS (
     INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash, expires_at)
     VALUES ($1, $2, $3, 'token', $4, $5, $6, now() + $7::double precision * interval '1 ms') RETURNING *)
   SELECT ${COLUMNS} FROM a JOIN trivet.tenant_user u ON u.tenant_id = a.tenant_id AND u.id = a.user_id`,
);
const LOCK = sql(
  'api_token_lock',
  `SELECT ${COLUMNS}, a.user_id AS "userId" FROM trivet.admin_token a
     JOIN trivet.tenant_user u ON u.tenant_id = a.tenant_id AND u.id = a.user_id
    WHERE a.tenant_id = $1 AND a.id = $2 AND a.kind = 'token' FOR UPDATE OF a`,
);
const REVOKE = sql('api_token_revoke', 'DELETE FROM trivet.admin_token WHERE tenant_id = $1 AND id = $2');

export class ApiTokens implements TokenDirectory {
  constructor(
    private readonly database: Database,
    /** After a revocation by this process, whose other parts may remember the token. */
    private readonly onRevoke: (tokenId: string) => void = () => {},
  ) {}

  list(tenant: TenantRef, { user }: { user?: string | undefined }, page: PageRequest): Promise<PageOf<TokenView>> {
    const query = new ListQuery()
      .where(`a.tenant_id = ? AND a.kind = 'token'`, tenant.id)
      .where('u.name = ?', user === undefined ? undefined : nameWithin(tenant, user));
    const order = { columns: [{ sql: 'a.id', type: 'uuid' }] } as const;
    return this.database.withTenant(tenant.id, async tx => {
      const { rows, next } = await readPage<TokenView>(tx, query, SELECT, order, page);
      return { rows: rows.map(row => withLogin(tenant, row)), next };
    });
  }

  async create(
    actor: Actor,
    tenant: TenantRef,
    { name, user, role, expiresInMs }: TokenRequest,
  ): Promise<TokenView & { token: string }> {
    const token = newToken();
    try {
      return await this.database.withTenant(tenant.id, async tx => {
        const owner = nameWithin(tenant, user);
        const [known] = await tx.query<{ id: string; role: Role; state: string }>(OWNER, [tenant.id, owner]);
        if (!known) throw new StorageError('not_found', `tenant ${tenant.name} has no user ${user}`, { field: 'user' });
        if (known.state !== 'active') throw new StorageError('failed_precondition', `user ${user} is disabled`);
        if (exceeds(role, known.role))
          throw invalid('role', `${user} is ${known.role}, and a token has no more rights than its user`);
        const values = [tenant.id, uuidv7(), known.id, name, role, hashOfToken(token), expiresInMs ?? null];
        const [row] = await tx.query<TokenView>(CREATE, values);
        const made = withLogin(tenant, row!);
        await tx.commit(auditWrite(actor, entry('create', tenant, made, undefined, made)));
        return { ...made, token };
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      const message = `user ${user} has a token ${name} already`;
      throw new StorageError('already_exists', message, { cause: error, field: 'name' });
    }
  }

  async revoke(actor: Actor, tenant: TenantRef, id: string, check: (userId: string) => void = () => {}): Promise<void> {
    await this.database.withTenant(tenant.id, async tx => {
      const [row] = isUuid(id) ? await tx.query<TokenView & { userId: string }>(LOCK, [tenant.id, id]) : [];
      if (!row) throw new StorageError('not_found', 'there is no such token', { resource: 'token' });
      const { userId, ...token } = row;
      check(userId);
      const gone = withLogin(tenant, token);
      await tx.commit([REVOKE, [tenant.id, id]], auditWrite(actor, entry('revoke', tenant, gone, gone, undefined)));
    });
    this.onRevoke(id);
  }
}

const withLogin = (tenant: TenantRef, token: TokenView): TokenView => ({
  ...token,
  user: showLoginName({ tenant: tenant.name, user: token.user }),
});

/** `ann`, or as she logs in: `ann@acme`. Of another tenant there is nobody here. */
const nameWithin = ({ name }: TenantRef, user: string): string =>
  user.endsWith(`@${name}`) ? user.slice(0, -name.length - 1) : user;

const entry = (verb: string, tenant: TenantRef, token: TokenView, before: unknown, after: unknown): AuditEntry => ({
  tenantId: tenant.id,
  tenantName: tenant.name,
  action: `token.${verb}`,
  subject: { kind: 'token', id: token.id, name: token.name },
  before,
  after,
});
