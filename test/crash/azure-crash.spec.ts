import { describe } from 'vitest';
import { describeStoreKills } from '#test/crash/describe-store-kills';
import { azureParts, openAzureHarness } from '#test/object-backend/azure-harness';

const parts = azureParts();

// A container is marked from its first moment, and there are no keys.
describe.skipIf(!parts)('azure', () =>
  describeStoreKills('Azure Blob', {
    open: () => openAzureHarness(parts!),
    appliance: () => ({ backend: 'azure' }),
    protocol: 'AZURE',
    changes: {
      'bucket.create': ['createBucket'],
      'access.grant': ['putGrants'],
      'access.revoke': ['putGrants'],
      'bucket.delete': ['emptyBucket', 'deleteBucket'],
    },
    writeAs: (store, credentials) =>
      store.holder(credentials.azure.access_token).getBlockBlobClient('mine').upload('x', 1),
  }),
);
