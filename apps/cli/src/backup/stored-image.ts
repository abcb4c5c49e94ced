import { LauncherError } from '../home.js';
import type { BackupStore, Point } from './backup-store.js';
import { SumCursor, sumOf } from './block-sums.js';
import { BLOCK, CHUNK } from './changed-chunks.js';
import { FileInput } from './file-input.js';
import { contentOf, records, type StoredRecord } from './point-records.js';

const BLOCKS = CHUNK / BLOCK;
const NOTHING = Buffer.alloc(CHUNK);

/** What of a point is not what was stored. */
export interface Damage {
  point: number;
  file: string;
  /** Of the image, bytes; absent when it is the file as a whole. */
  offset?: number;
  length?: number;
  what: string;
}

export function describeDamage({ file, offset, length, what }: Damage): string {
  if (offset === undefined) return `${file}: ${what}`;
  return `${file}: ${offset} to ${offset + (length ?? 0)} of the image: ${what}`;
}

/** One point on the way through the image: what it stores of a chunk, and what its blocks should be. */
class PointCursor {
  /** Undefined: they are damaged themselves. */
  sums: SumCursor | undefined;
  private record: StoredRecord | undefined;
  private isDamaged = false;
  private readonly source: AsyncGenerator<StoredRecord>;

  private constructor(
    readonly point: Point,
    private readonly data: FileInput,
    private readonly found: (damage: Damage) => void,
  ) {
    this.source = records(data);
  }

  static async open(store: BackupStore, point: Point, found: (damage: Damage) => void): Promise<PointCursor> {
    const cursor = new PointCursor(point, await FileInput.open(store.path(point.data.file)), found);
    await cursor.next();
    cursor.sums = await SumCursor.open(store.path(point.sums.file), point).catch(error => {
      if (!(error instanceof LauncherError)) throw error;
      found({ point: point.number, file: point.sums.file, what: error.message });
      return undefined;
    });
    return cursor;
  }

  /** Lays what the point stores of this chunk over it; gives the chunk, and the blocks that it touched. */
  async apply(chunk: Buffer | undefined, offset: number): Promise<{ chunk: Buffer | undefined; touched: Set<number> }> {
    const touched = new Set<number>();
    let image = chunk;
    for (; this.record && this.record.offset < offset + CHUNK; await this.next()) {
      const { record } = this;
      const [at, end] = [record.offset - offset, record.offset - offset + record.length];
      if (end > CHUNK) {
        this.damaged('a record reaches over the end of its chunk');
        continue;
      }
      for (let block = Math.floor(at / BLOCK); block * BLOCK < end; block++) touched.add(block);
      image ??= Buffer.alloc(CHUNK);
      // What is damaged is told by the sums of its blocks, or by the checksum of the file.
      const content = await contentOf(record).catch(() => undefined);
      if (content) content.copy(image, at);
      else image.fill(0, at, end);
    }
    return { chunk: image, touched };
  }

  damaged(what: string, range: { offset?: number; length?: number } = {}): void {
    this.isDamaged = true;
    const { number, data } = this.point;
    this.found({ point: number, file: data.file, ...range, what });
  }

  /** After the last chunk. */
  finish(): void {
    if (this.record) this.damaged('a record beyond the end of the image');
    if (!this.isDamaged && this.data.checksum() !== this.point.data.sha256)
      this.damaged('its checksum is not that of its manifest');
  }

  async close(): Promise<void> {
    await Promise.all([this.data.close(), this.sums?.close()]);
  }

  private async next(): Promise<void> {
    try {
      this.record = (await this.source.next()).value ?? undefined;
    } catch (error) {
      if (!(error instanceof LauncherError)) throw error;
      this.record = undefined;
      this.damaged(error.message);
    }
  }
}

/** What is known of a block after some points of the chain. */
interface BlockState {
  /** Undefined: zeros; null: not looked at since it changed. */
  sum: Buffer | undefined | null;
  /** Whose data it is. */
  by: PointCursor;
  /** It was what a point should have there. */
  isRight: boolean;
  /** Reported already. */
  isBad: boolean;
  /** So was what it lies on: a part of it may still be there. */
  onBad: boolean;
}

/**
 * The image of the last point of a chain as the files of the chain have it, chunk by chunk, each block compared with the
 * sums of every point that has it. What differs goes to `found`, by the point whose data it is; nothing is thrown for it.
 * All files are read once, side by side.
 */
export async function* storedChunks(
  store: BackupStore,
  chain: readonly Point[],
  found: (damage: Damage) => void,
): AsyncGenerator<{ offset: number; content: Buffer }> {
  const cursors: PointCursor[] = [];
  try {
    for (const point of chain) cursors.push(await PointCursor.open(store, point, found));
    const { capacityBytes } = chain.at(-1)!;
    for (let offset = 0; offset < capacityBytes; offset += CHUNK) {
      let chunk: Buffer | undefined;
      const states = Array.from({ length: BLOCKS }, () => changedBy(cursors[0]!));
      for (const cursor of cursors) {
        const applied = await cursor.apply(chunk, offset);
        chunk = applied.chunk;
        for (const block of applied.touched) states[block] = changedBy(cursor, states[block]);
        await compare(cursor, chunk ?? NOTHING, offset, states);
      }
      yield { offset, content: (chunk ?? NOTHING).subarray(0, Math.min(CHUNK, capacityBytes - offset)) };
    }
    for (const cursor of cursors) cursor.finish();
  } finally {
    await Promise.all(cursors.map(cursor => cursor.close()));
  }
}

const changedBy = (by: PointCursor, before?: BlockState): BlockState => ({
  sum: null,
  by,
  isRight: false,
  isBad: false,
  onBad: before?.isBad ?? false,
});

async function compare(cursor: PointCursor, chunk: Buffer, offset: number, states: BlockState[]): Promise<void> {
  const { sums, point } = cursor;
  if (!sums) return;
  for (const [block, state] of states.entries()) {
    const at = offset + block * BLOCK;
    if (at >= point.capacityBytes) break;
    const wanted = await sums.of(at / BLOCK);
    if (state.isBad) continue;
    if (state.sum === null)
      state.sum = chunk === NOTHING ? undefined : sumOf(chunk.subarray(block * BLOCK, (block + 1) * BLOCK));
    if (isSame(state.sum, wanted)) {
      state.isRight = true;
      continue;
    }
    state.isBad = true;
    if (state.onBad) continue;
    const length = Math.min(BLOCK, point.capacityBytes - at);
    // What was right before and is not any more was not stored by this point.
    (state.isRight ? cursor : state.by).damaged('it is not what was backed up', { offset: at, length });
  }
}

const isSame = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined ? a === b : a.equals(b);
