import { describe } from 'vitest';
import { describeObjectBackend } from '#backends/conformance/object-backend.conformance';
import { azureParts, openAzureHarness } from '#test/object-backend/azure-harness';

const parts = azureParts();

describe.skipIf(!parts)('azure', () => {
  describeObjectBackend('azure', () => openAzureHarness(parts!), {
    signs: true,
    marksAtOnce: true,
    namesAlone: true,
    plainBuckets: true,
  });
});
