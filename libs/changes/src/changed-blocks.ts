import type { RangeBatch } from '#backends/extent-source';

/**
 * What the services ask of the change index. All rules of the specification that do not depend on a service are kept here:
 * which snapshots there are, that both are of one volume and in order, offsets, capacity (invariants C2 to C4, C8).
 * Throws StorageError, before the first range or in the middle of a stream:
 *   not_found             no such snapshot (or it is another tenant's)
 *   invalid_argument      `field` base: of another volume, or cut after the target
 *   out_of_range          the offset is beyond the capacity
 *   failed_precondition   the difference cannot be known any more: do a full backup
 *   unavailable           not yet, or not now; the same call will do later
 */
export interface ChangedBlocks {
  /** Ranges that may hold something else than zeros. */
  allocated(query: ChangesQuery): Promise<ChangedRanges>;
  /** Ranges in which the target may differ from the base, holes included. Base and target alike: none. */
  delta(query: ChangesQuery & { base: SnapshotKey }): Promise<ChangedRanges>;
}

/** Bytes; beyond 2^53 as it was given, so that it can be told. */
export type Offset = number | bigint;

export interface ChangesQuery {
  tenantId: string;
  target: SnapshotKey;
  /** No range ends at or before it. At the capacity: none. */
  from: Offset;
  /** Waits for a step that is about to be built, within the signal: most readers take `unavailable` for an end. */
  waits?: boolean;
  /** The client left, or the process stops: ends the ranges with the signal's reason. */
  signal: AbortSignal;
}

/** A name is looked for among snapshots that are not deleted; an id also finds a deleted one, as a base only. */
export type SnapshotKey = { id: string } | { volumeId: string; name: string } | { name: string };

export interface ChangedRanges {
  volumeId: string;
  /** Of the target at its cut, bytes; the same for all of a stream. */
  capacityBytes: number;
  /**
   * Ascending, disjoint, clipped to the capacity, touching ranges coalesced within and over batches. Pulled; to be
   * iterated once; a batch is good until the next one is asked for. Its end means that nothing is missing; everything else
   * throws.
   */
  batches: AsyncIterable<RangeBatch>;
  /** For people: how it is answered. */
  source: 'index' | 'walk' | 'empty';
}
