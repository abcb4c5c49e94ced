import {
  type AzureConfig,
  azureConfig,
  azureCredentials,
  parseAzureConfig,
  parseAzureCredentials,
} from '#backends/azure/azure-config';
import { checkContainerName } from '#backends/azure/azure-names';
import { AZURE_TRAITS, AzureObjectBackend } from '#backends/azure/azure-object-backend';
import { parseContainerParameters } from '#backends/azure/azure-parameters';
import { MAX_POLICIES } from '#backends/azure/container-policies';
import type { ApplianceIdentity, BackendCredentials, ObjectBackendKind } from '#backends/object-backend';
import { StorageError } from '#platform/errors';

/** Azure Blob, by the key of one storage account; seen on Azurite 3.35. */
export const azureKind: ObjectBackendKind<AzureConfig> = {
  kind: 'azure',
  protocols: ['azure'],
  checkBucketName: checkContainerName,
  parseBucketParameters: parseContainerParameters,
  policyBytes: (_, { read_write, read_only, write_only }) => read_write + read_only + write_only,
  maxPolicyBytes: MAX_POLICIES,
  policyUnit: 'stored access policies',
  bucketsPerAccess: 1,
  traits: AZURE_TRAITS,
  parseConfig: parseAzureConfig,
  accessPoint: ({ endpoint, publicEndpoint, account }) => ({
    endpoint: publicEndpoint ?? endpoint,
    region: '',
    addressing: 'path',
    storageAccount: account,
  }),
  registration: {
    config: azureConfig,
    credentials: azureCredentials,
    fixed: ['account'],
    addresses: ({ endpoint }) => ({ endpoint }),
    capabilities: () => ({
      protocols: ['azure'],
      versioning: false,
      objectLock: false,
      bucketQuota: false,
      tenantQuota: false,
      accessesPerBucket: MAX_POLICIES,
      bucketsPerAccess: 1,
    }),
    share() {
      throw new StorageError(
        'failed_precondition',
        'a storage account has one name space of containers, in which tenants would meet: register an account for each tenant',
        { field: 'share' },
      );
    },
  },
  open: (config: AzureConfig, credentials: BackendCredentials, owner: ApplianceIdentity) =>
    new AzureObjectBackend(config, parseAzureCredentials(credentials), owner),
};
