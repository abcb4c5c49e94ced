import { PutObjectCommand } from '@aws-sdk/client-s3';
import { describe } from 'vitest';
import { describeStoreKills, s3KeysOf } from '#test/crash/describe-store-kills';
import { openRgwHarness, rgwParts } from '#test/object-backend/rgw-harness';

const parts = rgwParts();

// What else changes something there is met under load (worker-killed-under-load).
describe.skipIf(!parts)('rgw', () =>
  describeStoreKills('RGW', {
    open: () => openRgwHarness(parts!),
    appliance: () => ({ backend: 'rgw' }),
    protocol: 'S3',
    changes: {
      'access.rotate': ['putPrincipal'],
      'access.retire': ['putPrincipal'],
    },
    showsGrants: false,
    keyOf: credentials => s3KeysOf(credentials).accessKeyId,
    writeAs: (store, credentials, Bucket) =>
      store.clientFor(s3KeysOf(credentials)).send(new PutObjectCommand({ Bucket, Key: 'mine', Body: 'x' })),
  }),
);
