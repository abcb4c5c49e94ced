import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BlockStore, ImageRef } from '#backends/block-backend';
import { failsWith, MIB } from '#backends/conformance/block-backend.conformance';
import { BLOCK, collect, ExtentBench, type ExtentSourceHarness } from '#backends/conformance/extent-bench';
import { describeExtentSource } from '#backends/conformance/extent-source.conformance';
import type { ExtentSource } from '#backends/extent-source';
import { extentHarness } from '#test/block-backend/extent-harness';
import { ownFolder, xfsFolder } from '#test/block-backend/file-harness';
import { FakeBlockControl } from '#test/fakes/block/fake-block-control';
import { fakeBlockKind } from '#test/fakes/block/fake-block-kind';

const soon = () => AbortSignal.timeout(20_000);
const folder = ownFolder();
const file = join(folder, 'fake.db');
const stores: BlockStore[] = [];
const setup = (): Promise<ExtentSourceHarness> =>
  extentHarness(xfsFolder(), xfsFolder() ? 'extents' : 'compare', (pools, owner) => {
    const store = fakeBlockKind.open(fakeBlockKind.parseConfig({ file, pools }), {}, owner);
    stores.push(store);
    return store;
  });
afterAll(() => {
  for (const store of stores) store.close();
  rmSync(folder, { recursive: true, force: true });
});

describeExtentSource('fake', setup);

