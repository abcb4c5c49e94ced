/** Looks at the Blob service by other means than the port: for the conformance suite and the tests of access modes. */
import { randomBytes, randomUUID } from 'node:crypto';
import { BlobServiceClient, ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { azureKind } from '#backends/azure/azure-kind';
import { grantsOf } from '#backends/azure/container-policies';
import type { ObjectBackendHarness } from '#backends/conformance/object-world';
import type { ObjectBackend } from '#backends/object-backend';
import { type Parts, parts } from '#test/support/parts';

export type AzureParts = NonNullable<Parts['azurite']>;

/** Undefined when the test run could not start Azurite. */
export const azureParts = (): AzureParts | undefined => parts().azurite ?? undefined;

export interface AzureHarness extends ObjectBackendHarness {
  service: BlobServiceClient;
  open(tenantId: string): ObjectBackend;
  /** As the holder of a signature has it. */
  holder(token: string): ContainerClient;
}

export async function openAzureHarness({ endpoint, account, accountKey }: AzureParts): Promise<AzureHarness> {
  const run = randomUUID().slice(0, 8);
  const prefix = `parts-${run}-`;
  const open = (tenantId: string, at = endpoint, key = accountKey) =>
    azureKind.open(
      azureKind.parseConfig({ account, endpoint: at }),
      { accountKey: key },
      {
        applianceId: `appliance-${run}`,
        tenantId,
      },
    );
  const service = new BlobServiceClient(endpoint, new StorageSharedKeyCredential(account, accountKey), {
    retryOptions: { maxTries: 1 },
  });
  const container = (name: string) => service.getContainerClient(name);
  const make = async (name: string) => void (await container(name).create());
  const backend = open('default');
  return {
    backend,
    otherTenant: open('other'),
    unreachable: open('default', `http://127.0.0.1:1/${account}`),
    refused: open('default', endpoint, randomBytes(64).toString('base64')),
    prefix,
    service,
    open,
    holder: token => new ContainerClient(token, undefined, { retryOptions: { maxTries: 1 } }),
    seedForeignBucket: make,
    replaceForeignBucket: async name => {
      await container(name).delete();
      await make(name);
    },
    foreignBucketExists: name => container(name).exists(),
    seedObjects: async (name, count) => {
      for (let n = 0; n < count; n++) {
        const text = `object ${n}`;
        await container(name).getBlockBlobClient(`seed/${n}`).upload(text, text.length);
      }
    },
    seedLockedObject: async name => {
      const blob = container(name).getBlockBlobClient('locked/object');
      await blob.upload('locked', 6);
      await blob.getBlobLeaseClient().acquireLease(-1);
      return 'locked/object';
    },
    dropTags: async name => void (await container(name).setMetadata({})),
    bucketSpec: async name => {
      const { metadata = {} } = await container(name).getProperties();
      const tags = Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.startsWith('trivet_')));
      return { versioning: false, tags };
    },
    principalKeys: async () => undefined,
    grants: async name => grantsOf((await container(name).getAccessPolicy()).signedIdentifiers),
    close: async () => {
      for await (const { name } of service.listContainers({ prefix })) await container(name).delete();
      backend.close();
    },
  };
}
