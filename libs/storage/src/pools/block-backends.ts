import type { Database } from '#platform/database';
import { sql } from '#platform/sql';

/** The appliance's own pools first: shares lie in them. */
const TENANTS = sql(
  'block_tenants',
  `SELECT tenant_id AS "tenantId" FROM trivet.appliance_tenant()
   UNION ALL SELECT tenant_id FROM trivet.list_tenants()`,
);
/** Kinds of object store have no pools. */
const BACKENDS = sql(
  'block_backends',
  `SELECT id AS "backendId", kind, config FROM trivet.backend WHERE tenant_id = $1 AND config ? 'pools'`,
);

export interface RegisteredBlockBackend {
  tenantId: string;
  backendId: string;
  kind: string;
  config: unknown;
}

/** For what a worker does in the background, one backend after the other. */
export async function eachBlockBackend(
  database: Database,
  visit: (backend: RegisteredBlockBackend) => Promise<void>,
): Promise<void> {
  for (const { tenantId } of await database.engine<{ tenantId: string }>(TENANTS)) {
    const backends = await database.withTenant(tenantId, tx =>
      tx.query<Omit<RegisteredBlockBackend, 'tenantId'>>(BACKENDS, [tenantId]),
    );
    for (const backend of backends) await visit({ tenantId, ...backend });
  }
}
