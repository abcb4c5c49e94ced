import { MAX_MEMBERS } from '#backends/gcs/bucket-policy';
import {
  type GcsConfig,
  gcsConfig,
  gcsCredentials,
  parseGcsConfig,
  parseGcsCredentials,
} from '#backends/gcs/gcs-config';
import { GCS_TRAITS, GcsObjectBackend } from '#backends/gcs/gcs-object-backend';
import { checkGcsBucketName, parseGcsBucketParameters } from '#backends/gcs/gcs-parameters';
import { keylessEmail } from '#backends/gcs/service-accounts';
import type { ApplianceIdentity, BackendCredentials, ObjectBackendKind } from '#backends/object-backend';

/**
 * Google Cloud Storage; held against a stand-in that answers as its public description says. S3 comes first: it is what sidecars
 * of v1alpha1, which know no other credentials of it, are given.
 */
export const gcsKind: ObjectBackendKind<GcsConfig> = {
  kind: 'gcs',
  protocols: ['s3', 'gcs'],
  checkBucketName: checkGcsBucketName,
  parseBucketParameters: parseGcsBucketParameters,
  policyBytes: (_, { read_write, read_only, write_only }) => read_write + read_only + write_only,
  maxPolicyBytes: MAX_MEMBERS,
  policyUnit: 'members of a policy',
  traits: GCS_TRAITS,
  parseConfig: parseGcsConfig,
  accessPoint: ({ endpoint, publicEndpoint, project, workloadIdentityPool }) => ({
    endpoint: publicEndpoint ?? endpoint,
    region: 'auto',
    addressing: 'path',
    project,
    // By a token of Google's, which S3 does not know.
    serviceAccounts:
      workloadIdentityPool === undefined ? undefined : { protocol: 'gcs', nameOf: uid => keylessEmail(project, uid) },
  }),
  registration: {
    config: gcsConfig,
    credentials: gcsCredentials as never,
    fixed: ['project'],
    keyless: ['workloadIdentityPool'],
    addresses: ({ endpoint, iamEndpoint, resourceManagerEndpoint }) => ({
      endpoint,
      iamEndpoint,
      resourceManagerEndpoint,
    }),
    capabilities: ({ workloadIdentityPool }) => ({
      protocols: ['s3', 'gcs'],
      versioning: true,
      objectLock: false,
      bucketQuota: false,
      tenantQuota: false,
      accessesPerBucket: MAX_MEMBERS,
      encryption: true,
      serviceAccounts: workloadIdentityPool !== undefined,
    }),
    // Names of buckets are everybody's there; labels, titles and accounts tell the tenants apart.
    share: config => config,
  },
  open: (config: GcsConfig, credentials: BackendCredentials, owner: ApplianceIdentity) =>
    new GcsObjectBackend(config, parseGcsCredentials(credentials), owner),
};
