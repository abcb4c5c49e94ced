import type { ApplianceIdentity, BackendCredentials, ObjectBackendKind } from '#backends/object-backend';
import { MAX_POLICY_BYTES } from '#backends/rgw/bucket-grants';
import { parseRgwConfig, parseRgwCredentials, type RgwConfig } from '#backends/rgw/rgw-config';
import { RgwObjectBackend } from '#backends/rgw/rgw-object-backend';
import { rgwRegistration } from '#backends/rgw/rgw-registration';
import { checkS3BucketName } from '#backends/s3/bucket-name';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import { policyBytes } from '#backends/s3/bucket-policy';

/** Ceph RADOS Gateway, seen on 16.2 (Pacific). Credentials: {accessKeyId, secretAccessKey} of its administrator. */
export const rgwKind: ObjectBackendKind<RgwConfig> = {
  kind: 'rgw',
  protocols: ['s3'],
  checkBucketName: checkS3BucketName,
  parseBucketParameters: parseS3BucketParameters,
  policyBytes,
  maxPolicyBytes: MAX_POLICY_BYTES,
  parseConfig: parseRgwConfig,
  accessPoint: config => ({
    endpoint: config.publicEndpoint ?? config.endpoint,
    region: config.region,
    addressing: 'path',
  }),
  registration: rgwRegistration,
  open: (config: RgwConfig, credentials: BackendCredentials, owner: ApplianceIdentity) =>
    new RgwObjectBackend(config, parseRgwCredentials(credentials), owner),
};
