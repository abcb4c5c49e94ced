/** An extent source against long histories of volumes: whatever was done to them, the data decide. */
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import { BLOCK, coalesced, ExtentBench, type ExtentSourceHarness } from '#backends/conformance/extent-bench';
import { isStorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';

/** Where nothing is shared, no address deceives; and each snapshot is a copy. */
const COPYING_ROUNDS = 5;
const SECTOR = 512;
const FIRST_BLOCKS = 96;
const soon = () => unleased(AbortSignal.timeout(60_000));

type Step =
  | { kind: 'write' | 'rewrite' | 'punch' | 'zero'; volume: number; at: number; sectors: number; mark: number }
  | { kind: 'grow'; volume: number; sectors: number }
  | { kind: 'snapshot'; volume: number }
  | { kind: 'clone' | 'remove'; snapshot: number };

const place = { volume: fc.nat(2), at: fc.nat(FIRST_BLOCKS * 8 - 1), sectors: fc.integer({ min: 1, max: 80 }) };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('write' as const), ...place, mark: fc.nat(255) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constantFrom('rewrite', 'punch', 'zero'), ...place, mark: fc.constant(0) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('grow' as const),
      volume: fc.nat(2),
      sectors: fc.integer({ min: 1, max: 300 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('snapshot' as const), volume: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('clone', 'remove'), snapshot: fc.nat(5) }) },
);

export interface Histories {
  runs: number;
  /** A failure prints it. */
  seed: number;
  /** Of writing and forgetting in one volume, where addresses may deceive; 0 where there are none. */
  rounds: number;
  /** By how much offsets and lengths are larger, where the units of the pool are; 1 when absent. */
  spread?: number;
  /** Images of different volumes may not be comparable: `failed_precondition`. */
  mayBeUnknown?: boolean;
}

export function describeExtentHistory(
  name: string,
  setup: () => Promise<ExtentSourceHarness>,
  { runs, seed, rounds: sharingRounds, spread = 1, mayBeUnknown = false }: Histories,
): void {
  describe(`extent source over time: ${name}`, () => {
    let harness: ExtentSourceHarness;
    let bench: ExtentBench;

    beforeAll(async () => {
      harness = await setup();
      bench = new ExtentBench(harness);
    });
    afterEach(() => bench.clean());
    afterAll(() => harness?.close());

    const isCopying = (): boolean => harness.method === 'compare';

    /** Undefined where it cannot be known, and may not. */
    const unlessUnknown = <T>(told: Promise<T>): Promise<T | undefined> =>
      told.catch(error => {
        if (mayBeUnknown && isStorageError(error) && error.kind === 'failed_precondition') return undefined;
        throw error;
      });

    class History {
      readonly volumes: ImageRef[] = [];
      snapshots: ImageRef[] = [];

      async run(steps: readonly Step[], from: number): Promise<void> {
        this.volumes.push(await bench.empty(FIRST_BLOCKS * BLOCK * spread));
        for (const one of steps) await this.do(one);
        for (const volume of this.volumes) this.snapshots.push(await bench.snapshot(volume));
        for (const base of this.snapshots)
          for (const target of this.snapshots) {
            const whole = await unlessUnknown(bench.expectTold(base, target));
            if (!whole) {
              expect(base).not.toBe(target);
              continue;
            }
            const start = from % ((await bench.size(target)) + 1);
            const rest = await bench.expectTold(base, target, start);
            expect(coalesced(rest, start)).toEqual(coalesced(whole, start));
          }
        expect(await harness.openFiles()).toBe(0);
      }

      private async do(one: Step): Promise<void> {
        switch (one.kind) {
          case 'write':
          case 'zero':
          case 'rewrite':
          case 'punch': {
            const volume = this.volumes[one.volume % this.volumes.length]!;
            const offset = one.at * SECTOR * spread;
            const length = Math.min(one.sectors * SECTOR * spread, (await bench.size(volume)) - offset);
            if (one.kind === 'punch') return harness.punch(volume, offset, length);
            const data =
              one.kind === 'rewrite'
                ? await harness.read(volume, offset, length)
                : Buffer.alloc(length, one.kind === 'zero' ? 0 : one.mark);
            return harness.write(volume, offset, data);
          }
          case 'grow': {
            const volume = this.volumes[one.volume % this.volumes.length]!;
            const sizeBytes = BigInt((await bench.size(volume)) + one.sectors * SECTOR * spread);
            return bench.backend.growImage(volume, { sizeBytes, thick: false }, bench.nextFence(), soon());
          }
          case 'snapshot': {
            const taken = await bench.snapshot(this.volumes[one.volume % this.volumes.length]!);
            const before = this.snapshots.at(-1);
            this.snapshots.push(taken);
            if (before) await unlessUnknown(bench.expectTold(before, taken));
            return;
          }
          case 'clone': {
            const source = this.snapshots[one.snapshot % this.snapshots.length];
            if (!source || this.volumes.length === 3) return;
            this.volumes.push(await bench.make({ kind: 'copy', source, thick: false }));
            return;
          }
          case 'remove': {
            const gone = this.snapshots[one.snapshot % this.snapshots.length];
            if (!gone) return;
            this.snapshots = this.snapshots.filter(kept => kept !== gone);
            return bench.backend.removeImage(gone, bench.nextFence(), soon());
          }
        }
      }
    }

    it('agrees with the data after writes, discards, rewrites, growth, clones and removals', async () => {
      const history = fc.tuple(fc.array(step, { minLength: 15, maxLength: 30, size: 'max' }), fc.nat());
      await fc.assert(
        fc.asyncProperty(history, async ([steps, from]) => {
          try {
            await new History().run(steps, from);
          } finally {
            await bench.clean();
          }
        }),
        { seed, numRuns: runs, endOnFailure: true },
      );
    }, 180_000);

    it.skipIf(sharingRounds === 0)('is not deceived by blocks that are used again', async () => {
      const volume = await bench.empty(2_048 * BLOCK);
      await bench.write(volume, 0, 1, 1_024);
      let base = await bench.snapshot(volume);
      let state = 7;
      const next = (below: number): number => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        return Math.floor(state / 65_536) % below;
      };
      const rounds = isCopying() ? COPYING_ROUNDS : sharingRounds;
      for (let round = 2; round < rounds + 2; round++) {
        const written = new Set(Array.from({ length: 12 }, () => next(2_048)));
        for (const block of written) await bench.write(volume, block, round);
        const target = await bench.snapshot(volume);
        const changed = await bench.expectTold(base, target);
        const blocks = coalesced(changed).reduce((sum, { offset, end }) => sum + (end - offset) / BLOCK, 0);
        expect(blocks, `round ${round}`).toBe(written.size);
        await bench.backend.removeImage(base, bench.nextFence(), soon());
        base = target;
      }
    });
  });
}
