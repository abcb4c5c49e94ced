import { randomBytes } from 'node:crypto';
import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { LauncherError } from '../home.js';
import { DemoCosiClient } from './cosi-client.js';
import { Steps } from './steps.js';

const S3 = { type: 'S3' };
const KEY = { type: 'KEY' };
const OBJECT = 'hello.txt';
const TEXT = 'written with credentials from COSI\n';

interface Granted {
  account_id: string;
  buckets: { bucket_id: string; bucket_info: { s3: { bucket_id: string; endpoint: string; region: string } } }[];
  credentials: { s3: { access_key_id: string; access_secret_key: string } };
}

/**
 * The main job with real clients: a bucket over COSI, credentials for it, the stock AWS SDK with them, and everything
 * taken back. Removes what it made, also when a step fails.
 */
export async function runMainJob(endpoint: string, say: (line: string) => void): Promise<void> {
  const cosi = new DemoCosiClient(endpoint);
  const name = `demo-${randomBytes(4).toString('hex')}`;
  const steps = new Steps(say);
  const { step } = steps;
  try {
    const info = await cosi.call<{ name: string }>('DriverGetInfo', {});
    say(`${info.name} at ${endpoint}`);
    const bucket = await step(`bucket ${name} is created`, () =>
      cosi.call<{ bucket_id: string }>('DriverCreateBucket', { name, protocols: [S3] }),
    );
    steps.later(`bucket ${name} is deleted`, () => cosi.call('DriverDeleteBucket', { bucket_id: bucket.bucket_id }));
    const writer = await step('writer gets READ_WRITE', () =>
      grant(cosi, `${name}-writer`, bucket.bucket_id, 'READ_WRITE'),
    );
    const revokeWriter = steps.later("writer's access is revoked", () => revoke(cosi, writer, bucket.bucket_id));
    await step('a repeat answers with the same key', async () => {
      const again = await grant(cosi, `${name}-writer`, bucket.bucket_id, 'READ_WRITE');
      if (again.credentials.s3.access_secret_key === writer.credentials.s3.access_secret_key) return;
      throw new LauncherError('a repeated grant answered with another key');
    });
    const reader = await step('reader gets READ_ONLY', () =>
      grant(cosi, `${name}-reader`, bucket.bucket_id, 'READ_ONLY'),
    );
    steps.later("reader's access is revoked", () => revoke(cosi, reader, bucket.bucket_id));

    const [asWriter, asReader] = [s3Of(writer), s3Of(reader)];
    const put = { Bucket: name, Key: OBJECT, Body: TEXT };
    await step(`writer puts ${OBJECT}`, () => asWriter.send(new PutObjectCommand(put)));
    const read = await step(`reader gets ${OBJECT}`, async () => {
      const { Body } = await asReader.send(new GetObjectCommand({ Bucket: name, Key: OBJECT }));
      return Body?.transformToString();
    });
    if (read !== TEXT) throw new LauncherError('the reader got something else than the writer wrote');
    await step('reader may not put', () => refused(asReader.send(new PutObjectCommand(put)), 'AccessDenied'));
    await step(`writer deletes ${OBJECT}`, () => asWriter.send(new DeleteObjectCommand({ Bucket: name, Key: OBJECT })));
    await revokeWriter();
    await step('writer is refused', () => refused(asWriter.send(new PutObjectCommand(put)), 'InvalidAccessKeyId'));
    await steps.takeBack();
  } finally {
    await steps.abandon();
    cosi.close();
  }
}

function grant(cosi: DemoCosiClient, account: string, bucketId: string, mode: string): Promise<Granted> {
  return cosi.call<Granted>('DriverGrantBucketAccess', {
    account_name: account,
    protocol: S3,
    authentication_type: KEY,
    buckets: [{ bucket_id: bucketId, access_mode: { mode } }],
  });
}

function revoke(cosi: DemoCosiClient, granted: Granted, bucketId: string): Promise<unknown> {
  return cosi.call('DriverRevokeBucketAccess', {
    account_id: granted.account_id,
    protocol: S3,
    authentication_type: KEY,
    buckets: [{ bucket_id: bucketId }],
  });
}

function s3Of(granted: Granted): S3Client {
  const info = granted.buckets[0]?.bucket_info.s3;
  if (info === undefined) throw new LauncherError('the grant names no bucket');
  return new S3Client({
    endpoint: info.endpoint,
    region: info.region,
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    credentials: {
      accessKeyId: granted.credentials.s3.access_key_id,
      secretAccessKey: granted.credentials.s3.access_secret_key,
    },
  });
}

async function refused(call: Promise<unknown>, code: string): Promise<void> {
  const outcome = await call.then(
    () => 'was allowed',
    (error: Error) => error.name,
  );
  if (outcome !== code) throw new LauncherError(`expected ${code}, but the call ${outcome}`);
}
