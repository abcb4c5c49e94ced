import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** A tenant's share of a backend of the appliance. */
export interface BackendShare {
  tenantId: string;
  tenantName: string;
  backendId: string;
  name: string;
}

const SHARES = sql(
  'backend_shares',
  `SELECT tenant_id AS "tenantId", tenant_name AS "tenantName", backend_id AS "backendId", name
     FROM trivet.backend_shares($1)`,
);
const ENTER = sql('backend_enter_tenant', `SELECT set_config('trivet.tenant', $1, true)`);

export const sharesOf = (tx: Tx, backendId: string): Promise<BackendShare[]> =>
  tx.query<BackendShare>(SHARES, [backendId]);

/**
 * Works as another tenant inside this transaction, and goes back: a shared backend and its shares change together or not at
 * all. Only for calls of the appliance's administrators. After an error the transaction is over anyway.
 */
export async function asTenant<T>(tx: Tx, tenantId: string, work: () => Promise<T>, back: string): Promise<T> {
  await tx.query(ENTER, [tenantId]);
  const result = await work();
  await tx.query(ENTER, [back]);
  return result;
}
