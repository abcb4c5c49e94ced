import { describe } from 'vitest';
import { describeStoreKills } from '#test/crash/describe-store-kills';
import { azureParts, openAzureHarness } from '#test/object-backend/azure-harness';

const parts = azureParts();

// A container is marked from its first moment, and there are no keys, but names that signatures stand under.
describe.skipIf(!parts)('azure', () =>
  describeStoreKills('Azure Blob', {
    open: () => openAzureHarness(parts!),
    appliance: () => ({ backend: 'azure' }),
    protocol: 'AZURE',
    traits: ['signs', 'late'],
    changes: {
      'bucket.create': ['createBucket'],
      'access.grant': ['putGrants', 'isInForce'],
      'access.rotate': ['putGrants', 'isInForce'],
      'access.retire': ['putGrants', 'isInForce'],
      'access.revoke': ['putGrants', 'isInForce'],
      'bucket.delete': ['emptyBucket', 'deleteBucket'],
    },
    keyOf: ({ azure }) => new URL(azure.access_token).searchParams.get('si')!,
    keysThere: async (store, account, bucket) =>
      (await store.grants(bucket)).map(({ uid }) => uid).filter(uid => uid.startsWith(account)),
    writeAs: (store, credentials) =>
      store.holder(credentials.azure.access_token).getBlockBlobClient('mine').upload('x', 1),
  }),
);
