/** The tenant's limit of bytes is kept by the store, whoever writes (the stock AWS SDK, with granted and with owner's keys). */
import { randomUUID } from 'node:crypto';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { errorCode } from '#backends/s3/errors';
import { unleased } from '#platform/lease-signal';
import { openRgwHarness, type RgwHarness, rgwParts } from '#test/object-backend/rgw-harness';
import { until } from '#test/support/parts';

const parts = rgwParts();
const soon = () => unleased(AbortSignal.timeout(60_000));

describe.skipIf(!parts).each([
  ['outside', ''],
  ['inside', 'limited'],
])('%s an RGW tenant', (_, rgwTenant) => {
  let rgw: RgwHarness;
  const principal = {
    uid: `limited-${randomUUID()}`,
    accessKeyId: `TV${randomUUID()}`,
    secretAccessKey: randomUUID(),
    displayName: 'x',
  };
  const buckets = ['one', 'two'].map(name => ({ name: '', suffix: name, incarnation: randomUUID() }));
  beforeAll(async () => {
    rgw = await openRgwHarness(parts!, rgwTenant);
    const spec = rgwKind.parseBucketParameters({});
    await rgw.backend.putPrincipal(principal, soon());
    for (const bucket of buckets) {
      bucket.name = `${rgw.prefix}${bucket.suffix}`;
      await rgw.backend.createBucket(bucket, spec, soon());
      await rgw.backend.configureBucket(bucket, spec, soon());
      await rgw.backend.putGrants(bucket, [{ uid: principal.uid, mode: 'read_write' }], soon());
    }
  }, 60_000);
  afterAll(async () => {
    await rgw?.backend.removePrincipal(principal.uid, soon());
    await rgw?.close();
  });

  const put = async (bucket: number, Key: string, bytes: number): Promise<string> => {
    const client = rgw.clientFor(principal);
    try {
      await client.send(new PutObjectCommand({ Bucket: buckets[bucket]!.name, Key, Body: Buffer.alloc(bytes, 1) }));
      return 'stored';
    } catch (error) {
      return errorCode(error);
    }
  };

  it('says what a bucket holds', async () => {
    expect(await rgw.backend.measureBucket(buckets[0]!.name, soon())).toBe(0n);
    expect(await put(0, 'a', 300_000)).toBe('stored');
    await until('it is counted', async () => (await rgw.backend.measureBucket(buckets[0]!.name, soon())) === 300_000n);
    expect(await rgw.backend.measureBucket(`${rgw.prefix}nothing`, soon())).toBeUndefined();
  });

  it('refuses what goes beyond the limit in any bucket of the tenant, and takes it again without one', async () => {
    await rgw.backend.limitTenant(600_000n, soon());
    await rgw.backend.limitTenant(600_000n, soon());
    expect(await put(1, 'b', 200_000)).toBe('stored');
    expect(await put(1, 'c', 500_000)).toBe('QuotaExceeded');
    expect(await put(0, 'c', 500_000)).toBe('QuotaExceeded');
    await rgw.backend.limitTenant(2_000_000n, soon());
    expect(await put(0, 'c', 500_000)).toBe('stored');
    await rgw.backend.limitTenant(0n, soon());
    expect(await put(0, 'd', 1)).toBe('QuotaExceeded');
    await rgw.backend.limitTenant(undefined, soon());
    expect(await put(0, 'd', 500_000)).toBe('stored');
  });
});

describe.skipIf(!parts)('the end of a tenant', () => {
  it('takes the owner of its buckets away, once it has none', async () => {
    const rgw = await openRgwHarness(parts!);
    try {
      const { endpoint, region } = parts!;
      const credentials = rgw.credentials;
      const own = rgwKind.open(rgwKind.parseConfig({ endpoint, region }), credentials, {
        applianceId: `ends-${randomUUID()}`,
        tenantId: randomUUID(),
      });
      const bucket = { name: `${rgw.prefix}last`, incarnation: randomUUID() };
      const spec = rgwKind.parseBucketParameters({});
      await own.createBucket(bucket, spec, soon());
      await own.configureBucket(bucket, spec, soon());
      const owner = (await rgw.admin.getBucket(bucket.name, soon()))!.owner;
      await expect(own.forgetTenant(soon())).rejects.toMatchObject({ kind: 'failed_precondition' });
      expect(await rgw.admin.getUser(owner, soon())).toBeDefined();
      expect(await own.deleteBucket(bucket, soon())).toBe('deleted');
      await own.forgetTenant(soon());
      await own.forgetTenant(soon());
      expect(await rgw.admin.getUser(owner, soon())).toBeUndefined();
      own.close();
    } finally {
      await rgw.close();
    }
  });
});
