import { describe } from 'vitest';
import { describeObjectBackend } from '#backends/conformance/object-backend.conformance';
import { openS3Harness, s3Parts } from '#test/object-backend/s3-harness';

const parts = s3Parts();

describe.skipIf(!parts)('s3', () => {
  describeObjectBackend('s3', () => openS3Harness(parts!), { namesAlone: true, noQuotas: true, issuesKeys: true });
});
