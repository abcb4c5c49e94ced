import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { BULK_ACTIONS, type BulkRequest } from '#storage/bulk/bulk-actions';
import { exceeds, type Role } from '#tenancy/users/roles';

const ROLE = sql('bulk_role', 'SELECT trivet.role_now($1, $2, $3) AS role');

/** Whoever asked for a bulk may do it as long as he might do one of its items himself. Undefined: he may. */
export async function lostRight(
  database: Database,
  tenantId: string,
  { action, by }: Pick<BulkRequest, 'action' | 'by'>,
): Promise<StorageError | undefined> {
  const { role: needed } = BULK_ACTIONS[action];
  const { tenantId: from, userId, tokenId = null } = by.login;
  const [row] = await database.withTenant(tenantId, tx =>
    tx.query<{ role: Role | null }>(ROLE, [from, userId, tokenId]),
  );
  const role = row!.role;
  if (role && !exceeds(needed, role)) return undefined;
  const why = role ? `is ${role} by now; this takes the role ${needed}` : 'may not come in any more';
  return new StorageError('permission_denied', `${by.shown} ${why}`, { retry: 'never' });
}
