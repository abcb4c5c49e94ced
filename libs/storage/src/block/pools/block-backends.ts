import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** The appliance's own pools first: shares lie in them. */
const TENANTS = sql(
  'block_tenants',
  `SELECT tenant_id AS "tenantId", true AS shares FROM trivet.appliance_tenant()
   UNION ALL SELECT tenant_id, false FROM trivet.list_tenants()`,
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

/**
 * For what a worker does in the background; one after the other unless `atOnce` says otherwise, those that others are shares of
 * before all others if asked so. Those behind one that fails have their turn; then its error is thrown.
 */
export async function eachBlockBackend(
  database: Database,
  visit: (backend: RegisteredBlockBackend) => Promise<void>,
  { atOnce = 1, sharedFirst = false }: { atOnce?: number; sharedFirst?: boolean } = {},
): Promise<void> {
  const [first, found]: [RegisteredBlockBackend[], RegisteredBlockBackend[]] = [[], []];
  for (const { tenantId, shares } of await database.engine<{ tenantId: string; shares: boolean }>(TENANTS)) {
    const backends = await database.withTenant(tenantId, tx =>
      tx.query<Omit<RegisteredBlockBackend, 'tenantId'>>(BACKENDS, [tenantId]),
    );
    (shares && sharedFirst ? first : found).push(...backends.map(backend => ({ tenantId, ...backend })));
  }
  const failures: unknown[] = [];
  for (const wave of [first, found]) {
    const waiting = wave.values();
    const next = async (): Promise<void> => {
      for (const backend of waiting) await visit(backend).catch(error => failures.push(error));
    };
    await Promise.all(Array.from({ length: atOnce }, next));
  }
  if (failures.length > 0) throw failures[0];
}
