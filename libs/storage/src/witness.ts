import type { Tx } from '#platform/database';

/**
 * Looks on at a change, inside the transaction that accepts it or makes it: so that what it was checked against is what is
 * changed, and what it notes happens together with the change or not at all. Run again when the transaction is.
 */
export interface Witness {
  /** Before anything else, also before it is known whether there is anything to change; throws what forbids it. */
  before?(tx: Tx): Promise<void>;
  /** Once it is decided. Never called when there was nothing to change, or another operation is joined. */
  note(tx: Tx, change: WitnessedChange): Promise<void>;
}

export interface WitnessedChange {
  resourceId: string;
  resourceName: string;
  /** That carries it out; absent when this transaction has done all of it. */
  operationId?: string;
}
