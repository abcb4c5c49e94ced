/** The sentences of the port for allocated and changed ranges, as tests. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import { failsWith, MIB } from '#backends/conformance/block-backend.conformance';
import { BLOCK, coalesced, collect, ExtentBench, type ExtentSourceHarness } from '#backends/conformance/extent-bench';
import type { ExtentSource, RangeBatch } from '#backends/extent-source';
import { unleased } from '#platform/lease-signal';

const soon = () => unleased(AbortSignal.timeout(60_000));
const at = (block: number, blocks = 1, hole = 0) => ({ offset: block * BLOCK, end: (block + blocks) * BLOCK, hole });

export function describeExtentSource(name: string, setup: () => Promise<ExtentSourceHarness>): void {
  describe(`extent source: ${name}`, () => {
    let harness: ExtentSourceHarness;
    let bench: ExtentBench;
    let extents: ExtentSource;

    beforeAll(async () => {
      harness = await setup();
      bench = new ExtentBench(harness);
      extents = harness.extents;
    });
    afterEach(async () => {
      // After a signal they are closed as soon as the call under way is over.
      await expect.poll(() => harness.openFiles(), { message: 'descriptors left open' }).toBe(0);
      await bench.clean();
    });
    afterAll(() => harness?.close());

    /** Both ways to ask. */
    const eachWay: [string, (of: ExtentSource, image: ImageRef, signal: AbortSignal) => AsyncIterable<RangeBatch>][] = [
      ['allocated', (of, image, signal) => of.allocated(image, 0, signal)],
      ['changed', (of, image, signal) => of.changed(image, image, 0, signal)],
    ];

    it('says how it finds differences', async () => {
      expect(await extents.methodOf(harness.pool, soon())).toBe(harness.method);
    });

    describe('what is allocated', () => {
      it('is what was written, and nothing of an image that never was', async () => {
        const volume = await bench.empty(64 * MIB);
        expect(await bench.allocated(await bench.snapshot(volume))).toEqual([]);
        for (const block of [0, 1, 7, 16_383]) await bench.write(volume, block, 5);
        const found = await bench.allocated(await bench.snapshot(volume));
        expect(coalesced(found)).toEqual([at(0, 2), at(7), at(16_383)]);
      });

      it('ends with the image, whatever its size', async () => {
        const volume = await bench.empty(2 * MIB + 512);
        await harness.write(volume, 2 * MIB + 100, Buffer.from('the end'));
        const taken = await bench.snapshot(volume);
        expect(coalesced(await bench.allocated(taken))).toEqual([{ offset: 2 * MIB, end: 2 * MIB + 512, hole: 0 }]);
        await bench.expectTold(taken, taken);
      });

      it('shrinks by discards', async () => {
        const volume = await bench.empty(MIB);
        await bench.write(volume, 0, 5, 16);
        await harness.punch(volume, 4 * BLOCK, 8 * BLOCK);
        expect(coalesced(await bench.allocated(await bench.snapshot(volume)))).toEqual([at(0, 4), at(12, 4)]);
      });
    });

    describe('what changed', () => {
      it('is nothing between images alike', async () => {
        const volume = await bench.volume('some', 4 * MIB);
        const [one, two] = [await bench.snapshot(volume), await bench.snapshot(volume)];
        expect(await bench.changed(one, two)).toEqual([]);
        expect(await bench.changed(one, one)).toEqual([]);
      });

      it('is each block that was written, first or again, and no other', async () => {
        const volume = await bench.empty(64 * MIB);
        await bench.write(volume, 100, 1, 100);
        const base = await bench.snapshot(volume);
        for (const block of [0, 120, 121, 150, 199, 16_383]) await bench.write(volume, block, 2);
        await harness.write(volume, 170 * BLOCK + 512, Buffer.alloc(512, 3));
        const target = await bench.snapshot(volume);
        const found = await bench.expectTold(base, target);
        expect(coalesced(found)).toEqual([at(0), at(120, 2), at(150), at(170), at(199), at(16_383)]);
      });

      it('is what was discarded, as holes', async () => {
        const volume = await bench.empty(MIB);
        await bench.write(volume, 10, 1, 30);
        const base = await bench.snapshot(volume);
        await harness.punch(volume, 20 * BLOCK, 5 * BLOCK);
        await bench.write(volume, 22, 2);
        await harness.punch(volume, 100 * BLOCK, 5 * BLOCK);
        const found = await bench.expectTold(base, await bench.snapshot(volume));
        expect(coalesced(found)).toEqual([at(20, 2, 1), at(22), at(23, 2, 1)]);
      });

      it('beyond the end of a shorter base is all that holds data', async () => {
        const volume = await bench.empty(MIB + 512);
        await harness.write(volume, MIB, Buffer.alloc(512, 1));
        const base = await bench.snapshot(volume);
        await bench.backend.growImage(volume, { sizeBytes: BigInt(64 * MIB), thick: false }, bench.nextFence(), soon());
        const grown = await bench.snapshot(volume);
        await bench.expectTold(base, grown);
        await bench.write(volume, 8_000, 2);
        await harness.write(volume, MIB + 1_024, Buffer.alloc(512, 4));
        const written = await bench.snapshot(volume);
        const found = coalesced(await bench.expectTold(base, written));
        expect(found.at(-1)).toEqual(at(8_000));
        expect(found.reduce((sum, { offset, end }) => sum + end - offset, 0)).toBeLessThanOrEqual(3 * BLOCK);
        await bench.expectTold(base, written, MIB + 512);
      });

      it('ends with a shorter target', async () => {
        const volume = await bench.volume('short', MIB);
        const target = await bench.snapshot(volume);
        await bench.backend.growImage(volume, { sizeBytes: BigInt(2 * MIB), thick: false }, bench.nextFence(), soon());
        await bench.write(volume, 100, 1, 300);
        const found = await bench.expectTold(await bench.snapshot(volume), target);
        expect(coalesced(found)).toEqual([at(100, 156, 1)]);
      });

      it('is told between a snapshot and one of its clone', async () => {
        const volume = await bench.volume('origin', 4 * MIB);
        const base = await bench.snapshot(volume);
        const clone = await bench.make({ kind: 'copy', source: base, sizeBytes: BigInt(8 * MIB), thick: false });
        await bench.write(clone, 1_500, 9);
        expect(coalesced(await bench.expectTold(base, await bench.snapshot(clone)))).toEqual([at(1_500)]);
      });

      it('of what is reserved and never written is told by its zeros', async () => {
        const volume = await bench.make({ kind: 'empty', sizeBytes: BigInt(4 * MIB), thick: true });
        const base = await bench.snapshot(volume);
        await bench.write(volume, 3, 1);
        const target = await bench.snapshot(volume);
        await bench.expectTold(base, target);
        await bench.expectTold(await bench.snapshot(await bench.empty(4 * MIB)), base);
      });
    });

    describe('many ranges', () => {
      const BLOCKS = 9_000;
      let kept: ExtentBench;
      let base: ImageRef;
      let target: ImageRef;
      let size: number;

      /** More extents than fit into a window, and every third one changed. */
      beforeAll(async () => {
        kept = new ExtentBench(harness);
        const volume = await kept.empty(2 * BLOCKS * BLOCK + 512);
        const fill = async (mark: number, step: number): Promise<void> => {
          for (let block = 0; block < BLOCKS; block += step) await kept.write(volume, 2 * block, mark);
        };
        await fill(1, 1);
        base = await kept.snapshot(volume);
        await fill(2, 3);
        await harness.punch(volume, 1_000 * BLOCK, 3_000 * BLOCK);
        target = await kept.snapshot(volume);
        size = await kept.size(target);
      });
      afterAll(() => kept?.clean());

      it('are told from any offset on as from zero', async () => {
        const [data, changes] = [await bench.allocated(target), await bench.expectTold(base, target)];
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
          expect(coalesced(await bench.allocated(target, from), from), `data from ${from}`).toEqual(
            coalesced(data, from),
          );
          expect(coalesced(await bench.changed(base, target, from), from), `changes from ${from}`).toEqual(
            coalesced(changes, from),
          );
        }
        expect(await bench.allocated(target, size)).toEqual([]);
      });

      it('come as they are pulled, and whoever leaves leaves nothing open', async () => {
        for (const batches of [extents.allocated(target, 0, soon()), extents.changed(base, target, 0, soon())]) {
          let ranges = 0;
          for await (const { count } of batches) {
            ranges = count;
            expect(await harness.openFiles()).toBeGreaterThan(0);
            break;
          }
          expect(ranges).toBeGreaterThan(0);
          expect(ranges).toBeLessThan(7_000);
          expect(await harness.openFiles()).toBe(0);
        }
      });

      it('are batches that may be kept', async () => {
        const batches: RangeBatch[] = [];
        for await (const batch of extents.changed(base, target, 0, soon())) batches.push(batch);
        const again = async function* () {
          yield* batches;
        };
        expect(await collect(again(), size)).toEqual(await bench.changed(base, target));
        expect(batches.length).toBeGreaterThan(1);
      });

      it('end with the reason of the signal, whether they are pulled or not', async () => {
        for (const pulled of [true, false]) {
          for (const ask of [
            (signal: AbortSignal) => extents.allocated(target, 0, signal),
            (signal: AbortSignal) => extents.changed(base, target, 0, signal),
          ]) {
            const controller = new AbortController();
            const reason = new Error('the client left');
            const stream = ask(controller.signal)[Symbol.asyncIterator]();
            expect((await stream.next()).done).toBe(false);
            const next = pulled ? stream.next() : undefined;
            controller.abort(reason);
            if (next) await expect(next).rejects.toBe(reason);
            await expect.poll(() => harness.openFiles()).toBe(0);
            if (!next) await expect(stream.next()).rejects.toBe(reason);
          }
        }
      });

      it('are told to the end when the images are removed meanwhile', async () => {
        const whole = await bench.changed(base, target);
        const copies = [await bench.snapshot(base), await bench.snapshot(target)] as const;
        const stream = extents.changed(...copies, 0, soon());
        const removing = async function* () {
          let isFirst = true;
          for await (const batch of stream) {
            yield batch;
            if (!isFirst) continue;
            isFirst = false;
            for (const image of copies) await bench.backend.removeImage(image, bench.nextFence(), soon());
          }
        };
        expect(coalesced(await collect(removing(), size))).toEqual(coalesced(whole));
      });
    });

    describe('what cannot be known', () => {
      it.each(eachWay)('ends what is %s with the reason of a signal that had fired', async (_, ask) => {
        const taken = await bench.snapshot(await bench.volume('x'));
        const reason = new Error('gone before');
        await expect(collect(ask(extents, taken, AbortSignal.abort(reason)), MIB)).rejects.toBe(reason);
        await expect(extents.methodOf(harness.pool, AbortSignal.abort(reason))).rejects.toBe(reason);
      });

      it.each(eachWay)('of what is %s of a missing image is not found', async (_, ask) => {
        await failsWith(collect(ask(extents, bench.image('snapshot'), soon()), MIB), 'not_found', /missing/);
      });

      it('of a missing base or target is not found', async () => {
        const taken = await bench.snapshot(await bench.volume('x'));
        const missing = bench.image('snapshot');
        await failsWith(collect(extents.changed(taken, missing, 0, soon()), MIB), 'not_found', /missing/);
        await failsWith(collect(extents.changed(missing, taken, 0, soon()), MIB), 'not_found', /missing/);
      });

      it.each(eachWay)('of what is %s of an image that may be written to is a precondition', async (_, ask) => {
        const volume = await bench.volume('x');
        await failsWith(collect(ask(extents, volume, soon()), MIB), 'failed_precondition', /written/);
      });

      it('between two pools is a precondition', async () => {
        const taken = await bench.snapshot(await bench.volume('x'));
        await bench.backend.preparePool(harness.freshPool, soon());
        const there = { ...bench.image('snapshot'), pool: harness.freshPool };
        bench.made.push(there);
        const stage = bench.stageRef(there);
        await bench.backend.stage(stage, { kind: 'empty', sizeBytes: BigInt(MIB), thick: false }, soon());
        await bench.backend.commit(stage, there, { readOnly: true }, soon());
        for (const [base, target] of [
          [taken, there],
          [there, taken],
        ] as const)
          await failsWith(
            collect(extents.changed(base, target, 0, soon()), MIB),
            'failed_precondition',
            /one file system/,
          );
      });

      it.each(eachWay)('of what is %s in a pool that is down, or is not ours, is unavailable', async (_, ask) => {
        const taken = await bench.snapshot(await bench.volume('x'));
        const inDownPool = { ...taken, pool: harness.downPool };
        for (const of of [extents, harness.unusableExtents]) {
          await failsWith(collect(ask(of, inDownPool, soon()), MIB), 'unavailable', /down/);
          await failsWith(of.methodOf(harness.downPool, soon()), 'unavailable', /down/);
        }
        await failsWith(collect(ask(harness.otherTenantExtents, taken, soon()), MIB), 'unavailable', /tenant/);
      });
    });
  });
}
