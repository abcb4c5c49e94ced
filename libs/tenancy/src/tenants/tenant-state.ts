import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';

const FIND = sql('tenant_state_find', 'SELECT tenant_id AS "tenantId", active FROM trivet.find_tenant($1)');
const IS_ACTIVE = sql('tenant_state_active', `SELECT FROM trivet.tenant WHERE id = $1 AND state = 'active'`);

const FIND_DOOR = sql(
  'tenant_state_door',
  `SELECT t.tenant_id AS "tenantId",
          t.active AND coalesce((SELECT e.serves FROM trivet.list_endpoints() e
                                  WHERE e.tenant_id = t.tenant_id AND e.name = $2), true) AS active
     FROM trivet.find_tenant($1) t`,
);

export interface TenantState {
  tenantId: string;
  /** Not suspended. */
  active: boolean;
}

/** For a door that is bound to a tenant by name. `not_found` until `migrate` has made it. */
export async function findTenant(database: Database, name: string): Promise<TenantState> {
  const [row] = await database.call<TenantState>(FIND, [name]);
  if (!row) throw new StorageError('not_found', `there is no tenant ${name}: run \`trivet migrate\``);
  return row;
}

/** As `findTenant`; not active also while the door's own endpoint is suspended, when it has one. */
export async function findDoor(database: Database, name: string, endpoint: string): Promise<TenantState> {
  const [row] = await database.call<TenantState>(FIND_DOOR, [name, endpoint]);
  return row ?? findTenant(database, name);
}

/** False for one that is not there, too. */
export async function isTenantActive(database: Database, tenantId: string): Promise<boolean> {
  const rows = await database.withTenant(tenantId, tx => tx.query(IS_ACTIVE, [tenantId]));
  return rows.length > 0;
}
