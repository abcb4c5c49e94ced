import { existsSync } from 'node:fs';
import { describe } from 'vitest';
import { describeExtentSource } from '#backends/conformance/extent-source.conformance';
import { extentHarness } from '#test/block-backend/extent-harness';

/** tmpfs has no map of extents, only SEEK_DATA. */
describe.skipIf(!existsSync('/dev/shm'))('memory', () => {
  describeExtentSource('copies in memory', () => extentHarness('/dev/shm', 'compare'));
});
