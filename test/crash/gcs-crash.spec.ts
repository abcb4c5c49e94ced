import { PutObjectCommand } from '@aws-sdk/client-s3';
import { describeStoreKills } from '#test/crash/describe-store-kills';
import { gcsKeysOf, openGcsHarness } from '#test/object-backend/gcs-harness';

describeStoreKills('Google Cloud Storage', {
  open: openGcsHarness,
  appliance: ({ parts }) => ({ backend: 'gcs', store: parts }),
  protocol: 'GCS',
  isStandIn: true,
  traits: ['issuesKeys', 'late'],
  changes: {
    'bucket.create': ['createBucket'],
    'access.grant': ['putPrincipal', 'putGrants', 'issueKey', 'isInForce'],
    'access.rotate': ['putPrincipal', 'issueKey', 'isInForce'],
    'access.retire': ['putPrincipal', 'isInForce'],
    'access.revoke': ['removeKey', 'putGrants', 'removePrincipal', 'isInForce'],
    'bucket.delete': ['emptyBucket', 'deleteBucket'],
  },
  keyOf: credentials => gcsKeysOf(credentials).accessKeyId,
  writeAs: (store, credentials, Bucket) =>
    store.clientFor(gcsKeysOf(credentials)).send(new PutObjectCommand({ Bucket, Key: 'mine', Body: 'x' })),
});
