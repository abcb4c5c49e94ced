import { describe } from 'vitest';
import { describeExtentHistory } from '#backends/conformance/extent-history.conformance';
import { describeExtentSource } from '#backends/conformance/extent-source.conformance';
import { extentHarness, HISTORIES } from '#test/block-backend/extent-harness';
import { xfsFolder } from '#test/block-backend/file-harness';

describe.skipIf(!xfsFolder())('XFS', () => {
  const setup = () => extentHarness(xfsFolder(), 'extents');
  describeExtentSource('reflink on XFS', setup);
  describeExtentHistory('reflink on XFS', setup, HISTORIES);
});
