import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DeleteBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ObjectBackend } from '#backends/object-backend';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { unleased } from '#platform/lease-signal';
import { openRgwHarness, type RgwHarness, rgwParts } from '#test/object-backend/rgw-harness';

const parts = rgwParts();
const soon = () => unleased(AbortSignal.timeout(60_000));
const plain = rgwKind.parseBucketParameters({});

describe.skipIf(!parts)('owner and location of buckets on RGW', () => {
  let harness: RgwHarness;
  const opened: ObjectBackend[] = [];

  beforeAll(async () => {
    harness = await openRgwHarness(parts!);
  });
  afterAll(async () => {
    for (const backend of opened) backend.close();
    await harness.close();
  });

  const newRef = () => ({ name: `${harness.prefix}${randomUUID().slice(0, 8)}`, incarnation: randomUUID() });
  const administrator = () => ({
    accessKeyId: readFileSync(parts!.accessKeyFile, 'utf8').trim(),
    secretAccessKey: readFileSync(parts!.secretKeyFile, 'utf8').trim(),
  });
  const openOwned = (ownerUid: string, credentials = administrator(), more = {}): ObjectBackend => {
    const config = rgwKind.parseConfig({ endpoint: parts!.endpoint, region: parts!.region, ownerUid, ...more });
    const backend = rgwKind.open(config, credentials, { applianceId: 'ownership', tenantId: 'default' });
    opened.push(backend);
    return backend;
  };
  /** Without any cap. */
  async function ordinaryUser() {
    const id = randomUUID().replaceAll('-', '').toUpperCase();
    const principal = { uid: `trivet-${randomUUID()}`, accessKeyId: id.slice(0, 20), secretAccessKey: id };
    await harness.backend.putPrincipal({ ...principal, displayName: 'ordinary' }, soon());
    return principal;
  }

  it('makes its owner once, when several workers begin at the same time', async () => {
    const uid = `trivet-owner-${randomUUID()}`;
    const backends = [openOwned(uid), openOwned(uid), openOwned(uid)];
    const refs = backends.map(newRef);
    await Promise.all(backends.map((backend, n) => backend.createBucket(refs[n]!, plain, soon())));
    expect((await harness.admin.getUser(uid, soon()))?.keys).toHaveLength(1);
    for (const [n, backend] of backends.entries()) {
      await backend.configureBucket(refs[n]!, plain, soon());
      expect(await backend.deleteBucket(refs[n]!, soon())).toBe('deleted');
    }
    await harness.admin.deleteUser(uid, soon());
  });

  it('goes on when the key of its owner was exchanged, or had been removed', async () => {
    const uid = `trivet-owner-${randomUUID()}`;
    const backend = openOwned(uid);
    const ref = newRef();
    await backend.createBucket(ref, plain, soon());
    const [key] = (await harness.admin.getUser(uid, soon()))!.keys;
    await harness.admin.generateKey(uid, soon());
    await harness.admin.deleteKey(uid, key!.access_key, soon());
    await backend.configureBucket(ref, plain, soon());
    const [second] = (await harness.admin.getUser(uid, soon()))!.keys;
    await harness.admin.deleteKey(uid, second!.access_key, soon());
    await expect(backend.inspectBucket(ref.name, soon())).rejects.toMatchObject({ kind: 'failed_precondition' });
    await harness.admin.generateKey(uid, soon());
    expect(await backend.deleteBucket(ref, soon())).toBe('deleted');
    await harness.admin.deleteUser(uid, soon());
  });

  it('says which caps its user needs when it has none', async () => {
    const user = await ordinaryUser();
    await expect(openOwned('any', user).health(soon())).rejects.toMatchObject({
      kind: 'permission_denied',
      message: expect.stringContaining('metadata=*'),
    });
    await harness.backend.removePrincipal(user.uid, soon());
  });

  it('treats the bucket of another appliance as foreign, also when both were given the same owner', async () => {
    const mine = newRef();
    await harness.backend.createBucket(mine, plain, soon());
    await harness.backend.configureBucket(mine, plain, soon());
    const other = openOwned(harness.ownerUid);
    expect(await other.inspectBucket(mine.name, soon())).toEqual({
      state: 'foreign',
      byTrivet: true,
      identity: expect.any(String),
    });
    expect(await other.deleteBucket(mine, soon())).toBe('foreign');
    expect(await harness.backend.deleteBucket(mine, soon())).toBe('deleted');
  });

  it('does not take a bucket for gone that was given to another user', async () => {
    const ref = newRef();
    await harness.backend.createBucket(ref, plain, soon());
    await harness.backend.configureBucket(ref, plain, soon());
    const owner = await harness.ownerClient();
    const link = (uid: string) => harness.linkBucket(ref.name, uid);
    await link(harness.foreignUid);
    expect(await harness.backend.inspectBucket(ref.name, soon())).toEqual({
      state: 'foreign',
      byTrivet: true,
      identity: expect.any(String),
    });
    await expect(harness.backend.putGrants(ref, [], soon())).rejects.toMatchObject({ kind: 'failed_precondition' });
    await link(harness.ownerUid);
    await harness.backend.putGrants(ref, [], soon());
    await owner.send(new DeleteBucketCommand({ Bucket: ref.name }));
  });

  it.each([
    [{ placement: 'no-such' }, 'parameters[placement]', "no placement target 'no-such'"],
    [{ region: 'no-such' }, 'parameters[region]', "no zone group 'no-such'"],
    [
      { region: 'default', placement: 'no-such' },
      'parameters[placement]',
      "no placement target 'no-such' in zone group 'default'",
    ],
  ])('says which parameter names no location: %o', async (parameters, field, message) => {
    const ref = newRef();
    const spec = rgwKind.parseBucketParameters(parameters);
    await expect(harness.backend.createBucket(ref, spec, soon())).rejects.toMatchObject({
      kind: 'invalid_argument',
      field,
      message: expect.stringMatching(new RegExp(`${message}$`)),
    });
    expect(await harness.backend.inspectBucket(ref.name, soon())).toEqual({ state: 'absent' });
  });

  it('does not blame the request for a location that it is configured with', async () => {
    const backend = openOwned(harness.ownerUid, administrator(), { placement: 'no-such' });
    await expect(backend.createBucket(newRef(), plain, soon())).rejects.toMatchObject({
      kind: 'failed_precondition',
      message: expect.stringContaining("'no-such', which this backend is configured with"),
    });
  });

  it('makes a bucket at the location that is asked for', async () => {
    const ref = newRef();
    const spec = rgwKind.parseBucketParameters({ region: 'default', placement: 'default-placement' });
    await harness.backend.createBucket(ref, spec, soon());
    const bucket = await harness.admin.getBucket(ref.name, soon());
    expect(bucket).toMatchObject({ owner: harness.ownerUid, placement_rule: 'default-placement' });
  });

  it('keeps a quota to the byte, and refuses what exceeds it', async () => {
    const ref = newRef();
    const spec = rgwKind.parseBucketParameters({ quotaMaxSize: '8191' });
    await harness.backend.createBucket(ref, spec, soon());
    await harness.backend.configureBucket(ref, spec, soon());
    expect(await harness.bucketSpec(ref.name)).toMatchObject({ quotaMaxSize: '8191' });
    const put = new PutObjectCommand({ Bucket: ref.name, Key: 'large', Body: Buffer.alloc(16 * 1024) });
    await expect((await harness.ownerClient()).send(put)).rejects.toMatchObject({ name: 'QuotaExceeded' });
  });

  it('does not let a principal make buckets of its own, or keep a right that was given to it by hand', async () => {
    const uid = `trivet-${randomUUID()}`;
    const id = randomUUID().replaceAll('-', '').toUpperCase();
    const principal = { uid, accessKeyId: id.slice(0, 20), secretAccessKey: id, displayName: 'grantee' };
    await harness.admin.createUserWithKey(uid, 'made by hand', soon());
    await harness.backend.putPrincipal(principal, soon());
    expect(await harness.admin.getUser(uid, soon())).toMatchObject({ max_buckets: -1, display_name: 'grantee' });
    expect(await harness.principalKeys(uid)).toEqual([
      { accessKeyId: principal.accessKeyId, secretAccessKey: principal.secretAccessKey },
    ]);
    await harness.backend.removePrincipal(uid, soon());
  });

  it('sees that a principal was suspended by hand, and gives it its use back', async () => {
    const user = { ...(await ordinaryUser()), displayName: 'ordinary' };
    await harness.admin.change('POST', '/admin/user', { uid: user.uid, suspended: '1' }, soon());
    expect(await harness.backend.holdsPrincipal(user, soon())).toBe(false);
    await harness.backend.putPrincipal(user, soon());
    expect(await harness.backend.holdsPrincipal(user, soon())).toBe(true);
    await harness.backend.removePrincipal(user.uid, soon());
  });
});
