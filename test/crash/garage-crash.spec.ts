import { PutObjectCommand } from '@aws-sdk/client-s3';
import { describeStoreKills, s3KeysOf } from '#test/crash/describe-store-kills';
import { openGarageHarness } from '#test/object-backend/garage-harness';

describeStoreKills('Garage', {
  open: openGarageHarness,
  appliance: ({ parts }) => ({ backend: 'garage', store: parts }),
  protocol: 'S3',
  ...(process.env.TRIVET_TEST_GARAGE ? {} : { isStandIn: true as const }),
  changes: {
    'bucket.create': ['createBucket', 'configureBucket'],
    'access.grant': ['putPrincipal', 'putGrants'],
    'access.rotate': ['putPrincipal'],
    'access.retire': ['putPrincipal'],
    'access.revoke': ['removeKey', 'putGrants', 'removePrincipal'],
    'bucket.delete': ['emptyBucket', 'deleteBucket'],
  },
  keyOf: credentials => s3KeysOf(credentials).accessKeyId,
  writeAs: (store, credentials, Bucket) =>
    store.clientFor(s3KeysOf(credentials)).send(new PutObjectCommand({ Bucket, Key: 'mine', Body: 'x' })),
});
