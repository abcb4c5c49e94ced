import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** The appliance's own pools first: shares lie in them. */
const BACKENDS = sql(
  'block_backends',
  `SELECT tenant_id AS "tenantId", backend_id AS "backendId", kind, config FROM trivet.block_backends()`,
);

export interface RegisteredBlockBackend {
  tenantId: string;
  backendId: string;
  kind: string;
  config: unknown;
}

/**
 * For what a worker does in the background; one after the other unless `atOnce` says otherwise. What looks at files must not
 * ask for more: shares of a dead file system would each take a thread of the process for good, and each would give way for all.
 * Those behind one that fails have their turn; then its error is thrown.
 */
export async function eachBlockBackend(
  database: Database,
  visit: (backend: RegisteredBlockBackend) => Promise<void>,
  { atOnce = 1 }: { atOnce?: number } = {},
): Promise<void> {
  const failures: unknown[] = [];
  const waiting = (await database.engine<RegisteredBlockBackend>(BACKENDS)).values();
  const next = async (): Promise<void> => {
    for (const backend of waiting) await visit(backend).catch(error => failures.push(error));
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  if (failures.length > 0) throw failures[0];
}
