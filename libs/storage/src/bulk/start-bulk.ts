import type { Caller } from '#operations/accepting/caller';
import type { Submits } from '#operations/accepting/operations';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import {
  BULK_ACTIONS,
  type BulkAction,
  type BulkRequest,
  isOfOperations,
  NO_BACKEND,
  OF_OPERATIONS,
  titleOf,
} from '#storage/bulk/bulk-actions';
import { insertItems } from '#storage/bulk/bulk-items';
import { runBulk } from '#storage/bulk/run-bulk';

/** Of a tenant, that have not ended; as many again that retry or cancel, since those may end what the others wait for. */
const MOST_BULKS = 8;

/** Of calls of one tenant at the same moment each counts after the one before. */
const ONE_BY_ONE = sql(
  'bulk_one_by_one',
  "SELECT pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'bulk', $1::text), 0))",
);
const UNFINISHED = sql(
  'bulk_unfinished',
  `SELECT count(*)::int AS bulks FROM trivet.operation
    WHERE tenant_id = $1 AND kind = 'bulk.run' AND finished_at IS NULL AND (request ->> 'action' = ANY ($2)) = $3`,
);

async function requireFew(tx: Tx, tenantId: string, action: BulkAction): Promise<void> {
  await tx.query(ONE_BY_ONE, [tenantId]);
  const [found] = await tx.query<{ bulks: number }>(UNFINISHED, [tenantId, OF_OPERATIONS, isOfOperations(action)]);
  if (found!.bulks >= MOST_BULKS)
    throw new StorageError(
      'resource_exhausted',
      `${MOST_BULKS} bulks of this tenant are under way: wait for one of them, or stop it`,
      { retry: 'later' },
    );
}

/** Accepts a bulk with its items in one transaction, and does not wait for it. Its id. */
export async function startBulk(
  operations: Submits,
  caller: Omit<Caller, 'backendId' | 'deadline'>,
  request: Omit<BulkRequest, 'count'>,
  ids: readonly string[],
): Promise<string> {
  const { action } = request;
  const { tenantId } = caller;
  const asker: Caller = { ...caller, backendId: NO_BACKEND, deadline: 0 };
  const { value } = await operations.submit(asker, async (tx, begin, operationId) => {
    await requireFew(tx, tenantId, action);
    await insertItems(tx, tenantId, operationId, BULK_ACTIONS[action].of, ids);
    await begin(runBulk, {
      resourceId: operationId,
      resourceName: titleOf(action, ids.length),
      request: { ...request, count: ids.length },
    });
    return { value: operationId };
  });
  return value;
}
