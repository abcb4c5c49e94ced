import { emptyBatch, type RangeBatch } from '#backends/extent-source';
import type { ChangedBlocks, ChangedRanges, ChangesQuery, SnapshotKey } from '#changes/changed-blocks';
import { invalid, StorageError } from '#platform/errors';
import { coveringSession } from '#storage/block/sessions/covered';
import type { SnapshotSession, SnapshotSessions } from '#storage/block/sessions/snapshot-session';

export type Range = readonly [offset: number, length: number];

export interface MemorySnapshot {
  id: string;
  name: string;
  tenantId: string;
  volumeId: string;
  cut: number;
  capacityBytes: number;
  /** Found as a base only. */
  deleted?: boolean;
  ranges: readonly Range[];
}

/** Ranges of 4 KiB, one each 16 KiB. */
export async function* synthetic(count: number, from: number, batchSize = 8_192): AsyncGenerator<RangeBatch> {
  const first = Math.max(0, Math.ceil((from - 4_095) / 16_384));
  for (let at = first; at < count; ) {
    const batch = emptyBatch(Math.min(batchSize, count - at));
    for (; batch.count < batch.offsets.length; at++, batch.count++) {
      batch.offsets[batch.count] = at * 16_384;
      batch.lengths[batch.count] = 4_096;
    }
    yield batch;
  }
}

/** The domain's double: the rules of its contract over snapshots in memory, and faults on order. */
export class MemoryChanges implements ChangedBlocks {
  readonly snapshots = new Map<string, MemorySnapshot>();
  /** Of the streams that were begun: how many were closed, by their end or by the caller of them. */
  opened = 0;
  closed = 0;
  /** Batches that were asked for. */
  pulled = 0;
  /** Thrown after so many batches. */
  failAfter: { batches: number; error: unknown } | undefined;
  /** The batches never come, and the signal is not heeded. */
  deaf = false;
  /** Instead of the snapshot's ranges. */
  batches: ((from: number) => AsyncIterable<RangeBatch>) | undefined;
  broken: StorageError | undefined;

  add(snapshot: MemorySnapshot): void {
    this.snapshots.set(snapshot.id, snapshot);
  }

  async allocated(query: ChangesQuery): Promise<ChangedRanges> {
    return this.answer(this.find(query, query.target), query);
  }

  async delta(query: ChangesQuery & { base: SnapshotKey }): Promise<ChangedRanges> {
    const target = this.find(query, query.target);
    const base = this.find(query, query.base, true);
    if (base.volumeId !== target.volumeId) throw invalid('base', 'is of another volume');
    if (base.cut > target.cut) throw invalid('base', 'was taken after the target');
    if (this.broken) throw this.broken;
    return this.answer(base === target ? { ...target, ranges: [] } : target, query);
  }

  private find({ tenantId }: ChangesQuery, key: SnapshotKey, asBase = false): MemorySnapshot {
    for (const snapshot of this.snapshots.values()) {
      if (snapshot.tenantId !== tenantId) continue;
      if ('id' in key ? snapshot.id === key.id && (asBase || !snapshot.deleted) : fits(snapshot, key)) return snapshot;
    }
    throw new StorageError('not_found', 'there is no such snapshot');
  }

  private answer(snapshot: MemorySnapshot, { from, signal }: ChangesQuery): ChangedRanges {
    const { capacityBytes, volumeId } = snapshot;
    if (from > capacityBytes) throw new StorageError('out_of_range', `the offset ${from} is beyond the capacity`);
    return { volumeId, capacityBytes, batches: this.counted(snapshot, Number(from), signal), source: 'index' };
  }

  private async *counted({ ranges }: MemorySnapshot, from: number, signal: AbortSignal): AsyncGenerator<RangeBatch> {
    this.opened++;
    try {
      if (this.deaf) await new Promise(() => {});
      let batches = 0;
      for await (const batch of this.batches?.(from) ?? once(ranges, from)) {
        signal.throwIfAborted();
        if (this.failAfter && batches++ >= this.failAfter.batches) throw this.failAfter.error;
        this.pulled++;
        yield batch;
      }
      if (this.failAfter && batches <= this.failAfter.batches) throw this.failAfter.error;
    } finally {
      this.closed++;
    }
  }
}

const fits = (snapshot: MemorySnapshot, key: { volumeId?: string; name?: string }): boolean =>
  !snapshot.deleted && snapshot.name === key.name && (key.volumeId === undefined || key.volumeId === snapshot.volumeId);

async function* once(ranges: readonly Range[], from: number): AsyncGenerator<RangeBatch> {
  const wanted = ranges.filter(([offset, length]) => offset + length > from);
  if (wanted.length === 0) return;
  yield {
    count: wanted.length,
    offsets: Float64Array.from(wanted, ([offset]) => offset),
    lengths: Float64Array.from(wanted, ([, length]) => length),
    holes: new Uint8Array(wanted.length),
  };
}

export class MemorySnapshotSessions implements Pick<SnapshotSessions, 'authenticate'> {
  readonly sessions = new Map<string, SnapshotSession>();

  add(token: string, tenantId: string, tenantName: string, snapshots: readonly MemorySnapshot[]): void {
    const facts = { id: token, tenantId, tenantName, driver: 'csi.hpe.com', expiresAt: new Date(), snapshots };
    this.sessions.set(token, coveringSession(facts));
  }

  authenticate = async (token: string): Promise<SnapshotSession | undefined> => this.sessions.get(token);
}
