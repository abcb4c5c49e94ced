import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ApplianceIdentity, BackendCredentials, ObjectBackendKind } from '#backends/object-backend';
import { checkS3BucketName } from '#backends/s3/bucket-name';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import { policyBytes } from '#backends/s3/bucket-policy';
import { MAX_RIGHTS_BYTES, rightsBytes } from '#backends/s3/user-rights';
import { StorageError } from '#platform/errors';
import { type FakeConfig, fakeConfig } from '#test/fakes/object/fake-config';
import { FAKE_IAM_TRAITS, FakeIamBackend } from '#test/fakes/object/fake-iam-backend';
import { FakeObjectBackend } from '#test/fakes/object/fake-object-backend';
import { FAKE_SIGNING_TRAITS, FakeSigningBackend } from '#test/fakes/object/fake-signing-backend';

const MAX_POLICY_BYTES = 360 * 1024;

/** Accepts what RGW accepts, so that tests of bad input mean the same on both. */
export const fakeKind: ObjectBackendKind<FakeConfig> = {
  kind: 'fake',
  protocols: ['s3'],
  checkBucketName: checkS3BucketName,
  parseBucketParameters: parseS3BucketParameters,
  policyBytes,
  maxPolicyBytes: MAX_POLICY_BYTES,
  parseConfig(row: unknown): FakeConfig {
    const parsed = fakeConfig.safeParse(row);
    if (parsed.success) return parsed.data;
    throw new StorageError('internal', `configuration of the fake backend: ${z.prettifyError(parsed.error)}`);
  },
  accessPoint: ({ endpoint, region }) => ({ endpoint, region, addressing: 'path' }),
  registration: {
    config: fakeConfig,
    credentials: z.strictObject({}),
    fixed: ['file'],
    addresses: () => ({}),
    capabilities: () => ({
      protocols: ['s3'],
      versioning: true,
      objectLock: true,
      bucketQuota: true,
      tenantQuota: true,
    }),
    // A file of its own does for a fake what an RGW tenant does for RGW.
    share: (parsed, { tenant, before }) => before ?? { ...parsed, file: `${parsed.file}.${digest(tenant.id)}` },
  },
  open: (parsed: FakeConfig, _credentials: BackendCredentials, owner: ApplianceIdentity) =>
    new FakeObjectBackend(parsed, owner, MAX_POLICY_BYTES),
};

/** The same store with issued keys and rights of users, as S3 with IAM has them. */
export const fakeIamKind: ObjectBackendKind<FakeConfig> = {
  ...fakeKind,
  kind: 'fake-iam',
  policyBytes: () => 0,
  maxPolicyBytes: 0,
  rightsBytes,
  maxRightsBytes: MAX_RIGHTS_BYTES,
  traits: FAKE_IAM_TRAITS,
  accessPoint: config => ({
    ...fakeKind.accessPoint(config),
    serviceAccounts: { protocol: 's3', nameOf: uid => `fake:role/${uid}` },
  }),
  open: (parsed: FakeConfig, _credentials: BackendCredentials, owner: ApplianceIdentity) =>
    new FakeIamBackend(parsed, owner, 0),
};

/** The same store with signatures under names, as Azure Blob has them. */
export const fakeSigningKind: ObjectBackendKind<FakeConfig> = {
  ...fakeKind,
  kind: 'fake-signing',
  traits: FAKE_SIGNING_TRAITS,
  open: (parsed: FakeConfig, _credentials: BackendCredentials, owner: ApplianceIdentity) =>
    new FakeSigningBackend(parsed, owner, MAX_POLICY_BYTES),
};

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12);
