import { accept } from '#operations/accepting/accept';
import type { Begin } from '#operations/accepting/operations';
import type { Database, Tx } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';

/** Without a place of its own it waits for the next round of a reconciler, which keeps the cap and rings the bell. */
const NO_PLACE = 0;

/**
 * Accepts an operation that no caller asked for and none waits for: what the appliance does by itself is as durable as
 * what callers do. `claim` looks again, under its locks, whether there is anything to do, and calls `begin` if so.
 */
export async function acceptInBackground<T>(
  database: Database,
  { tenantId, backendId }: { tenantId: string; backendId: string },
  claim: (tx: Tx, begin: Begin, operationId: string) => Promise<T>,
): Promise<T> {
  const operationId = uuidv7();
  return database.withTenant(tenantId, tx =>
    claim(
      tx,
      async (operation, asked) => {
        await accept(tx, operation.asked(asked, { id: operationId, tenantId, backendId, unattended: true }), NO_PLACE);
      },
      operationId,
    ),
  );
}
