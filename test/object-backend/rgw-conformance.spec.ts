import { describe } from 'vitest';
import { describeObjectBackend } from '#backends/conformance/object-backend.conformance';
import { openRgwHarness, rgwParts } from '#test/object-backend/rgw-harness';

const parts = rgwParts();

describe.skipIf(!parts)('rgw', () => {
  describeObjectBackend('rgw', () => openRgwHarness(parts!));
  describeObjectBackend('rgw inside an RGW tenant', () => openRgwHarness(parts!, 'blue'));
});
