/** What both halves of the extent source's suite work with. The oracle is always the data. */
import { expect } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import { BlockBackendBench, type BlockBackendHarness } from '#backends/conformance/block-backend.conformance';
import type { ExtentSource, RangeBatch } from '#backends/extent-source';

export interface ExtentSourceHarness extends BlockBackendHarness {
  extents: ExtentSource;
  /** How this pool finds differences. */
  method: 'extents' | 'compare';
  /** Of `unusable` and `otherTenant`. */
  unusableExtents: ExtentSource;
  otherTenantExtents: ExtentSource;
  /** Gives the blocks back; they read as zeros. */
  punch(image: ImageRef, offset: number, length: number): Promise<void>;
  /** How many descriptors of this process point into the pool. */
  openFiles(): Promise<number>;
}

export interface Range {
  offset: number;
  end: number;
  hole: number;
}

export const BLOCK = 4_096;
const soon = () => AbortSignal.timeout(60_000);

export class ExtentBench extends BlockBackendBench {
  constructor(override readonly harness: ExtentSourceHarness) {
    super(harness);
  }

  get extents(): ExtentSource {
    return this.harness.extents;
  }

  /** An image without any data. */
  empty(sizeBytes: number): Promise<ImageRef> {
    return this.make({ kind: 'empty', sizeBytes: BigInt(sizeBytes), thick: false });
  }

  snapshot(source: ImageRef): Promise<ImageRef> {
    return this.make({ kind: 'copy', source, thick: false }, 'snapshot');
  }

  write(image: ImageRef, block: number, mark: number, blocks = 1): Promise<void> {
    return this.harness.write(image, block * BLOCK, Buffer.alloc(blocks * BLOCK, mark));
  }

  async content(image: ImageRef): Promise<Buffer> {
    return this.harness.read(image, 0, await this.size(image));
  }

  async size(image: ImageRef): Promise<number> {
    const found = await this.backend.inspectImage(image, soon());
    if (found.state === 'absent') throw new Error(`${image.id} is missing`);
    return Number(found.sizeBytes);
  }

  async allocated(image: ImageRef, from = 0): Promise<Range[]> {
    return collect(this.extents.allocated(image, from, soon()), await this.size(image), from);
  }

  async changed(base: ImageRef, target: ImageRef, from = 0): Promise<Range[]> {
    return collect(this.extents.changed(base, target, from, soon()), await this.size(target), from);
  }

  /** Zeros plus what is allocated is the image; the base plus what changed is the target, from any offset on. */
  async expectTold(base: ImageRef, target: ImageRef, from = 0): Promise<Range[]> {
    const [before, now] = [await this.content(base), await this.content(target)];
    const patched = Buffer.alloc(now.length);
    before.copy(patched);
    const changed = await this.changed(base, target, from);
    patch(patched, changed, now);
    expect(patched.subarray(from).equals(now.subarray(from)), `${base.id} plus changes is ${target.id}`).toBe(true);
    const built = Buffer.alloc(now.length);
    patch(built, await this.allocated(target, from), now);
    expect(built.subarray(from).equals(now.subarray(from)), `zeros plus data is ${target.id}`).toBe(true);
    return changed;
  }
}

/** Data come from the image, holes are zeros: as who restores from a backup does it. */
function patch(into: Buffer, ranges: readonly Range[], image: Buffer): void {
  for (const { offset, end, hole } of ranges)
    if (hole === 1) into.fill(0, offset, end);
    else image.copy(into, offset, offset, end);
}

/** Every rule of the port that can be seen from one stream. */
export async function collect(batches: AsyncIterable<RangeBatch>, size: number, from = 0): Promise<Range[]> {
  const found: Range[] = [];
  let last = 0;
  for await (const { count, offsets, lengths, holes } of batches) {
    for (let n = 0; n < count; n++) {
      const [offset, length, hole] = [offsets[n]!, lengths[n]!, holes[n]!];
      const end = offset + length;
      const isLawful = offset >= last && length > 0 && end <= size && end > from && (hole === 0 || hole === 1);
      if (!isLawful) throw new Error(`range ${offset}+${length} (${hole}) after ${last}, from ${from}, size ${size}`);
      found.push({ offset, end, hole });
      last = end;
    }
  }
  return found;
}

/** The same set of bytes in as few ranges as possible, without what lies before `from`. */
export function coalesced(ranges: readonly Range[], from = 0): Range[] {
  const found: Range[] = [];
  for (const { offset, end, hole } of ranges) {
    const last = found.at(-1);
    if (end <= from) continue;
    if (last?.end === offset && last.hole === hole) last.end = end;
    else found.push({ offset: Math.max(offset, from), end, hole });
  }
  return found;
}
