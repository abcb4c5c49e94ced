/** The sentences of the port for allocated and changed ranges, as tests. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import { failsWith, MIB } from '#backends/conformance/block-backend.conformance';
import {
  BLOCK,
  coalesced,
  collect,
  ExtentBench,
  type ExtentSourceHarness,
  type Range,
} from '#backends/conformance/extent-bench';
import { describeManyRanges } from '#backends/conformance/extent-streams.conformance';
import type { ExtentSource, RangeBatch } from '#backends/extent-source';
import { unleased } from '#platform/lease-signal';

const soon = () => unleased(AbortSignal.timeout(60_000));
const at = (block: number, blocks = 1, hole = 0) => ({ offset: block * BLOCK, end: (block + blocks) * BLOCK, hole });

/** @param piece bytes in which a source tells what it does not know better; nothing beyond those is told */
export function describeExtentSource(name: string, setup: () => Promise<ExtentSourceHarness>, piece = BLOCK): void {
  const isExact = piece === BLOCK;
  const expectRanges = (found: readonly Range[], expected: readonly Range[]): void => {
    const pieceOf = (offset: number): number => Math.floor(offset / piece);
    const reaches = ({ offset, end }: Range): number[] =>
      Array.from({ length: pieceOf(end - 1) - pieceOf(offset) + 1 }, (_, n) => pieceOf(offset) + n);
    if (isExact) expect(coalesced(found)).toEqual(expected);
    else expect([...new Set(found.flatMap(reaches))]).toEqual([...new Set(expected.flatMap(reaches))]);
  };
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
        expectRanges(found, [at(0, 2), at(7), at(16_383)]);
      });

      it('ends with the image, whatever its size', async () => {
        const volume = await bench.empty(2 * MIB + 512);
        await harness.write(volume, 2 * MIB + 100, Buffer.from('the end'));
        const taken = await bench.snapshot(volume);
        expectRanges(await bench.allocated(taken), [{ offset: 2 * MIB, end: 2 * MIB + 512, hole: 0 }]);
        await bench.expectTold(taken, taken);
      });

      it('shrinks by discards', async () => {
        const volume = await bench.empty(MIB);
        await bench.write(volume, 0, 5, 16);
        await harness.punch(volume, 4 * BLOCK, 8 * BLOCK);
        expectRanges(await bench.allocated(await bench.snapshot(volume)), [at(0, 4), at(12, 4)]);
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
        expectRanges(found, [at(0), at(120, 2), at(150), at(170), at(199), at(16_383)]);
      });

      it('is what was discarded, as holes', async () => {
        const volume = await bench.empty(MIB);
        await bench.write(volume, 10, 1, 30);
        const base = await bench.snapshot(volume);
        await harness.punch(volume, 20 * BLOCK, 5 * BLOCK);
        await bench.write(volume, 22, 2);
        await harness.punch(volume, 100 * BLOCK, 5 * BLOCK);
        const found = await bench.expectTold(base, await bench.snapshot(volume));
        expectRanges(found, [at(20, 2, 1), at(22), at(23, 2, 1)]);
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
        expectRanges(found.slice(-1), [at(8_000)]);
        if (isExact)
          expect(found.reduce((sum, { offset, end }) => sum + end - offset, 0)).toBeLessThanOrEqual(3 * BLOCK);
        await bench.expectTold(base, written, MIB + 512);
      });

      it('ends with a shorter target', async () => {
        const volume = await bench.volume('short', MIB);
        const target = await bench.snapshot(volume);
        await bench.backend.growImage(volume, { sizeBytes: BigInt(2 * MIB), thick: false }, bench.nextFence(), soon());
        await bench.write(volume, 100, 1, 300);
        const found = await bench.expectTold(await bench.snapshot(volume), target);
        expectRanges(found, [at(100, 156, 1)]);
      });

      it('is told between a snapshot and one of its clone', async () => {
        const volume = await bench.volume('origin', 4 * MIB);
        const base = await bench.snapshot(volume);
        const clone = await bench.make({ kind: 'copy', source: base, sizeBytes: BigInt(8 * MIB), thick: false });
        await bench.write(clone, 1_500, 9);
        expectRanges(await bench.expectTold(base, await bench.snapshot(clone)), [at(1_500)]);
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

    // A write each, and files that stay open: of pools that are files.
    if (isExact) describeManyRanges(() => bench);

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
            /one (file system|pool)/,
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
