import type { ImageRef } from '#backends/block-backend';
import { CHANGE_OPERATIONS } from '#changes/change-operations';
import type { ChangedRanges, SnapshotKey } from '#changes/changed-blocks';
import { ChangedBlocksService } from '#changes/changed-blocks-service';
import { IndexRetention } from '#changes/index-retention';
import { IndexScheduler } from '#changes/index-scheduler';
import { handlersOf } from '#operations/definitions/define-operation';
import { ImageReleaser } from '#storage/block/snapshots/image-releaser';
import { BlockHouse, type BlockHouseOptions } from '#test/block-storage/block-house';
import { untilDone } from '#test/block-storage/ended-attempts';
import { cephStore } from '#test/block-storage/house-store';
import { cephDisk, type Disk, FILES } from '#test/changes/disks';
import { until } from '#test/support/parts';

export const BLOCK = 4_096;

export interface Range {
  offset: number;
  end: number;
}

/** A snapshot as a test remembers it: what it held when it was cut. */
export interface Taken {
  id: string;
  name: string;
  volumeId: string;
  data: Buffer;
}

/** The block side with its change index, driven round by round; the data of each snapshot are the oracle. */
export class ChangesHouse {
  readonly changes: ChangedBlocksService;

  private constructor(
    readonly house: BlockHouse,
    readonly disk: Disk,
  ) {
    this.changes = new ChangedBlocksService(house.parts.database, { open: async () => house.store });
  }

  static async create(options: BlockHouseOptions = {}, disk: Disk = FILES): Promise<ChangesHouse> {
    const house = await BlockHouse.create({
      handlers: (blocks, _, database) => handlersOf(CHANGE_OPERATIONS, { database, blocks }),
      ...options,
    });
    return new ChangesHouse(house, disk);
  }

  static async onCeph(): Promise<ChangesHouse> {
    const images = await cephStore();
    return ChangesHouse.create({ images }, cephDisk(images.cluster));
  }

  close = (): Promise<void> => this.house.close();

  get database() {
    return this.house.parts.database;
  }

  query<Row = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<Row[]> {
    return this.house.testDatabase.query<Row>(text, params);
  }

  async volume(name: string, bytes = 1024 ** 2): Promise<string> {
    return (await this.house.volume(name, { sizeBytes: BigInt(bytes) })).id;
  }

  write(volumeId: string, offset: number, data: Buffer): Promise<void> {
    return this.disk.write(this.path('volume', volumeId), offset, data);
  }

  punch(volumeId: string, offset: number, bytes: number): Promise<void> {
    return this.disk.punch(this.path('volume', volumeId), offset, bytes);
  }

  /** What is there, once more: other blocks where they are shared, and the same data. */
  async rewrite(volumeId: string, offset: number, bytes: number): Promise<void> {
    await this.write(volumeId, offset, await this.disk.read(this.path('volume', volumeId), offset, bytes));
  }

  async clone(name: string, snapshotId: string): Promise<string> {
    return (await this.house.volume(name, { sizeBytes: undefined, source: { snapshotId } })).id;
  }

  async snapshot(volumeId: string, name: string): Promise<Taken> {
    // A busy processor lets a lease of tests end in a call: as a driver, it comes again.
    const { id, sizeBytes } = await untilDone(() => this.house.snapshot(volumeId, name));
    const data = await this.disk.read(this.path('snapshot', id), 0, Number(sizeBytes));
    return { id, name, volumeId, data };
  }

  delete = (snapshotId: string): Promise<void> => this.house.snapshots.delete(this.house.caller(), snapshotId);

  async expand(volumeId: string, bytes: number): Promise<void> {
    await this.house.volumes.update(this.house.caller(), volumeId, { sizeBytes: BigInt(bytes) });
  }

  path(kind: ImageRef['kind'], id: string): string {
    return this.house.store.volumes.pathOf({ pool: 'default', kind, id, folder: '' });
  }

