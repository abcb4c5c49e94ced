/** The sentences of the block port about snapshots, clones and cuts. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BlockBackend, ImageRef } from '#backends/block-backend';
import {
  BlockBackendBench,
  type BlockBackendHarness,
  failsWith,
  MIB,
} from '#backends/conformance/block-backend.conformance';
import { unleased } from '#platform/lease-signal';

const soon = () => unleased(AbortSignal.timeout(60_000));

export function describeBlockCopies(name: string, setup: () => Promise<BlockBackendHarness>): void {
  describe(`copies of a block backend: ${name}`, () => {
    let harness: BlockBackendHarness;
    let bench: BlockBackendBench;
    let backend: BlockBackend;

    beforeAll(async () => {
      harness = await setup();
      bench = new BlockBackendBench(harness);
      backend = harness.backend;
    });
    afterEach(() => bench.clean());
    afterAll(() => harness?.close());

    const snapshot = (source: ImageRef): Promise<ImageRef> =>
      bench.make({ kind: 'copy', source, thick: false }, 'snapshot');

    it('hold what the source held, whatever becomes of it', async () => {
      const volume = await bench.volume('first', 3 * MIB + 512);
      await harness.write(volume, 2 * MIB, Buffer.from('middle'));
      const taken = await snapshot(volume);
      await harness.write(volume, 0, Buffer.from('second'));
      expect(await backend.inspectImage(taken, soon())).toMatchObject({
        state: 'present',
        sizeBytes: BigInt(3 * MIB + 512),
        readOnly: true,
      });
      const clone = await bench.make({ kind: 'copy', source: taken, thick: false });
      expect(await backend.inspectImage(clone, soon())).toMatchObject({ readOnly: false });
      await harness.write(clone, 0, Buffer.from('third'));
      await backend.removeImage(volume, bench.nextFence(), soon());
      expect([await bench.text(taken, 5), await bench.text(clone, 5)]).toEqual(['first', 'third']);
      await backend.removeImage(taken, bench.nextFence(), soon());
      expect((await harness.read(clone, 2 * MIB, 6)).toString()).toBe('middle');
    });

    it('keep holes as holes', async () => {
      const volume = await bench.volume('start', 1024 * MIB);
      await harness.write(volume, 1023 * MIB, Buffer.from('end'));
      const found = await backend.inspectImage(await snapshot(volume), soon());
      expect(found.state === 'present' && found.allocatedBytes).toBeLessThan(BigInt(8 * MIB));
    });

    it('refuse to be changed when they are read-only, and can be removed all the same', async () => {
      const taken = await snapshot(await bench.volume('fixed'));
      await expect(harness.write(taken, 0, Buffer.from('x'))).rejects.toThrow();
      const growth = { sizeBytes: BigInt(2 * MIB), thick: false };
      await failsWith(backend.growImage(taken, growth, bench.nextFence(), soon()), 'failed_precondition', /read-only/);
      expect(await bench.text(taken, 5)).toBe('fixed');
      await backend.removeImage(taken, bench.nextFence(), soon());
      expect(await backend.inspectImage(taken, soon())).toEqual({ state: 'absent' });
    });

    it('grow beyond their source, with zeros, and are never smaller', async () => {
      const volume = await bench.volume('small');
      const larger = await bench.make({ kind: 'copy', source: volume, sizeBytes: BigInt(2 * MIB), thick: false });
      expect(await backend.inspectImage(larger, soon())).toMatchObject({ sizeBytes: BigInt(2 * MIB) });
      expect((await harness.read(larger, MIB, 4_096)).equals(Buffer.alloc(4_096))).toBe(true);
      const image = bench.image();
      const content = { kind: 'copy', source: volume, sizeBytes: 512n, thick: false } as const;
      await failsWith(backend.stage(bench.stageRef(image), content, soon()), 'failed_precondition');
      expect(await bench.temporaries()).toEqual([]);
    });

    it('reserve every block of their own when they are thick', async () => {
      const volume = await bench.volume('shared', 4 * MIB);
      await harness.write(volume, MIB, Buffer.alloc(MIB, 7));
      const thick = await bench.make({ kind: 'copy', source: volume, thick: true });
      const found = await backend.inspectImage(thick, soon());
      expect(found.state === 'present' && found.allocatedBytes).toBeGreaterThanOrEqual(BigInt(4 * MIB));
      expect(await bench.text(thick, 6)).toBe('shared');
      expect((await harness.read(thick, 2 * MIB - 1, 2)).equals(Buffer.from([7, 0]))).toBe(true);
    });

    describe('staged', () => {
      it('may be repeated: the last content before the commit counts', async () => {
        const image = bench.image();
        const stage = bench.stageRef(image);
        await backend.stage(stage, { kind: 'copy', source: await bench.volume('one'), thick: false }, soon());
        await backend.stage(stage, { kind: 'copy', source: await bench.volume('two'), thick: false }, soon());
        expect(await bench.temporaries()).toEqual([image.id]);
        await backend.commit(stage, image, { readOnly: false }, soon());
        expect(await bench.text(image, 3)).toBe('two');
      });

      it('are given their name once: a repeat is fine, and nothing is replaced', async () => {
        const image = await bench.volume('first');
        const stage = bench.stageRef(image);
        await backend.commit(stage, image, { readOnly: false }, soon());
        await backend.stage(stage, { kind: 'empty', sizeBytes: 512n, thick: false }, soon());
        await backend.commit(stage, image, { readOnly: false }, soon());
        expect(await bench.text(image, 5)).toBe('first');
        expect(await bench.temporaries()).toEqual([]);
      });

      it('become read-only by a repeated commit that was cut off before', async () => {
        const image = bench.image('snapshot');
        const stage = bench.stageRef(image);
        await backend.stage(stage, { kind: 'copy', source: await bench.volume('x'), thick: false }, soon());
        await backend.commit(stage, image, { readOnly: false }, soon());
        await backend.commit(stage, image, { readOnly: true }, soon());
        await backend.commit(stage, image, { readOnly: true }, soon());
        expect(await backend.inspectImage(image, soon())).toMatchObject({ readOnly: true });
        await expect(harness.write(image, 0, Buffer.from('y'))).rejects.toThrow();
      });

      it('are discarded for one image, of whatever operation, and for no other', async () => {
        const [image, other] = [bench.image(), bench.image()];
        const content = { kind: 'empty', sizeBytes: 512n, thick: false } as const;
        await backend.stage(bench.stageRef(image), content, soon());
        await backend.stage(bench.stageRef(other), content, soon());
        await backend.stage(bench.stageRef(image), content, soon());
        await backend.discardStages(image, bench.nextFence(), soon());
        await backend.discardStages(image, bench.nextFence(), soon());
        expect(await bench.temporaries()).toEqual([other.id]);
        expect(await backend.inspectImage(image, soon())).toEqual({ state: 'absent' });
      });
    });

    describe('cut together', () => {
      it('are staged for all, and named one by one', async () => {
        const sources = [await bench.volume('a'), await bench.volume('b')];
        const cuts = sources.map(source => {
          const image = bench.image('snapshot');
          return { image, stage: bench.stageRef(image), source };
        });
        const result = await backend.stageTogether(cuts, { pids: [], deadlineMs: 2_000 }, soon());
        expect(result.pausedMs).toBe(0);
        for (const source of sources) await harness.write(source, 0, Buffer.from('z'));
        for (const { stage, image } of cuts) await backend.commit(stage, image, { readOnly: true }, soon());
        expect(await Promise.all(cuts.map(({ image }) => bench.text(image, 1)))).toEqual(['a', 'b']);
        expect(await bench.temporaries()).toEqual([]);
      });

      it('keep nothing when one source is missing', async () => {
        const good = { stage: bench.stageRef(bench.image()), source: await bench.volume('a') };
        const bad = { stage: bench.stageRef(bench.image()), source: bench.image() };
        const cut = backend.stageTogether([good, bad], { pids: [], deadlineMs: 2_000 }, soon());
        await failsWith(cut, 'failed_precondition', /missing/);
        expect(await bench.temporaries()).toEqual([]);
      });
    });

    describe('predicted', () => {
      it('count what a cut would touch, up to the limit', async () => {
        const { extentBytes = MIB } = harness;
        const volume = await bench.make({ kind: 'empty', sizeBytes: BigInt(64 * extentBytes), thick: false });
        expect(await backend.predictCut(volume, 100, soon())).toEqual({ extents: 0, more: false, stallMs: 0 });
        for (let n = 0; n < 40; n++) await harness.write(volume, n * extentBytes, Buffer.alloc(65_536, n + 1));
        const all = await backend.predictCut(volume, 100_000, soon());
        expect(all).toMatchObject({ extents: 40, more: false });
        expect(all.stallMs).toBeGreaterThan(0);
        expect(all.stallMs).toBeLessThan(5_000);
        expect(await backend.predictCut(volume, 10, soon())).toMatchObject({ extents: 10, more: true });
        expect(await backend.predictCut(volume, 40, soon())).toMatchObject({ extents: 40, more: false });
      });
    });
  });
}
