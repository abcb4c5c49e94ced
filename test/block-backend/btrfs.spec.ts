import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BlockBackend, ImageRef } from '#backends/block-backend';
import { describeBlockBackend, MIB } from '#backends/conformance/block-backend.conformance';
import { describeBlockCopies } from '#backends/conformance/block-copies.conformance';
import { BLOCK, coalesced, ExtentBench, type ExtentSourceHarness } from '#backends/conformance/extent-bench';
import { describeExtentHistory } from '#backends/conformance/extent-history.conformance';
import { describeExtentSource } from '#backends/conformance/extent-source.conformance';
import { EXTENT_ENCODED, readExtents } from '#backends/linux/fiemap';
import { isInPlace } from '#backends/linux/inode-flags';
import { unleased } from '#platform/lease-signal';
import { describeOwnFileSystem } from '#test/block-backend/describe-own-file-system';
import { describeSharing } from '#test/block-backend/describe-sharing';
import { extentHarness, HISTORIES } from '#test/block-backend/extent-harness';
import { fileHarness, ownFolder } from '#test/block-backend/file-harness';
import { DiskImage } from '#test/support/disk-image';
import { parts } from '#test/support/parts';

describe.skipIf(!parts().btrfs)('btrfs', () => {
  let folder: string;
  let image: DiskImage | undefined;
  /** What is made in there is `plain`, overwritten in place, or compressed. */
  const below = (kind: 'plain' | 'in-place' | 'compressed'): string => join(folder, 'btrfs', kind);

  beforeAll(() => {
    folder = ownFolder();
    image = new DiskImage(join(folder, 'image'), 'btrfs');
    image.mount(join(folder, 'btrfs'));
    for (const kind of ['plain', 'in-place', 'compressed'] as const) mkdirSync(below(kind));
    execFileSync('chattr', ['+C', below('in-place')]);
    execFileSync('chattr', ['+c', below('compressed')]);
  });
  afterAll(() => {
    image?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const setup = () => fileHarness(below('plain'));
  describeBlockBackend('reflink on btrfs', setup);
  describeBlockCopies('reflink on btrfs', setup);
  describeSharing(setup);

  const extents = () => extentHarness(below('plain'), 'extents');
  describeExtentSource('reflink on btrfs', extents);
  describeExtentHistory('reflink on btrfs', extents, { ...HISTORIES, runs: Math.ceil(HISTORIES.runs / 4), rounds: 10 });

  describe.each([
    ['plain', [false, 0]],
    ['in-place', [true, 0]],
    ['compressed', [false, EXTENT_ENCODED]],
  ] as const)('images that are %s', (kind, expected) => {
    let harness: ExtentSourceHarness;
    let bench: ExtentBench;
    beforeAll(async () => {
      harness = await extentHarness(below(kind), 'extents');
      bench = new ExtentBench(harness);
    });
    afterEach(() => bench.clean());
    afterAll(() => harness?.close());

    const firstExtent = async (image: ImageRef) => {
      const file = await open(harness.backend.pathOf(image));
      try {
        const { physical, flags } = await readExtents(file.fd, { start: 0, maxExtents: 1, sync: true });
        return { address: physical[0]!, encoded: flags[0]! & EXTENT_ENCODED, isInPlace: await isInPlace(file.fd) };
      } finally {
        await file.close();
      }
    };

    it('are marked so', async () => {
      const volume = await bench.empty(MIB);
      await bench.write(volume, 0, 1, 256);
      const { isInPlace: isOverwritten, encoded } = await firstExtent(volume);
      expect([isOverwritten, encoded]).toEqual(expected);
    });

    it('tell what changed while their blocks are written again and again', async () => {
      const volume = await bench.empty(512 * BLOCK);
      await bench.write(volume, 0, 1, 256);
      let base = await bench.snapshot(volume);
      for (let round = 2; round < 8; round++) {
        for (const block of [round, 3 * round, 300 + round]) await bench.write(volume, block, round);
        await harness.punch(volume, 100 * BLOCK, round * BLOCK);
        const target = await bench.snapshot(volume);
        await bench.expectTold(base, target);
        await bench.backend.removeImage(base, bench.nextFence(), unleased(AbortSignal.timeout(10_000)));
        base = target;
      }
    });

    it('tell it after their blocks were moved', async () => {
      const volume = await bench.empty(8 * MIB);
      await bench.write(volume, 0, 1, 1_024);
      const base = await bench.snapshot(volume);
      await bench.write(volume, 7, 2);
      const target = await bench.snapshot(volume);
      const { address } = await firstExtent(base);
      execFileSync('btrfs', ['balance', 'start', '-d', join(folder, 'btrfs')], { stdio: 'ignore' });
      expect((await firstExtent(base)).address).not.toBe(address);
      const found = coalesced(await bench.expectTold(base, target));
      if (kind !== 'compressed') expect(found).toEqual([{ offset: 7 * BLOCK, end: 8 * BLOCK, hole: 0 }]);
    });
  });

  describe('a volume that is overwritten in place, or was not before', () => {
    let harness: Awaited<ReturnType<typeof fileHarness>>;
    let bench: ExtentBench;
    beforeAll(async () => {
      harness = await fileHarness(below('plain'));
      bench = new ExtentBench(harness as ExtentSourceHarness);
    });
    afterEach(() => bench.clean());
    afterAll(() => harness?.close());

    /** What is made from now on, as after a mount with other options. */
    const from = (backend: BlockBackend, flag: '+C' | '-C'): void => {
      const pool = dirname(
        dirname(backend.pathOf({ pool: 'pool', kind: 'volume', id: crypto.randomUUID(), folder: '' })),
      );
      execFileSync('chattr', [flag, join(pool, 'tmp')]);
    };

    it.each(['+C', '-C'] as const)('can be cut in a pool that makes others after chattr %s', async flag => {
      from(harness.backend, flag === '+C' ? '-C' : '+C');
      const volume = await bench.volume('before');
      from(harness.backend, flag);
      const [one, two] = [await bench.snapshot(volume), bench.image('snapshot')];
      const cut = { stage: bench.stageRef(two), source: volume };
      await harness.backend.stageTogether(
        [cut],
        { pids: [], deadlineMs: 10_000 },
        unleased(AbortSignal.timeout(30_000)),
      );
      await harness.backend.commit(cut.stage, two, { readOnly: true }, unleased(AbortSignal.timeout(30_000)));
      await bench.harness.write(volume, 0, Buffer.from('behind'));
      expect([await bench.text(one, 6), await bench.text(two, 6)]).toEqual(['before', 'before']);
    });
  });

  describeOwnFileSystem('btrfs');
});
