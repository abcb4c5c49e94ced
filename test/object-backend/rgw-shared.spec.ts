import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ObjectBackend, Principal } from '#backends/object-backend';
import { AdminOps } from '#backends/rgw/admin-ops';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import type { RefusedRequest } from '#backends/s3/errors';
import { HttpTransport } from '#backends/s3/http-transport';
import { unleased } from '#platform/lease-signal';
import { uuidv7 } from '#platform/uuid';
import { rgwParts } from '#test/object-backend/rgw-harness';

const parts = rgwParts();
const signal = () => unleased(AbortSignal.timeout(60_000));

interface Sharer {
  backend: ObjectBackend;
  incarnation: string;
  principal: Principal;
  s3: S3Client;
  rgwTenant: string;
  /** GET with its key. */
  ask(path: string): Promise<{ status: number; text: string }>;
}

/** One RGW, one key of its administrator, two tenants of ours: each has a tenant of the store (invariant O1). */
describe.skipIf(!parts)('an RGW that two tenants share', () => {
  const run = randomBytes(4).toString('hex');
  const bucket = `photos-${run}`;
  const applianceId = randomUUID();
  const sharers: Sharer[] = [];

  beforeAll(async () => {
    const { endpoint, region, accessKeyFile, secretKeyFile } = parts!;
    const credentials = {
      accessKeyId: readFileSync(accessKeyFile, 'utf8').trim(),
      secretAccessKey: readFileSync(secretKeyFile, 'utf8').trim(),
    };
    const { registration } = rgwKind;
    const config = registration.config.parse({ endpoint, region });
    for (const name of ['acme', 'beta']) {
      const tenant = { id: uuidv7(), name };
      const share = registration.share(config, { applianceId, ownerId: uuidv7(), tenant, others: [] });
      const backend = rgwKind.open(rgwKind.parseConfig(share), credentials, { applianceId, tenantId: tenant.id });
      const principal = {
        // Both have one of this name, too.
        uid: `trivet-${run}`,
        displayName: name,
        accessKeyId: randomUUID().replaceAll('-', '').toUpperCase(),
        secretAccessKey: randomBytes(20).toString('hex'),
      };
      const { accessKeyId, secretAccessKey } = principal;
      const s3 = new S3Client({
        endpoint,
        region,
        credentials: { accessKeyId, secretAccessKey },
        forcePathStyle: true,
        maxAttempts: 1,
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
      });
      const transport = new HttpTransport({ endpoint, region, name: 'rgw', expiring: true });
      const signed = new AdminOps(transport, { accessKeyId, secretAccessKey });
      const ask = (path: string) =>
        signed.read(path, {}, signal()).then(
          text => ({ status: 200, text }),
          (error: RefusedRequest) => ({ status: error.status, text: error.code }),
        );
      sharers.push({ backend, incarnation: uuidv7(), principal, s3, rgwTenant: share.rgwTenant, ask });
    }
  }, 60_000);

  afterAll(async () => {
    for (const { backend, incarnation, principal, s3 } of sharers) {
      const ref = { name: bucket, incarnation };
      await backend.removePrincipal(principal.uid, signal()).catch(() => {});
      while (!(await backend.emptyBucket(ref, signal())).done);
      await backend.deleteBucket(ref, signal());
      s3.destroy();
      backend.close();
    }
  }, 60_000);

  it('has two buckets of one name, each made and owned by one of them', async () => {
    for (const { backend, incarnation } of sharers) {
      const spec = parseS3BucketParameters({});
      expect(await backend.inspectBucket(bucket, signal())).toEqual({ state: 'absent' });
      await backend.createBucket({ name: bucket, incarnation }, spec, signal());
      await backend.configureBucket({ name: bucket, incarnation }, spec, signal());
    }
    for (const { backend, incarnation } of sharers)
      expect(await backend.inspectBucket(bucket, signal())).toEqual({ state: 'ours', incarnation });
  });

  it('lets each reach its own by its plain name, with the key that was granted', async () => {
    for (const { backend, incarnation, principal, s3 } of sharers) {
      await backend.putPrincipal(principal, signal());
      await backend.putGrants({ name: bucket, incarnation }, [{ uid: principal.uid, mode: 'read_write' }], signal());
      await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'whose', Body: principal.displayName }));
    }
    for (const { principal, s3 } of sharers) {
      const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'whose' }));
      expect(await Body!.transformToString()).toBe(principal.displayName);
    }
  });

  it('keeps the other one’s objects from it, by whatever name it asks', async () => {
    const [acme, beta] = sharers as [Sharer, Sharer];
    await beta.s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'of-beta', Body: 'x' }));
    const { Contents } = await acme.s3.send(new ListObjectsV2Command({ Bucket: bucket }));
    expect(Contents?.map(({ Key }) => Key)).toEqual(['whose']);
    // RGW's own spelling of a bucket of another tenant: the SDK takes it for no bucket's name, so it is signed by hand.
    expect(await acme.ask(`/${beta.rgwTenant}%3A${bucket}/of-beta`)).toMatchObject({ status: 403 });
    expect(await acme.ask(`/${acme.rgwTenant}%3A${bucket}/whose`)).toMatchObject({ status: 200, text: 'acme' });
  });

  it('takes nothing of the other one when one deletes its own', async () => {
    const [acme, beta] = sharers as [Sharer, Sharer];
    const ref = { name: bucket, incarnation: acme.incarnation };
    while (!(await acme.backend.emptyBucket(ref, signal())).done);
    expect(await acme.backend.deleteBucket(ref, signal())).toBe('deleted');
    await acme.backend.removePrincipal(acme.principal.uid, signal());
    expect(await beta.backend.inspectBucket(bucket, signal())).toEqual({
      state: 'ours',
      incarnation: beta.incarnation,
    });
    const { Contents } = await beta.s3.send(new ListObjectsV2Command({ Bucket: bucket }));
    expect(Contents?.map(({ Key }) => Key)).toEqual(['of-beta', 'whose']);
  });
});