  /** As a worker does it, until every cut is indexed or broken. */
  async index(): Promise<void> {
    await until('all cuts are indexed', async () => {
      await new IndexScheduler(this.database).run(AbortSignal.timeout(10_000));
      const open = "SELECT FROM trivet.snapshot WHERE cut IS NOT NULL AND index_state = 'pending'";
      return (await this.query(open)).length === 0;
    });
    await this.house.settled();
  }

  /** Images that nobody needs are unlinked. */
  async release(): Promise<void> {
    await new ImageReleaser(this.database).run(AbortSignal.timeout(10_000));
    await this.house.settled();
  }

  /** As long after deletion; until it finds nothing more to do. */
  async retain(retentionMs: number): Promise<void> {
    for (let before = -1; ; ) {
      const [{ n } = { n: 0 }] = await this.query<{ n: number }>('SELECT count(*)::int AS n FROM trivet.operation');
      if (n === before) return;
      before = n;
      await new IndexRetention(this.database, { retentionMs }).run(AbortSignal.timeout(10_000));
      await this.house.settled();
    }
  }

  delta(
    base: SnapshotKey,
    target: SnapshotKey,
    from = 0,
    signal = AbortSignal.timeout(30_000),
  ): Promise<ChangedRanges> {
    return this.changes.delta({ tenantId: this.house.tenantId, base, target, from, signal });
  }

  allocated(target: SnapshotKey, from = 0, signal = AbortSignal.timeout(30_000)): Promise<ChangedRanges> {
    return this.changes.allocated({ tenantId: this.house.tenantId, target, from, signal });
  }

  /** Rules of every stream, then: base + changed = target. Gives where the answer came from. */
  async expectDelta(base: Taken, target: Taken, from = 0): Promise<ChangedRanges['source']> {
    const answer = await this.delta({ id: base.id }, { id: target.id }, from);
    const ranges = await collect(answer, from);
    const rebuilt = Buffer.alloc(target.data.length);
    base.data.copy(rebuilt);
    patch(rebuilt, target.data, ranges, from);
    requireSame(rebuilt, target.data, `delta ${base.name} to ${target.name} from ${from}`);
    return answer.source;
  }

  /** zeros + allocated = snapshot. */
  async expectAllocated(target: Taken, from = 0): Promise<ChangedRanges['source']> {
    const answer = await this.allocated({ id: target.id }, from);
    const rebuilt = Buffer.alloc(target.data.length);
    patch(rebuilt, target.data, await collect(answer, from), from);
    requireSame(rebuilt, target.data, `allocated ${target.name} from ${from}`);
    return answer.source;
  }
}

/** All ranges; throws for whatever a stream may not do. */
export async function collect({ batches, capacityBytes }: ChangedRanges, from = 0): Promise<Range[]> {
  const ranges: Range[] = [];
  let last = -1;
  for await (const { count, offsets, lengths } of batches) {
    if (count === 0) throw new Error('an empty batch');
    for (let n = 0; n < count; n++) {
      const [offset, end] = [offsets[n]!, offsets[n]! + lengths[n]!];
      if (offset <= last || end <= offset || end > capacityBytes || end <= from)
        throw new Error(`range ${offset}..${end} after ${last}, of ${capacityBytes}, from ${from}`);
      last = end;
      ranges.push({ offset, end });
    }
  }
  return ranges;
}

/** What lies before `from` the client had already. */
function patch(rebuilt: Buffer, target: Buffer, ranges: readonly Range[], from: number): void {
  target.copy(rebuilt, 0, 0, from);
  for (const { offset, end } of ranges) target.copy(rebuilt, offset, offset, end);
}

function requireSame(rebuilt: Buffer, target: Buffer, what: string): void {
  if (rebuilt.equals(target)) return;
  const at = rebuilt.findIndex((byte, n) => byte !== target[n]);
  throw new Error(`${what}: byte ${at} (block ${Math.floor(at / BLOCK)}) is missing`);
}