describe('the extent source of the fake', () => {
  let harness: ExtentSourceHarness;
  let control: FakeBlockControl;
  let bench: ExtentBench;
  let extents: ExtentSource;

  beforeAll(async () => {
    harness = await setup();
    bench = new ExtentBench(harness);
    extents = harness.extents;
    control = new FakeBlockControl(file);
  });
  afterEach(async () => {
    control.clearFaults();
    await expect.poll(() => harness.openFiles()).toBe(0);
    await bench.clean();
  });
  afterAll(async () => {
    control.close();
    await harness.close();
  });

  describe('has faults', () => {
    let taken: ImageRef;
    const ask = (signal = soon()) => extents.allocated(taken, 0, signal);
    /** How many ranges came before the end, and what the end was. */
    const outcome = async (signal?: AbortSignal, seen: { ranges: number; error?: unknown } = { ranges: 0 }) => {
      try {
        for await (const { count } of ask(signal)) seen.ranges += count;
      } catch (error) {
        seen.error = error;
      }
      return seen;
    };

    /** An image of ten ranges. */
    const take = async (): Promise<void> => {
      const volume = await bench.empty(MIB);
      for (let n = 0; n < 10; n++) await bench.write(volume, 4 * n, 1);
      taken = await bench.snapshot(volume);
    };

    it('that fail before the first range, and in the middle', async () => {
      await take();
      control.addFault({ method: 'extents.allocated', resource: taken.id, mode: 'fail-before', error: 'not_found' });
      expect(await outcome()).toMatchObject({ ranges: 0, error: { kind: 'not_found' } });
      control.addFault({ method: 'extents.*', mode: 'fail-after', error: 'unavailable', count: 2 });
      expect(await outcome()).toMatchObject({ ranges: 5, error: { kind: 'unavailable' } });
      await failsWith(extents.methodOf(harness.pool, soon()), 'unavailable');
      expect(await outcome()).toEqual({ ranges: 10 });
    });

    it('that hang, before the first range and in the middle, until the signal', async () => {
      await take();
      for (const [mode, ranges] of [
        ['hang', 0],
        ['hang-after', 5],
      ] as const) {
        control.addFault({ method: 'extents.allocated', mode });
        const controller = new AbortController();
        const reason = new Error('enough');
        const seen = { ranges: 0 };
        const ended = outcome(controller.signal, seen);
        await expect.poll(() => [openCalls(control), seen.ranges]).toEqual([1, ranges]);
        controller.abort(reason);
        expect(await ended).toEqual({ ranges, error: reason });
      }
    });

    it('by the target of a comparison, and a log of every stream', async () => {
      await take();
      control.clearCalls();
      control.addFault({ method: 'extents.changed', resource: taken.id, mode: 'late' });
      await failsWith(collect(extents.changed(taken, taken, 0, soon()), MIB), 'timeout');
      for await (const _ of ask()) break;
      await outcome();
      const log = control.calls({ method: 'extents.*' }).filter(({ phase }) => phase === 'end');
      expect(log.map(({ method, outcome: end }) => `${method} ${end}`)).toEqual([
        'extents.changed timeout',
        'extents.allocated cancelled',
        'extents.allocated ok',
      ]);
    });
  });

  describe('has images that are a rule', () => {
    const TIB = 2 ** 40;
    const image = (): ImageRef => ({ pool: harness.pool, kind: 'snapshot', id: crypto.randomUUID(), folder: '' });
    const synthetic = (ranges: number, every: number, length: number, capacityBytes: number): ImageRef => {
      const made = image();
      control.synthetic(made.id, { capacityBytes, ranges, every, length });
      return made;
    };

    it('of any size, and without a file', async () => {
      const made = synthetic(3, 32 * TIB, 1_024, 64 * TIB + 512);
      const ranges = [0, 32 * TIB].map(offset => ({ offset, end: offset + 1_024, hole: 0 }));
      ranges.push({ offset: 64 * TIB, end: 64 * TIB + 512, hole: 0 });
      expect(await collect(extents.allocated(made, 0, soon()), 64 * TIB + 512)).toEqual(ranges);
      const base = synthetic(0, 512, 512, 64 * TIB);
      expect(await collect(extents.changed(base, made, 1_024, soon()), 64 * TIB + 512, 1_024)).toEqual(ranges.slice(1));
      expect(await collect(extents.changed(made, made, 0, soon()), 64 * TIB + 512)).toEqual([]);
      await failsWith(collect(extents.changed(image(), made, 0, soon()), MIB), 'failed_precondition', /synthetic/);
    });

    it('from any offset on, as fast at the end as at the beginning', async () => {
      const ranges = 2 ** 36;
      const made = synthetic(ranges, 2 * BLOCK, BLOCK, ranges * 2 * BLOCK);
      const last = (ranges - 1) * 2 * BLOCK;
      for (const [from, offsets] of [
        [last + BLOCK, []],
        [last + BLOCK - 1, [last]],
        [last, [last]],
        [last - BLOCK, [last]],
        [last - BLOCK - 1, [last - 2 * BLOCK, last]],
      ] as const) {
        const found = await collect(extents.allocated(made, from, soon()), ranges * 2 * BLOCK, from);
        expect(
          found.map(({ offset }) => offset),
          `from ${last} ${from - last}`,
        ).toEqual(offsets);
      }
    });

    it('and streams a hundred million ranges in bounded memory, with turns for others', async () => {
      const ranges = 100_000_000;
      const made = synthetic(ranges, 2 * BLOCK, BLOCK, 64 * TIB);
      let turns = 0;
      const timer = setInterval(() => turns++, 5);
      const before = process.memoryUsage().rss;
      let [count, last, peak] = [0, -1, 0];
      for await (const batch of extents.allocated(made, 0, AbortSignal.timeout(60_000))) {
        if (batch.offsets[0]! <= last) throw new Error(`${batch.offsets[0]} after ${last}`);
        last = batch.offsets[batch.count - 1]!;
        count += batch.count;
        if (count % (1_000 * batch.count) === 0) peak = Math.max(peak, process.memoryUsage().rss);
      }
      clearInterval(timer);
      expect([count, last]).toEqual([ranges, (ranges - 1) * 2 * BLOCK]);
      expect(turns).toBeGreaterThan(3);
      expect(peak - before).toBeLessThan(128 * MIB);
    });

    it('whose rule makes sense', () => {
      for (const [every, length] of [
        [512, 1_024],
        [1_000, 512],
        [4_096, 0],
      ] as const)
        expect(() => synthetic(1, every, length, MIB)).toThrow(/sectors/);
    });
  });
});

/** Streams that began and have not ended. */
function openCalls(control: FakeBlockControl): number {
  const log = control.calls({ method: 'extents.*' });
  const count = (phase: string): number => log.filter(row => row.phase === phase).length;
  return count('begin') - count('end');
}
