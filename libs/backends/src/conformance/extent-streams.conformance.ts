/** An extent source as a stream over more ranges than one window has; part of the suite in extent-source.conformance.ts. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import { BLOCK, coalesced, collect, ExtentBench } from '#backends/conformance/extent-bench';
import type { RangeBatch } from '#backends/extent-source';
import { unleased } from '#platform/lease-signal';

const soon = () => unleased(AbortSignal.timeout(60_000));

export function describeManyRanges(use: () => ExtentBench): void {
  describe('many ranges', () => {
    const BLOCKS = 9_000;
    let kept: ExtentBench;
    let base: ImageRef;
    let target: ImageRef;
    let size: number;

    /** More extents than fit into a window, and every third one changed. */
    beforeAll(async () => {
      kept = new ExtentBench(use().harness);
      const volume = await kept.empty(2 * BLOCKS * BLOCK + 512);
      const fill = async (mark: number, step: number): Promise<void> => {
        for (let block = 0; block < BLOCKS; block += step) await kept.write(volume, 2 * block, mark);
      };
      await fill(1, 1);
      base = await kept.snapshot(volume);
      await fill(2, 3);
      await use().harness.punch(volume, 1_000 * BLOCK, 3_000 * BLOCK);
      target = await kept.snapshot(volume);
      size = await kept.size(target);
    });
    afterAll(() => kept?.clean());

    it('are told from any offset on as from zero', async () => {
      const [data, changes] = [await use().allocated(target), await use().expectTold(base, target)];
      expect(data.length).toBeGreaterThan(7_000);
      expect(changes.length).toBeGreaterThan(3_000);
      const middle = 8_001 * BLOCK;
      const offsets = [1, 511, 512, BLOCK - 1, BLOCK, BLOCK + 1, middle - 1, middle, middle + 700, size - 1];
      for (const from of [
        ...offsets,
        changes[2_000]!.offset,
        changes[2_000]!.end,
        2_500 * BLOCK + 700,
        size,
        size + 4_096,
      ]) {
        expect(coalesced(await use().allocated(target, from), from), `data from ${from}`).toEqual(
          coalesced(data, from),
        );
        expect(coalesced(await use().changed(base, target, from), from), `changes from ${from}`).toEqual(
          coalesced(changes, from),
        );
      }
      expect(await use().allocated(target, size)).toEqual([]);
    });

    it('come as they are pulled, and whoever leaves leaves nothing open', async () => {
      for (const batches of [
        use().extents.allocated(target, 0, soon()),
        use().extents.changed(base, target, 0, soon()),
      ]) {
        let ranges = 0;
        for await (const { count } of batches) {
          ranges = count;
          expect(await use().harness.openFiles()).toBeGreaterThan(0);
          break;
        }
        expect(ranges).toBeGreaterThan(0);
        expect(ranges).toBeLessThan(7_000);
        expect(await use().harness.openFiles()).toBe(0);
      }
    });

    it('are batches that may be kept', async () => {
      const batches: RangeBatch[] = [];
      for await (const batch of use().extents.changed(base, target, 0, soon())) batches.push(batch);
      const again = async function* () {
        yield* batches;
      };
      expect(await collect(again(), size)).toEqual(await use().changed(base, target));
      expect(batches.length).toBeGreaterThan(1);
    });

    it('end with the reason of the signal, whether they are pulled or not', async () => {
      for (const pulled of [true, false]) {
        for (const ask of [
          (signal: AbortSignal) => use().extents.allocated(target, 0, signal),
          (signal: AbortSignal) => use().extents.changed(base, target, 0, signal),
        ]) {
          const controller = new AbortController();
          const reason = new Error('the client left');
          const stream = ask(controller.signal)[Symbol.asyncIterator]();
          expect((await stream.next()).done).toBe(false);
          const next = pulled ? stream.next() : undefined;
          controller.abort(reason);
          if (next) await expect(next).rejects.toBe(reason);
          await expect.poll(() => use().harness.openFiles()).toBe(0);
          if (!next) await expect(stream.next()).rejects.toBe(reason);
        }
      }
    });

    it('are told to the end when the images are removed meanwhile', async () => {
      const whole = await use().changed(base, target);
      const copies = [await use().snapshot(base), await use().snapshot(target)] as const;
      const stream = use().extents.changed(...copies, 0, soon());
      const removing = async function* () {
        let isFirst = true;
        for await (const batch of stream) {
          yield batch;
          if (!isFirst) continue;
          isFirst = false;
          for (const image of copies) await use().backend.removeImage(image, use().nextFence(), soon());
        }
      };
      expect(coalesced(await collect(removing(), size))).toEqual(coalesced(whole));
    });
  });
}
