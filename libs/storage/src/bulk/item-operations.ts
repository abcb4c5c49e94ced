import { accept } from '#operations/accepting/accept';
import type { Caller } from '#operations/accepting/caller';
import { type Begin, type Claim, operationOf, type Submits, type Submitted } from '#operations/accepting/operations';
import { type Database, isFenceLost, type Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { BulkItem } from '#storage/bulk/bulk-items';

/** Of the bulk: nobody has asked it to stop. Whoever was told that it stops sees nothing begin after that. */
const GOES_ON = `EXISTS (SELECT FROM trivet.operation b WHERE b.tenant_id = $1 AND b.id = $2 AND b.cancel_requested_at IS NULL)`;

/** Raises when it is not waiting any more: it was begun already, or the bulk was stopped. */
const TAKE = sql(
  'bulk_take',
  `WITH taken AS (
     UPDATE trivet.bulk_item SET state = 'begun', operation_id = $4, error = NULL
      WHERE tenant_id = $1 AND bulk_id = $2 AND nth = $3 AND state = 'waiting' AND ${GOES_ON} RETURNING nth)
   SELECT trivet.fenced(max(nth)) FROM taken`,
);
const JOIN = sql(
  'bulk_join',
  'UPDATE trivet.bulk_item SET operation_id = $4 WHERE tenant_id = $1 AND bulk_id = $2 AND nth = $3',
);
const SETTLED = sql(
  'bulk_settled',
  "UPDATE trivet.bulk_item SET state = 'done', operation_id = NULL WHERE tenant_id = $1 AND bulk_id = $2 AND nth = $3",
);
/** For the transaction that does all there is to do about an operation; raises as TAKE does. */
export const ITEM_DONE = sql(
  'bulk_item_done',
  `WITH done AS (
     UPDATE trivet.bulk_item SET state = 'done', operation_id = $4, error = NULL
      WHERE tenant_id = $1 AND bulk_id = $2 AND nth = $3 AND state = 'waiting' AND ${GOES_ON} RETURNING nth)
   SELECT trivet.fenced(max(nth)) FROM done`,
);

/** Waits for the next round of a reconciler, which keeps the cap and rings the bell. */
const NO_PLACE = 0;

/** Somebody else has begun the item, or it never is. */
export const isTaken = isFenceLost;

/**
 * Accepts what one item of a bulk asks for, and does not wait for it: the item is taken in the transaction that accepts its
 * operation, so whoever comes twice, late or beside another begins none.
 */
export class ItemOperations implements Submits {
  /** @param joins another operation of the same kind does what is wanted; else the item is busy */
  constructor(
    private readonly database: Database,
    private readonly bulkId: string,
    private readonly item: Pick<BulkItem, 'nth'>,
    private readonly joins = true,
  ) {}

  async submit<T>(
    caller: Caller,
    claim: (tx: Tx, begin: Begin, operationId: string) => Promise<Claim<T>>,
    first?: (tx: Tx) => Promise<void>,
  ): Promise<Submitted<T>> {
    const { tenantId } = caller;
    const operationId = uuidv7();
    const own = [tenantId, this.bulkId, this.item.nth];
    return this.database.withTenant(tenantId, async tx => {
      let begun = false;
      // Each lock that it may wait for comes before: a stop that was acknowledged meanwhile is seen.
      const take = (): Promise<unknown> => tx.query(TAKE, [...own, operationId]);
      await first?.(tx);
      await caller.observer?.before?.(tx);
      const begin: Begin = async (operation, asked) => {
        begun = true;
        await take();
        const asks = operationOf(caller, operationId, operation, asked);
        await accept(tx, { ...asks, unattended: true }, NO_PLACE);
      };
      const { value, join } = await claim(tx, begin, operationId);
      if (begun) return { value };
      if (join && !this.joins)
        throw new StorageError('aborted', `operation ${join} is under way there; it is tried again after it`);
      await take();
      await (join ? tx.query(JOIN, [...own, join]) : tx.query(SETTLED, own));
      return { value };
    });
  }
}
