import { open } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BlockBackendBench, type BlockBackendHarness, MIB } from '#backends/conformance/block-backend.conformance';
import { EXTENT_SHARED, readExtents } from '#backends/linux/fiemap';

/** On a file system that clones. */
export function describeSharing(setup: () => Promise<BlockBackendHarness>): void {
  describe('a clone', () => {
    let harness: BlockBackendHarness;
    let bench: BlockBackendBench;
    beforeAll(async () => {
      harness = await setup();
      bench = new BlockBackendBench(harness);
    });
    afterAll(async () => {
      await bench.clean();
      await harness.close();
    });

    it.each([
      ['shares blocks with its source', false],
      ['that is thick shares none', true],
    ])('%s', async (_, thick) => {
      const source = await bench.volume('shared', 4 * MIB);
      await harness.write(source, MIB, Buffer.alloc(MIB, 7));
      const clone = await bench.make({ kind: 'copy', source, thick });
      const file = await open(harness.backend.pathOf(clone));
      const { flags, count } = await readExtents(file.fd, { start: 0, maxExtents: 100, sync: true });
      await file.close();
      expect(count).toBeGreaterThan(0);
      expect([...flags].some(flag => (flag & EXTENT_SHARED) !== 0)).toBe(!thick);
    });
  });
}
