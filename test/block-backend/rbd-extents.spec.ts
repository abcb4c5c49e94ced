import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import { MIB } from '#backends/conformance/block-backend.conformance';
import { BLOCK, coalesced, ExtentBench, type Range } from '#backends/conformance/extent-bench';
import { describeExtentHistory } from '#backends/conformance/extent-history.conformance';
import { CephProcess } from '#backends/rbd/ceph-process';
import { rbdConfig } from '#backends/rbd/rbd-config';
import { RbdExtents } from '#backends/rbd/rbd-extents';
import { imageName } from '#backends/rbd/rbd-names';
import { unleased } from '#platform/lease-signal';
import { HISTORIES } from '#test/block-backend/extent-harness';
import { OBJECT_BYTES, OWNER, poolOf, type RbdHarness, rbdHarness, rbdParts } from '#test/block-backend/rbd-harness';

const rbd = rbdParts();
const soon = () => unleased(AbortSignal.timeout(60_000));

describe.skipIf(!rbd)('Ceph', () => {
  describeExtentHistory('rbd', () => rbdHarness(rbd!.configuration), {
    ...HISTORIES,
    runs: Math.min(HISTORIES.runs, 1),
    rounds: 0,
    // Over some objects, in pieces that are large enough to be discarded.
    spread: 24,
    mayBeUnknown: true,
  });
});

