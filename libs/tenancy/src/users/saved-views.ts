import { type Database, isUniqueViolation } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';

/** A list as a person wants to see it again. */
export interface SavedView {
  id: string;
  list: string;
  name: string;
  query: Record<string, string>;
  columns: string[] | null;
}

/** Whose they are: nobody else sees them, whatever his role. */
export interface ViewOwner {
  tenantId: string;
  userId: string;
}

/** Of one user. */
const MOST = 200;

const COLUMNS = 'id, list, name, query, columns';
const LIST = sql(
  'saved_views',
  `SELECT ${COLUMNS} FROM trivet.saved_view
    WHERE tenant_id = $1 AND user_id = $2 AND ($3::text IS NULL OR list = $3) ORDER BY list, name`,
);
/** Of calls of one user at the same moment each counts after the one before. */
const LOCK_USER = sql(
  'saved_view_lock_user',
  'SELECT FROM trivet.tenant_user WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE',
);
const CREATE = sql(
  'saved_view_create',
  `INSERT INTO trivet.saved_view (tenant_id, user_id, id, list, name, query, columns)
   SELECT $1, $2, $3, $4, $5, $6, $7
    WHERE (SELECT count(*) FROM trivet.saved_view WHERE tenant_id = $1 AND user_id = $2) < ${MOST}
   RETURNING ${COLUMNS}`,
);
const CHANGE = sql(
  'saved_view_change',
  `UPDATE trivet.saved_view
      SET name = coalesce($4, name), query = coalesce($5, query), columns = CASE WHEN $6 THEN $7 ELSE columns END, updated_at = now()
    WHERE tenant_id = $1 AND user_id = $2 AND id = $3 RETURNING ${COLUMNS}`,
);
const DELETE = sql(
  'saved_view_delete',
  `DELETE FROM trivet.saved_view WHERE tenant_id = $1 AND user_id = $2 AND id = $3 RETURNING ${COLUMNS}`,
);

/** Views of lists, saved by those who look at them. */
export class SavedViews {
  constructor(private readonly database: Database) {}

  list({ tenantId, userId }: ViewOwner, list: string | undefined): Promise<SavedView[]> {
    return this.database.withTenant(tenantId, tx => tx.query<SavedView>(LIST, [tenantId, userId, list ?? null]));
  }

  async create(actor: Actor, { tenantId, userId }: ViewOwner, view: Omit<SavedView, 'id'>): Promise<SavedView> {
    const { list, name, query, columns } = view;
    const values = [tenantId, userId, uuidv7(), list, name, JSON.stringify(query), columns];
    return this.named(name, () =>
      this.database.withTenant(tenantId, async tx => {
        await tx.query(LOCK_USER, [tenantId, userId]);
        const [made] = await tx.query<SavedView>(CREATE, values);
        if (!made)
          throw new StorageError(
            'failed_precondition',
            `you have ${MOST} views already: delete one that you do not need`,
          );
        await tx.commit(auditWrite(actor, entry('create', tenantId, made)));
        return made;
      }),
    );
  }

  /** Undefined: there is no such view of this user. */
  async change(
    actor: Actor,
    { tenantId, userId }: ViewOwner,
    id: string,
    { name, query, columns }: Partial<Omit<SavedView, 'id' | 'list'>>,
  ): Promise<SavedView | undefined> {
    if (!isUuid(id)) return undefined;
    const given = [name ?? null, query ? JSON.stringify(query) : null, columns !== undefined, columns ?? null];
    return this.named(name ?? '', () =>
      this.database.withTenant(tenantId, async tx => {
        const [changed] = await tx.query<SavedView>(CHANGE, [tenantId, userId, id, ...given]);
        if (changed) await tx.commit(auditWrite(actor, entry('change', tenantId, changed)));
        return changed;
      }),
    );
  }

  async delete(actor: Actor, { tenantId, userId }: ViewOwner, id: string): Promise<boolean> {
    if (!isUuid(id)) return false;
    return this.database.withTenant(tenantId, async tx => {
      const [gone] = await tx.query<SavedView>(DELETE, [tenantId, userId, id]);
      if (gone) await tx.commit(auditWrite(actor, entry('delete', tenantId, gone)));
      return gone !== undefined;
    });
  }

  private async named<T>(name: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new StorageError('already_exists', `you have a view ${name} of this list already`, { field: 'name' });
    }
  }
}

/** Without its name, which is nobody's business but its user's. */
const entry = (verb: string, tenantId: string, { id, list }: SavedView) => ({
  tenantId,
  action: `view.${verb}`,
  subject: { kind: 'view', id },
  after: { list },
});
