import { type Database, isUniqueViolation, type Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import { type Actor, type AuditEntry, auditWrite } from '#tenancy/audit-log/audit-log';
import { showLoginName } from '#tenancy/credentials/login-name';
import { hashOfToken, newToken } from '#tenancy/credentials/secret-tokens';
import { isLaunchers } from '#tenancy/tokens/launcher-token';
import type {
  TokenCheck,
  TokenDirectory,
  TokenRequest,
  TokenRotation,
  TokenView,
} from '#tenancy/tokens/token-directory';
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
  `SELECT ${COLUMNS}, a.user_id AS "userId", coalesce(a.expires_at <= now(), false) AS ended FROM trivet.admin_token a
     JOIN trivet.tenant_user u ON u.tenant_id = a.tenant_id AND u.id = a.user_id
    WHERE a.tenant_id = $1 AND a.id = $2 AND a.kind = 'token' FOR UPDATE OF a`,
);
const USER_STATE = sql(
  'api_token_user_state',
  'SELECT state, role FROM trivet.tenant_user WHERE tenant_id = $1 AND id = $2 FOR SHARE',
);
const LIVING = sql(
  'api_token_living',
  `SELECT FROM trivet.admin_token
    WHERE tenant_id = $1 AND user_id = $2 AND kind = 'token' AND name = $3 AND coalesce(expires_at > now(), true)`,
);
/** Those called $3 beside $5, if they have ended; with $4 also those that live. */
const CLEAR = sql(
  'api_token_clear',
  `DELETE FROM trivet.admin_token
    WHERE tenant_id = $1 AND user_id = $2 AND kind = 'token' AND name = ANY ($3::text[]) AND ($4 OR expires_at <= now())
      AND id <> $5 RETURNING id, name`,
);
const RETIRE = sql(
  'api_token_retire',
  `UPDATE trivet.admin_token
      SET name = $3, expires_at = least(expires_at, now() + $4::double precision * interval '1 ms')
    WHERE tenant_id = $1 AND id = $2`,
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

  async rotate(
    actor: Actor,
    tenant: TenantRef,
    id: string,
    { graceMs, expiresInMs }: TokenRotation,
    check: TokenCheck = () => {},
  ): Promise<TokenView & { token: string }> {
    const token = newToken();
    const ended: string[] = [];
    const made = await this.database
      .withTenant(tenant.id, async tx => {
        ended.length = 0;
        const { userId, ended: hasEnded, ...before } = await lockedToken(tx, tenant, id);
        check(userId, before.role);
        const name = before.name.endsWith(FORMER_NAME) ? before.name.slice(0, -FORMER_NAME.length) : before.name;
        const refuse = refuser(`token ${before.name}`);
        if (hasEnded) throw refuse('has ended: make another one');
        if (isLaunchers(tenant, before))
          throw refuse('is of the commands on this host: `trivet migrate` makes another');
        // The one after it may have gone to somebody who did not hear the answer: once that is revoked, this one is rotated.
        if (name !== before.name && (await tx.query(LIVING, [tenant.id, userId, name])).length > 0)
          throw refuse(`was rotated already: rotate ${name}, or revoke that one first`);
        const [owner] = await tx.query<{ state: string; role: Role }>(USER_STATE, [tenant.id, userId]);
        if (owner?.state !== 'active') throw new StorageError('failed_precondition', `user ${before.user} is disabled`);
        if (exceeds(before.role, owner.role))
          throw refuse(`is ${before.role} and its user ${owner.role} by now: make one that has no more rights`);
        const former = `${name}${FORMER_NAME}`;
        const cleared = [tenant.id, userId, [name, former], graceMs === 0 && name === before.name, id];
        const gone = await tx.query<{ id: string; name: string }>(CLEAR, cleared);
        if (graceMs === 0) {
          await tx.query(REVOKE, [tenant.id, id]);
          ended.push(id, ...gone.map(row => row.id));
        } else await tx.query(RETIRE, [tenant.id, id, former, graceMs]);
        const lifeMs = before.expiresAt === null ? null : before.expiresAt.getTime() - before.createdAt.getTime();
        const values = [tenant.id, uuidv7(), userId, name, before.role, hashOfToken(token), expiresInMs ?? lifeMs];
        const [row] = await tx.query<TokenView>(CREATE, values);
        const after = withLogin(tenant, row!);
        const noted = { ...after, graceMs, ended: gone };
        await tx.commit(auditWrite(actor, entry('rotate', tenant, after, withLogin(tenant, before), noted)));
        return after;
      })
      .catch(error => {
        if (!isUniqueViolation(error)) throw error;
        throw new StorageError(
          'failed_precondition',
          'the token before it is let in still, and there is no third: revoke that one, or rotate without grace, which ends both',
          { cause: error, retry: 'later' },
        );
      });
    for (const each of ended) this.onRevoke(each);
    return { ...made, token };
  }

  async revoke(actor: Actor, tenant: TenantRef, id: string, check: TokenCheck = () => {}): Promise<void> {
    await this.database.withTenant(tenant.id, async tx => {
      const { userId, ended: _, ...token } = await lockedToken(tx, tenant, id);
      check(userId, token.role);
      const gone = withLogin(tenant, token);
      await tx.commit([REVOKE, [tenant.id, id]], auditWrite(actor, entry('revoke', tenant, gone, gone, undefined)));
    });
    this.onRevoke(id);
  }
}

interface LockedToken extends TokenView {
  userId: string;
  ended: boolean;
}

async function lockedToken(tx: Tx, tenant: TenantRef, id: string): Promise<LockedToken> {
  const [row] = isUuid(id) ? await tx.query<LockedToken>(LOCK, [tenant.id, id]) : [];
  if (!row) throw new StorageError('not_found', 'there is no such token', { resource: 'token' });
  return row;
}

const refuser = (token: string) => (why: string) => new StorageError('failed_precondition', `${token} ${why}`);

/** Behind the name of one that was rotated; no name that people choose has it. */
const FORMER_NAME = ' (former)';

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