/** Where librbd 16 tells less than is so, or something else; each is seen by the data. */
describe.skipIf(!rbd)('ranges of images of Ceph', () => {
  let harness: RbdHarness;
  let bench: ExtentBench;
  beforeAll(async () => {
    harness = await rbdHarness(rbd!.configuration);
    bench = new ExtentBench(harness);
  });
  afterEach(() => bench.clean());
  afterAll(() => harness?.close());

  const objectsOf = (ranges: readonly Range[]) => ranges.map(({ offset }) => Math.floor(offset / OBJECT_BYTES));
  const admin = () => harness.cluster.admin;
  const cloneOf = (source: ImageRef) => bench.make({ kind: 'copy', source, thick: false });
  const grow = (image: ImageRef, sizeBytes: number) =>
    bench.backend.growImage(image, { sizeBytes: BigInt(sizeBytes), thick: false }, bench.nextFence(), soon());

  it('are those of the parents, too (ceph#32403)', async () => {
    const origin = await bench.empty(16 * MIB);
    await bench.write(origin, 0, 1);
    const clone = await cloneOf(await bench.snapshot(origin));
    await bench.write(clone, 2_048, 2);
    const taken = await bench.snapshot(clone);
    await bench.expectTold(taken, taken);
    expect(coalesced(await bench.allocated(taken)).map(({ offset }) => offset)).toEqual([0, 2 * OBJECT_BYTES]);
  });

  it.each([
    ['whole objects', 0, OBJECT_BYTES],
    // Less than 64 KiB is not discarded at all.
    ['the end of one', OBJECT_BYTES - 64 * BLOCK, 64 * BLOCK],
    ['the middle of one', 64 * BLOCK, 64 * BLOCK],
  ])('have what a clone discarded of its parent: %s', async (_, offset, length) => {
    const origin = await bench.empty(12 * MIB);
    await harness.write(origin, 0, Buffer.alloc(12 * MIB, 1));
    const clone = await cloneOf(await bench.snapshot(origin));
    const base = await bench.snapshot(clone);
    await harness.punch(clone, offset, length);
    const target = await bench.snapshot(clone);
    expect(await bench.expectTold(base, target)).not.toEqual([]);
    expect((await harness.read(target, offset, length)).every(byte => byte === 0)).toBe(true);
  });

  it('are not the whole image after a growth (ceph#41657)', async () => {
    const volume = await bench.empty(32 * MIB);
    await harness.write(volume, 0, Buffer.alloc(32 * MIB, 1));
    const base = await bench.snapshot(volume);
    await grow(volume, 64 * MIB);
    await bench.write(volume, 5, 2);
    await bench.write(volume, 10_000, 3);
    const found = await bench.expectTold(base, await bench.snapshot(volume));
    // Of an object that is new, its begin is told, too.
    expect(objectsOf(found)).toEqual([0, 9]);
    expect(found[0]).toEqual({ offset: 5 * BLOCK, end: 6 * BLOCK, hole: 0 });
  });

  it('are at their places, whatever offset is asked from (ceph#44483), and over windows', async () => {
    const { monitors } = harness.cluster;
    const { user, key } = await harness.cluster.makeUser([harness.cephPool]);
    const config = rbdConfig.parse({
      monitors,
      user,
      pools: [poolOf('pool', harness.cephPool)],
      exporter: { kind: 'none' },
    });
    // Two objects at a time.
    const extents = new RbdExtents(config, key, OWNER, 2);
    const windowed = new ExtentBench({ ...harness, extents });
    try {
      const volume = await bench.empty(42 * MIB + 512);
      const base = await bench.snapshot(volume);
      for (const block of [1, 1_030, 4_000, 9_000]) await bench.write(volume, block, 4);
      const target = await bench.snapshot(volume);
      const all = coalesced(await bench.expectTold(base, target));
      expect(objectsOf(all)).toEqual([0, 1, 3, 8]);
      for (const from of [0, 1, BLOCK + 700, 4 * MIB + 1, 4_000 * BLOCK, 4_001 * BLOCK, 40 * MIB, 42 * MIB + 512])
        expect(coalesced(await windowed.changed(base, target, from), from), `from ${from}`).toEqual(
          coalesced(all, from),
        );
      expect(await windowed.allocated(target)).toEqual(await bench.allocated(target));
    } finally {
      extents.close();
    }
  });

  it('are as exact from any offset, whatever a clone holds elsewhere', async () => {
    const origin = await bench.empty(16 * MIB);
    const base = await bench.snapshot(origin);
    await bench.write(origin, 2_500, 1);
    await bench.write(origin, 3_500, 1);
    const clone = await cloneOf(await bench.snapshot(origin));
    await bench.write(clone, 0, 2);
    await bench.write(clone, 3_600, 2);
    const target = await bench.snapshot(clone);
    const all = coalesced(await bench.expectTold(base, target));
    // Of the third object what was written, up to where; the first and the fourth are the clone's.
    expect(all).toEqual([
      { offset: 0, end: OBJECT_BYTES, hole: 0 },
      { offset: 2 * OBJECT_BYTES, end: 2_501 * BLOCK, hole: 0 },
      { offset: 3 * OBJECT_BYTES, end: 4 * OBJECT_BYTES, hole: 0 },
    ]);
    for (const from of [1, OBJECT_BYTES, 2 * OBJECT_BYTES + 512, 3 * OBJECT_BYTES])
      expect(coalesced(await bench.changed(base, target, from), from), `from ${from}`).toEqual(coalesced(all, from));
  });

  describe('whose process librbd took along', () => {
    afterEach(() => vi.restoreAllMocks());

    /** From the first question on: so many processes in a row, each as soon as it is there. */
    function killed(times: number): { pids: Set<number> } {
      const pids = new Set<number>();
      const kill = async (ceph: CephProcess): Promise<void> => {
        while (pids.size < times) {
          const { pid } = ceph;
          if (pid !== undefined && !pids.has(pid)) process.kill(pid, 'SIGKILL');
          if (pid !== undefined) pids.add(pid);
          await setImmediate();
        }
      };
      const { call } = CephProcess.prototype as unknown as { call(...args: unknown[]): Promise<unknown> };
      const spy = vi.spyOn(CephProcess.prototype as unknown as { call: typeof call }, 'call');
      spy.mockImplementation(function (this: unknown, ...args) {
        const answer = call.apply(this, args);
        if (args[1] === 'diff' && pids.size === 0) void kill(this as CephProcess);
        return answer;
      });
      return { pids };
    }

    it('twice, are told all the same', async () => {
      const taken = await written();
      const { pids } = killed(2);
      expect(coalesced(await bench.allocated(taken))).toEqual([{ offset: 0, end: OBJECT_BYTES, hole: 0 }]);
      expect(pids.size).toBe(2);
    });

    it('each time, are not, and what ended it is said', async () => {
      const taken = await written();
      killed(3);
      const failed = await bench.allocated(taken).catch((error: unknown) => error);
      expect(failed).toMatchObject({ kind: 'timeout', cause: { cause: { message: 'ended by SIGKILL' } } });
    });

    async function written(): Promise<ImageRef> {
      const volume = await bench.empty(12 * MIB);
      await bench.write(volume, 0, 1);
      return bench.snapshot(volume);
    }
  });

  it('stay right when somebody flattens the clone, or the volume is deleted', async () => {
    const origin = await bench.empty(16 * MIB);
    await harness.write(origin, 0, Buffer.alloc(9 * MIB, 1));
    const clone = await cloneOf(await bench.snapshot(origin));
    const base = await bench.snapshot(clone);
    await bench.write(clone, 3_000, 2);
    await admin().call(soon(), 'flatten', harness.cephPool, imageName(clone));
    await bench.write(clone, 1_500, 3);
    const target = await bench.snapshot(clone);
    await bench.expectTold(base, target);
    await bench.backend.removeImage(clone, bench.nextFence(), soon());
    await bench.expectTold(base, target);
  });

  it('of a clone whose origin is gone are all that may hold data', async () => {
    const origin = await bench.volume('origin', 8 * MIB);
    const source = await bench.snapshot(origin);
    const clone = await cloneOf(source);
    await bench.backend.removeImage(source, bench.nextFence(), soon());
    const base = await bench.snapshot(clone);
    await bench.write(clone, 1_500, 3);
    const target = await bench.snapshot(clone);
    expect(coalesced(await bench.allocated(target))).toEqual([{ offset: 0, end: 8 * MIB, hole: 0 }]);
    await bench.expectTold(base, target);
  });
});
