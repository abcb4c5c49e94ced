import type { Caller } from '#operations/accepting/caller';
import type { Submits } from '#operations/accepting/operations';
import { BULK_ACTIONS, type BulkRequest, NO_BACKEND, titleOf } from '#storage/bulk/bulk-actions';
import { insertItems } from '#storage/bulk/bulk-items';
import { runBulk } from '#storage/bulk/run-bulk';

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
