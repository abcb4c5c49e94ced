import { randomUUID } from 'node:crypto';
import {
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectVersionsCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BucketRef } from '#backends/object-backend';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { unleased } from '#platform/lease-signal';
import { openRgwHarness, type RgwHarness, rgwParts } from '#test/object-backend/rgw-harness';

const parts = rgwParts();
const soon = () => unleased(AbortSignal.timeout(60_000));

describe.skipIf(!parts)('emptying a bucket on RGW', () => {
  let harness: RgwHarness;

  beforeAll(async () => {
    harness = await openRgwHarness(parts!);
  });
  afterAll(() => harness.close());

  async function makeBucket(parameters: Record<string, string>): Promise<BucketRef> {
    const spec = rgwKind.parseBucketParameters(parameters);
    const ref = { name: `${harness.prefix}${randomUUID().slice(0, 8)}`, incarnation: randomUUID() };
    await harness.backend.createBucket(ref, spec, soon());
    await harness.backend.configureBucket(ref, spec, soon());
    return ref;
  }
  async function upload(client: S3Client, Bucket: string, Key: string): Promise<void> {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
    await client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: 'part' }));
  }
  async function empty(ref: BucketRef): Promise<number[]> {
    const steps: number[] = [];
    for (;;) {
      const { done, removed } = await harness.backend.emptyBucket(ref, soon());
      steps.push(removed);
      if (done) return steps;
    }
  }

  it('removes versions, markers and uploads that a grantee left, also when the grantee is gone', async () => {
    const ref = await makeBucket({ versioning: 'true' });
    const uid = `trivet-${randomUUID()}`;
    const id = randomUUID().replaceAll('-', '').toUpperCase();
    const principal = { uid, accessKeyId: id.slice(0, 20), secretAccessKey: id, displayName: 'grantee' };
    await harness.backend.putPrincipal(principal, soon());
    await harness.backend.putGrants(ref, [{ uid, mode: 'read_write' }], soon());
    const client = harness.clientFor(principal);
    const Bucket = ref.name;
    for (const n of [1, 2, 3]) await client.send(new PutObjectCommand({ Bucket, Key: 'twice', Body: `${n}` }));
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'twice' }));
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'never there' }));
    await upload(client, Bucket, 'unfinished');
    await harness.backend.removeKey(principal, soon());
    await harness.backend.putGrants(ref, [], soon());
    await harness.backend.removePrincipal(uid, soon());

    expect(await harness.backend.deleteBucket(ref, soon())).toBe('not_empty');
    expect(await empty(ref)).toEqual([6]);
    expect(await harness.backend.deleteBucket(ref, soon())).toBe('deleted');
  });

  it('goes on in bounded steps until all is gone', async () => {
    const ref = await makeBucket({});
    const client = await harness.ownerClient();
    const total = 260;
    const keys = Array.from({ length: total }, (_, n) => `many/${n}`);
    for (let from = 0; from < total; from += 20)
      await Promise.all(
        keys.slice(from, from + 20).map(Key => client.send(new PutObjectCommand({ Bucket: ref.name, Key, Body: 'x' }))),
      );
    const steps = await empty(ref);
    expect(steps.length).toBeGreaterThan(1);
    expect(steps.reduce((sum, removed) => sum + removed, 0)).toBe(total);
    expect(await harness.backend.deleteBucket(ref, soon())).toBe('deleted');
  });

  it('finds its way with names that XML or a URL would bend', async () => {
    const ref = await makeBucket({ versioning: 'true' });
    const client = await harness.ownerClient();
    const names = ['a b+c%20&<>"\'', 'é/ü/😀', 'line\nfeed', 'carriage\rreturn', 'bell\u0007', '~tilde*()!', '..', ' '];
    for (const Key of names) await client.send(new PutObjectCommand({ Bucket: ref.name, Key, Body: 'x' }));
    for (const Key of names) await upload(client, ref.name, Key);
    await empty(ref);
    const left = await client.send(new ListObjectVersionsCommand({ Bucket: ref.name }));
    expect(left.Versions ?? []).toEqual([]);
    const uploads = await client.send(new ListMultipartUploadsCommand({ Bucket: ref.name }));
    expect(uploads.Uploads ?? []).toEqual([]);
    expect(await harness.backend.deleteBucket(ref, soon())).toBe('deleted');
  });
});
