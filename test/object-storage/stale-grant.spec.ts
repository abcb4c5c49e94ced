import { randomBytes } from 'node:crypto';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readPolicy } from '#backends/rgw/bucket-grants';
import { unleased } from '#platform/lease-signal';
import type { Outcome } from '#test/cosi/client';
import { credentialsOf, Jobs, mustSucceed } from '#test/crash/jobs';
import { openRgwHarness, type RgwHarness, rgwParts } from '#test/object-backend/rgw-harness';
import { TestAppliance } from '#test/support/appliance';
import { StoppedWorkers } from '#test/support/stopped-worker';

let appliance: TestAppliance;
let jobs: Jobs;
/** Looks at the store past the appliance. */
let store: RgwHarness;
const bucket = `stale-${randomBytes(4).toString('hex')}`;
const workers = new StoppedWorkers(() => appliance);

beforeAll(async () => {
  appliance = await TestAppliance.create({
    backend: 'rgw',
    env: { TRIVET_LEASE_MS: '3000', TRIVET_RECONCILE_MS: '150' },
  });
  await appliance.gateway();
  store = await openRgwHarness(rgwParts()!);
  jobs = new Jobs(appliance.client());
});
afterAll(async () => {
  await workers.endOthers();
  await jobs?.delete(bucket);
  await appliance?.close();
  await store?.close();
});

/** As the bucket's owner reads it. */
async function policy(): Promise<string | undefined> {
  const signal = unleased(AbortSignal.timeout(30_000));
  const { owner } = (await store.admin.getBucket(bucket, signal))!;
  const [key] = (await store.principalKeys(owner))!;
  return readPolicy(await store.userOf(store.clientFor(key!)), bucket, signal);
}

const workload = (outcome: Outcome): S3Client => {
  const { accessKeyId, secretAccessKey } = credentialsOf(outcome);
  const { endpoint, region } = outcome.reply.buckets[0].bucket_info.s3;
  return new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
  });
};

// A revocation once waited for a person here, since "somebody else" had changed the bucket: our own stopped worker.
it('a grant that a stopped worker still sends is refused by the store, and the revocation of its successor holds', async () => {
  await workers.running();
  await mustSucceed(() => jobs.create(bucket, { deletePolicy: 'purge' }));
  const kept = await mustSucceed(() => jobs.grant('kept', [[bucket, 'READ_WRITE']]));

  const stale = await workers.stopsAt('rgw.PUT-policy:signed');
  const answer = jobs.grant('app', [[bucket, 'READ_WRITE']]);
  await workers.stopped(stale);
  await workers.start();
  const outcome = await answer;
  const app = workload(outcome);
  await app.send(new PutObjectCommand({ Bucket: bucket, Key: 'a', Body: 'hello' }));
  await mustSucceed(() => jobs.revoke(credentialsOf(outcome).accountId, [bucket]));

  await appliance.settled();
  const before = await policy();

  await workers.goesOn(stale);
  expect(await policy()).toBe(before);
  await expect(app.send(new GetObjectCommand({ Bucket: bucket, Key: 'a' }))).rejects.toMatchObject({
    $metadata: { httpStatusCode: 403 },
  });
  await workload(kept).send(new GetObjectCommand({ Bucket: bucket, Key: 'a' }));
  await mustSucceed(() => jobs.revoke(credentialsOf(kept).accountId, [bucket]));
  const waiting = "SELECT kind, error FROM trivet.operation WHERE state = 'needs_attention'";
  expect(await appliance.database.query(waiting)).toEqual([]);
});
