import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import { isStorageError, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { failpoint } from '#platform/process/failpoint';
import { BULK_ACTIONS, type BulkRequest, isOfOperations } from '#storage/bulk/bulk-actions';
import { type Bulk, type BulkNeeds, beginItem } from '#storage/bulk/bulk-children';
import {
  type BulkItem,
  countItems,
  holdItem,
  holdNext,
  type Round,
  refuseItem,
  SKIP,
  settleItems,
  skipItems,
  someWait,
  waitingItems,
} from '#storage/bulk/bulk-items';
import { lostRight } from '#storage/bulk/bulk-rights';
import { AT_ONCE, PORTION, readLoad, roomOf } from '#storage/bulk/bulk-room';
import { isTaken } from '#storage/bulk/item-operations';

const log = createLogger('bulk');

/** How long a round waits for children that move, and at most for others. */
const ROUND_MS = 1_000;
const IDLE_MS = 30_000;
/** So often an item is tried that is busy: for some eight minutes. */
const TRIES = 20;

const doubled = (times: number): number => Math.min(IDLE_MS, ROUND_MS * 2 ** Math.min(times, 10));

/**
 * Many changes as one: each item is begun as its own operation, some at a time, and what refuses one fails that one alone. What
 * is committed of an item with its operation is all there is to know: a round may be killed anywhere, and run twice.
 */
export const runBulk = defineOperation('bulk.run', {
  resourceKind: 'bulk',
  // A quota of operations refuses none of that class: what mends an outage must not wait for its end.
  class: 'destroy',
  slots: (id, _: BulkRequest) => [{ resource: id, slot: 'lifecycle', own: true }],
  carriedOut: (needs: BulkNeeds): Handling<unknown, BulkRequest> => ({
    steps: [
      {
        name: 'items',
        portioned: true,
        waits: true,
        async run(_, { operation, progress }) {
          const { database } = needs;
          const bulk = bulkOf(operation);
          const round = await settleItems(database, bulk.tenantId, bulk.id);
          const next = await nextItems(needs, bulk, round);
          if (next.length > 0) {
            const lost = await lostRight(database, bulk.tenantId, bulk.request);
            // Once more: what runs goes on, and nothing waits.
            if (lost) {
              await skipItems(database, bulk.tenantId, bulk.id, lost.toJSON());
              return 'again';
            }
          }
          let begun = 0;
          while (begun < next.length && (await begin(needs, bulk, next[begun]!))) begun++;
          if (begun > 0) progress.moved = true;
          // Else its tenant has no room for the next one: it looks again when others have ended.
          if (begun > 0 && begun === next.length) return 'again';
          const { settled, running, held } = round;
          if (next.length > 0 || running + held > 0 || (await someWait(database, bulk.tenantId, bulk.id))) {
            const moved = settled > 0 || progress.moved === true;
            const idle = moved ? 0 : Number(progress.idle ?? 0) + 1;
            progress.moved = false;
            progress.idle = idle;
            return { laterMs: doubled(idle), moved };
          }
          const {
            total: _total,
            waiting: _waiting,
            running: _running,
            ...ended
          } = await database.withTenant(bulk.tenantId, tx => countItems(tx, bulk.tenantId, bulk.id));
          progress.ended = ended;
          return undefined;
        },
      },
    ],
    undo: [
      {
        name: 'skip',
        async run(_, { operation, write }) {
          write(SKIP, [operation.tenantId, operation.id]);
          return undefined;
        },
      },
    ],
    succeed: (_, { progress }) => progress.ended ?? null,
    fail(writer, { tenantId, id }) {
      writer.write(SKIP, [tenantId, id]);
    },
    giveUp: {
      leaves: 'what was begun goes on by itself, and what was not stays as it is',
      write(writer, { tenantId, id }) {
        writer.write(SKIP, [tenantId, id]);
      },
    },
  }),
});

/** What is done to many at once. */
export const BULK_OPERATIONS = [runBulk] as const;

/** As many as there is room for. What is done by the transaction that does all there is to do takes no place. */
async function nextItems(
  { database, cap }: BulkNeeds,
  { tenantId, id, request }: Bulk,
  { running, parked }: Round,
): Promise<BulkItem[]> {
  const { of: subject } = BULK_ACTIONS[request.action];
  if (isOfOperations(request.action))
    return waitingItems(database, tenantId, id, { subject, limit: PORTION, silent: [] });
  const load = await readLoad(database, tenantId, cap);
  const limit = roomOf(running, load, parked);
  if (parked >= AT_ONCE) await holdNext(database, tenantId, id, tooMany(parked).toJSON());
  return limit > 0 ? waitingItems(database, tenantId, id, { subject, limit, silent: load.silent }) : [];
}

const tooMany = (parked: number): StorageError =>
  new StorageError(
    'failed_precondition',
    `${parked} of this bulk wait for a person: it goes on when fewer than ${AT_ONCE} do`,
    { retry: 'later' },
  );

/** False: its tenant may have no more operations now, and it waits without a try of its own. */
async function begin(needs: BulkNeeds, bulk: Bulk, item: BulkItem): Promise<boolean> {
  const { database } = needs;
  try {
    await beginItem(needs, bulk, item);
  } catch (error) {
    // Whoever has the bulk now has begun it, or it was stopped.
    if (isTaken(error)) return true;
    if (!isStorageError(error)) log.error({ operationId: bulk.id, item: item.nth, err: error }, 'defect in a bulk');
    const refused = isStorageError(error)
      ? error
      : new StorageError('internal', `a defect; quote operation ${bulk.id}`, { retry: 'never', cause: error });
    if (isOfQuota(refused)) {
      await holdItem(database, bulk.tenantId, bulk.id, item, refused.toJSON());
      return false;
    }
    const isBusy = refused.retry === 'later' && item.tries < TRIES;
    const againMs = isBusy ? doubled(item.tries) : undefined;
    // Where the database itself is gone this fails, too, and the whole attempt is made again.
    await refuseItem(database, bulk.tenantId, bulk.id, item, refused.toJSON(), againMs);
  }
  await failpoint('bulk.run:item:begun');
  return true;
}

/** Of operations: they end by themselves, however long that takes. */
const isOfQuota = ({ kind, field, retry }: StorageError): boolean =>
  kind === 'resource_exhausted' && field === 'quota' && retry === 'later';

const bulkOf = ({ tenantId, id, traceparent, request }: LeasedOperation<BulkRequest>): Bulk => ({
  tenantId,
  id,
  request,
  ...(traceparent === null ? {} : { traceparent }),
});
