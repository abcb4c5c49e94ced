import { randomUUID } from 'node:crypto';
import { GetBucketPolicyCommand, ListObjectsV2Command, PutBucketPolicyCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BucketRef, Grant } from '#backends/object-backend';
import { MAX_POLICY_BYTES, readPolicy, writeGrants } from '#backends/rgw/bucket-grants';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { grantsOf, MAX_UID_LENGTH } from '#backends/s3/bucket-policy';
import { unleased } from '#platform/lease-signal';
import { openRgwHarness, type RgwHarness, rgwParts } from '#test/object-backend/rgw-harness';

const parts = rgwParts();
const soon = () => unleased(AbortSignal.timeout(60_000));
const spec = rgwKind.parseBucketParameters({});

describe.skipIf(!parts)('bucket policies on RGW', () => {
  let harness: RgwHarness;
  const uids: string[] = [];

  beforeAll(async () => {
    harness = await openRgwHarness(parts!);
  });
  afterAll(async () => {
    for (const uid of uids) await harness.backend.removePrincipal(uid, soon());
    await harness.close();
  });

  async function makeBucket(): Promise<BucketRef> {
    const ref = { name: `${harness.prefix}${randomUUID().slice(0, 8)}`, incarnation: randomUUID() };
    await harness.backend.createBucket(ref, spec, soon());
    await harness.backend.configureBucket(ref, spec, soon());
    return ref;
  }
  const version = async (name: string) => {
    const bucket = await harness.admin.getBucket(name, soon());
    return harness.admin.bucketVersion(name, bucket!.id, soon());
  };
  const foreign = (name: string, sid: string) => ({
    Sid: sid,
    Effect: 'Allow',
    Principal: { AWS: [`arn:aws:iam:::user/${harness.foreignUid}`] },
    Action: ['s3:ListBucket'],
    Resource: [`arn:aws:s3:::${name}`],
  });

  it('carries twenty grants of which each works', async () => {
    const ref = await makeBucket();
    const grants: Grant[] = [];
    const clients = [];
    for (let n = 0; n < 20; n++) {
      const uid = `trivet-${randomUUID()}`;
      uids.push(uid);
      const id = randomUUID().replaceAll('-', '').toUpperCase();
      const principal = { uid, accessKeyId: id.slice(0, 20), secretAccessKey: id, displayName: 'one of twenty' };
      await harness.backend.putPrincipal(principal, soon());
      grants.push({ uid, mode: n % 2 === 0 ? 'read_only' : 'read_write' });
      await harness.backend.putGrants(ref, grants, soon());
      clients.push(harness.clientFor(principal));
    }
    expect(await harness.grants(ref.name)).toHaveLength(20);
    for (const client of clients) await client.send(new ListObjectsV2Command({ Bucket: ref.name }));
  });

  it('writes nothing when the policy says it already', async () => {
    const ref = await makeBucket();
    const grants: Grant[] = [{ uid: 'trivet-somebody', mode: 'read_only' }];
    await harness.backend.putGrants(ref, grants, soon());
    const before = await version(ref.name);
    await harness.backend.putGrants(ref, grants, soon());
    expect(await version(ref.name)).toEqual(before);
  });

  it('keeps the statements of others, before, between and after', async () => {
    const ref = await makeBucket();
    const owner = await harness.ownerClient();
    const Statement = [foreign(ref.name, 'first'), foreign(ref.name, 'second')];
    const Policy = JSON.stringify({ Version: '2012-10-17', Statement });
    await owner.send(new PutBucketPolicyCommand({ Bucket: ref.name, Policy }));
    await harness.backend.putGrants(ref, [{ uid: 'trivet-a', mode: 'write_only' }], soon());
    const withOurs = JSON.parse((await readPolicy(await harness.userOf(owner), ref.name, soon()))!) as {
      Statement: { Sid: string }[];
    };
    expect(withOurs.Statement.map(statement => statement.Sid)).toEqual([
      'first',
      'second',
      'trivetWriteOnlyAllow',
      'trivetWriteOnlyDeny',
    ]);
    await harness.foreignClient.send(new ListObjectsV2Command({ Bucket: ref.name }));
    await harness.backend.putGrants(ref, [], soon());
    expect(JSON.parse((await readPolicy(await harness.userOf(owner), ref.name, soon()))!)).toEqual({
      Version: '2012-10-17',
      Statement,
    });
  });

  it('leaves no policy behind when nothing is left to say', async () => {
    const ref = await makeBucket();
    await harness.backend.putGrants(ref, [{ uid: 'trivet-a', mode: 'read_write' }], soon());
    await harness.backend.putGrants(ref, [], soon());
    const owner = await harness.ownerClient();
    await expect(owner.send(new GetBucketPolicyCommand({ Bucket: ref.name }))).rejects.toMatchObject({
      name: 'NoSuchBucketPolicy',
    });
  });

  it('stops for a person when somebody else wrote between our read and our write', async () => {
    const ref = await makeBucket();
    const owner = await harness.ownerClient();
    let reads = 0;
    const readVersion = async () => {
      reads += 1;
      const seen = await version(ref.name);
      if (reads > 1) return seen;
      const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [foreign(ref.name, 'meanwhile')] });
      await owner.send(new PutBucketPolicyCommand({ Bucket: ref.name, Policy }));
      return seen;
    };
    const scope = { bucket: ref.name, tenant: '' };
    const grants: Grant[] = [{ uid: 'trivet-a', mode: 'read_only' }];
    await expect(writeGrants(await harness.userOf(owner), scope, grants, readVersion, soon())).rejects.toMatchObject({
      kind: 'failed_precondition',
    });
  });

  it('is accepted by the store up to our own limit, and computed not too small before', async () => {
    const ref = await makeBucket();
    const uid = (n: number) => `trivet-${String(n).padStart(MAX_UID_LENGTH - 'trivet-'.length, '0')}`;
    const bytes = (count: number) =>
      rgwKind.policyBytes(ref.name, { read_write: count, read_only: 0, write_only: 0, revoked: 0 });
    let count = 1;
    while (bytes(count + 1) <= MAX_POLICY_BYTES) count += 1;
    const grants: Grant[] = Array.from({ length: count }, (_, n) => ({ uid: uid(n), mode: 'read_write' }));
    await harness.backend.putGrants(ref, grants, soon());
    const policy = (await readPolicy(await harness.userOf(await harness.ownerClient()), ref.name, soon()))!;
    expect(grantsOf(policy)).toHaveLength(count);
    expect(Buffer.byteLength(policy)).toBeLessThanOrEqual(bytes(count));
    await harness.backend.putGrants(ref, grants.slice(0, 1), soon());
    expect(await harness.grants(ref.name)).toEqual([grants[0]]);
  });
});
