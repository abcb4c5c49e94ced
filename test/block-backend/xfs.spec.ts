import { describe } from 'vitest';
import { describeBlockBackend } from '#backends/conformance/block-backend.conformance';
import { describeBlockCopies } from '#backends/conformance/block-copies.conformance';
import { describeSharing } from '#test/block-backend/describe-sharing';
import { fileHarness, xfsFolder } from '#test/block-backend/file-harness';

describe.skipIf(!xfsFolder())('XFS', () => {
  const setup = () => fileHarness(xfsFolder());
  describeBlockBackend('reflink on XFS', setup);
  describeBlockCopies('reflink on XFS', setup);
  describeSharing(setup);
});
