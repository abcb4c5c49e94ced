import type { Database, Tx } from '#platform/database/database';
import { containing, ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';
import type { TenantDirectory, TenantFilter, TenantView } from '#tenancy/tenants/tenant-directory';

const SELECT =
  'SELECT id, name, display_name AS "displayName", state, created_at AS "createdAt", updated_at AS "updatedAt", version';
const FIND = sql('tenants_find', `${SELECT} FROM trivet.all_tenants($1)`);
const CREATE = sql('tenants_create', 'SELECT FROM trivet.create_tenant($1, $2, $3)');
const CHANGE = sql('tenants_change', 'SELECT FROM trivet.change_tenant($1, $2, $3, $4)');

export class Tenants implements TenantDirectory {
  constructor(private readonly database: Database) {}

  list(): Promise<TenantView[]> {
    return this.database.call<TenantView>(FIND, [null]);
  }

  page({ state, search, only }: TenantFilter, page: PageRequest): Promise<PageOf<TenantView>> {
    const part = containing(search);
    const query = new ListQuery()
      .where('state = ?', state)
      .where('name = ?', only)
      .where('(name ILIKE ? OR display_name ILIKE ?)', part, part);
    const order = { columns: [{ sql: 'name', type: 'text' }] } as const;
    const tx = { query: this.database.call.bind(this.database) as Tx['query'] };
    return readPage<TenantView>(tx, query, `${SELECT} FROM trivet.all_tenants(NULL)`, order, page);
  }

  async find(name: string): Promise<TenantView | undefined> {
    const [row] = await this.database.call<TenantView>(FIND, [name]);
    return row;
  }

  async create(actor: Actor, { name, displayName }: { name: string; displayName: string }): Promise<TenantView> {
    const id = uuidv7();
    return this.database.withTenant(id, async tx => {
      if ((await tx.query(CREATE, [id, name, displayName])).length === 0)
        throw new StorageError('already_exists', `there is a tenant ${name} already`, { field: 'name' });
      const [made] = await tx.query<TenantView>(FIND, [name]);
      await tx.commit(
        auditWrite(actor, {
          tenantId: id,
          tenantName: name,
          action: 'tenant.create',
          subject: { kind: 'tenant', id, name },
          after: made,
        }),
      );
      return made!;
    });
  }

  async change(
    actor: Actor,
    { id, name, version }: TenantView,
    changes: { displayName?: string; state?: TenantView['state']; reason?: string },
  ): Promise<TenantView | undefined> {
    return this.database.withTenant(id, async tx => {
      const [before] = await tx.query<TenantView>(FIND, [name]);
      if (before?.state === 'draining' && changes.state !== undefined)
        throw new StorageError('failed_precondition', `tenant ${name} is being removed; that cannot be taken back`);
      const values = [id, version, changes.displayName ?? null, changes.state ?? null];
      if ((await tx.query(CHANGE, values)).length === 0) return undefined;
      const [after] = await tx.query<TenantView>(FIND, [name]);
      await tx.commit(
        auditWrite(actor, {
          tenantId: id,
          tenantName: name,
          action: changes.state === undefined ? 'tenant.change' : `tenant.${VERBS[changes.state]}`,
          subject: { kind: 'tenant', id, name },
          before,
          after,
          reason: changes.reason,
        }),
      );
      return after;
    });
  }
}

const VERBS = { active: 'resume', suspended: 'suspend', draining: 'drain' } as const;
