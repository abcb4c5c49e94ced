import { PutObjectCommand } from '@aws-sdk/client-s3';
import { describe } from 'vitest';
import { describeStoreKills, s3KeysOf } from '#test/crash/describe-store-kills';
import { openS3Harness, s3Parts } from '#test/object-backend/s3-harness';

const parts = s3Parts();

describe.skipIf(!parts)('s3', () =>
  describeStoreKills('S3 with IAM', {
    open: () => openS3Harness(parts!),
    appliance: () => ({ backend: 's3' }),
    protocol: 'S3',
    isStandIn: true,
    traits: ['issuesKeys', 'late', 'rightsOfPrincipals'],
    changes: {
      'bucket.create': ['createBucket', 'configureBucket'],
      'access.grant': ['putPrincipal', 'putGrants', 'issueKey', 'isInForce'],
      'access.rotate': ['putPrincipal', 'issueKey', 'isInForce'],
      'access.retire': ['putPrincipal', 'isInForce'],
      'access.revoke': ['removeKey', 'putGrants', 'removePrincipal', 'isInForce'],
      'bucket.delete': ['emptyBucket', 'deleteBucket'],
    },
    keyOf: credentials => s3KeysOf(credentials).accessKeyId,
    writeAs: (store, credentials, Bucket) =>
      store.clientFor(s3KeysOf(credentials)).send(new PutObjectCommand({ Bucket, Key: 'mine', Body: 'x' })),
  }),
);
