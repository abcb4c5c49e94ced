import { describe } from 'vitest';
import { describeObjectBackend } from '#backends/conformance/object-backend.conformance';
import { openS3Harness, s3Parts } from '#test/object-backend/s3-harness';

const parts = s3Parts();
const PROVIDER = 'arn:aws:iam::123456789012:oidc-provider/oidc.example.net/id/1';

describe.skipIf(!parts)('s3', () => {
  describeObjectBackend('s3', () => openS3Harness(parts!, { oidcProvider: PROVIDER }), {
    namesAlone: true,
    noQuotas: true,
    issuesKeys: true,
    serviceAccounts: true,
  });
});
