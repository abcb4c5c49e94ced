import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** The appliance's own pools first: shares lie in them. Kinds of object store have no pools. */
const BACKENDS = sql(
  'block_backends',
  `SELECT tenant_id AS "tenantId", backend_id AS "backendId", kind, config, shares FROM trivet.block_backends()`,
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
  const all = await database.engine<RegisteredBlockBackend & { shares: boolean }>(BACKENDS);
  const isFirst = ({ shares }: { shares: boolean }): boolean => shares && sharedFirst;
  const failures: unknown[] = [];
  for (const wave of [all.filter(isFirst), all.filter(backend => !isFirst(backend))]) {
    const waiting = wave.values();
    const next = async (): Promise<void> => {
      for (const backend of waiting) await visit(backend).catch(error => failures.push(error));
    };
    await Promise.all(Array.from({ length: atOnce }, next));
  }
  if (failures.length > 0) throw failures[0];
}
