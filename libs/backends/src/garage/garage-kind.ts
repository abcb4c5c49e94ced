import {
  type GarageConfig,
  garageConfig,
  garageCredentials,
  parseGarageConfig,
  parseGarageCredentials,
} from '#backends/garage/garage-config';
import { GARAGE_TRAITS, GarageObjectBackend } from '#backends/garage/garage-object-backend';
import { parseGarageBucketParameters } from '#backends/garage/garage-parameters';
import type { ApplianceIdentity, BackendCredentials, ObjectBackendKind } from '#backends/object-backend';
import { checkS3BucketName } from '#backends/s3/bucket-name';

/** Garage 2; held against a stand-in that answers as its source says, and against the program where there is one. */
export const garageKind: ObjectBackendKind<GarageConfig> = {
  kind: 'garage',
  protocols: ['s3'],
  checkBucketName: checkS3BucketName,
  parseBucketParameters: parseGarageBucketParameters,
  // Rights are rows of bucket and key, without a bound.
  policyBytes: () => 0,
  maxPolicyBytes: 0,
  traits: GARAGE_TRAITS,
  parseConfig: parseGarageConfig,
  accessPoint: ({ endpoint, publicEndpoint, region, addressing }) => ({
    endpoint: publicEndpoint ?? endpoint,
    region,
    addressing,
  }),
  registration: {
    config: garageConfig,
    credentials: garageCredentials,
    fixed: ['region'],
    addresses: ({ adminEndpoint, endpoint }) => ({ adminEndpoint, endpoint }),
    capabilities: () => ({
      protocols: ['s3'],
      versioning: false,
      objectLock: false,
      bucketQuota: true,
      tenantQuota: false,
      writeOnly: false,
    }),
    // Names of buckets are everybody's there; marks and names of keys tell the tenants apart.
    share: config => config,
  },
  open: (config: GarageConfig, credentials: BackendCredentials, owner: ApplianceIdentity) =>
    new GarageObjectBackend(config, parseGarageCredentials(credentials), owner),
};
