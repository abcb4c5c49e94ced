import { createHash } from 'node:crypto';
import type { ApplianceIdentity, BackendCredentials, ObjectBackendKind } from '#backends/object-backend';
import { checkS3BucketName } from '#backends/s3/bucket-name';
import { roleDoor } from '#backends/s3/iam-roles';
import {
  parseS3Config,
  parseS3Credentials,
  placesOf,
  type S3Config,
  s3Config,
  s3Credentials,
} from '#backends/s3/s3-config';
import { S3_TRAITS, S3ObjectBackend } from '#backends/s3/s3-object-backend';
import { parseIamBucketParameters } from '#backends/s3/s3-parameters';
import { MAX_RIGHTS_BYTES, rightsBytes } from '#backends/s3/user-rights';

/** S3 and IAM of AWS, and what speaks both; seen on moto 5.2. */
export const s3Kind: ObjectBackendKind<S3Config> = {
  kind: 's3',
  protocols: ['s3'],
  checkBucketName: checkS3BucketName,
  parseBucketParameters: parseIamBucketParameters,
  // Nothing of an access is at the bucket.
  policyBytes: () => 0,
  maxPolicyBytes: 0,
  rightsBytes,
  maxRightsBytes: MAX_RIGHTS_BYTES,
  traits: S3_TRAITS,
  parseConfig: parseS3Config,
  accessPoint: config => ({
    endpoint: config.publicEndpoint ?? placesOf(config).s3,
    region: config.region,
    addressing: config.addressing,
    serviceAccounts: config.oidcProvider === undefined ? undefined : roleDoor(config.oidcProvider, config),
  }),
  registration: {
    config: s3Config,
    credentials: s3Credentials as never,
    fixed: ['userPath', 'region'],
    keyless: ['oidcProvider', 'oidcAudience'],
    addresses: config => {
      const { s3, iam, sts } = placesOf(config);
      return { endpoint: s3, iamEndpoint: iam, ...(config.roleArn === undefined ? {} : { stsEndpoint: sts }) };
    },
    capabilities: ({ oidcProvider }) => ({
      protocols: ['s3'],
      versioning: true,
      objectLock: true,
      bucketQuota: false,
      tenantQuota: false,
      encryption: true,
      serviceAccounts: oidcProvider !== undefined,
    }),
    // Names of buckets are everybody's there; users of each tenant have a path of their own.
    share: (config, { applianceId, tenant }) => ({
      ...config,
      userPath: `${config.userPath.slice(0, 100)}${digest(applianceId, tenant.id)}/`,
    }),
  },
  open: (config: S3Config, credentials: BackendCredentials, owner: ApplianceIdentity) =>
    new S3ObjectBackend(config, parseS3Credentials(credentials), owner),
};

const digest = (...parts: string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12);
