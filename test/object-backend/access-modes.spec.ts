/**
 * What each access mode really allows and refuses, seen by the stock AWS SDK with the granted key (invariants O2 to O4).
 */
import { randomUUID } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteBucketPolicyCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketAclCommand,
  GetBucketLocationCommand,
  GetObjectAclCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  ListPartsCommand,
  PutBucketAclCommand,
  PutBucketLifecycleConfigurationCommand,
  PutBucketPolicyCommand,
  PutBucketTaggingCommand,
  PutBucketVersioningCommand,
  PutObjectAclCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AccessMode, BucketRef, Grant, Principal } from '#backends/object-backend';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { errorCode } from '#backends/s3/errors';
import { unleased } from '#platform/lease-signal';
import { openRgwHarness, type RgwHarness, rgwParts } from '#test/object-backend/rgw-harness';

const parts = rgwParts();
const soon = () => unleased(AbortSignal.timeout(60_000));
const spec = rgwKind.parseBucketParameters({ versioning: 'true' });

interface World {
  client: S3Client;
  Bucket: string;
  /** Written by the owner of the bucket. */
  theirs: { Key: string; VersionId: string | undefined };
  /** Written by the principal while it had read_write. */
  own: { Key: string; VersionId: string | undefined };
}

type Probe = (world: World) => Promise<unknown>;
const MIB_5 = Buffer.alloc(5 * 1024 * 1024, 7);

const PROBES: Readonly<Record<string, Probe>> = {
  put: ({ client, Bucket }) => client.send(new PutObjectCommand({ Bucket, Key: 'put', Body: 'x' })),
  'upload in three parts': async ({ client, Bucket }) => {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'three' }));
    const Parts = [];
    for (const [n, Body] of [MIB_5, MIB_5, Buffer.from('end')].entries()) {
      const part = { Bucket, Key: 'three', UploadId, PartNumber: n + 1, Body };
      const { ETag } = await client.send(new UploadPartCommand(part));
      Parts.push({ ETag, PartNumber: n + 1 });
    }
    await client.send(new ListPartsCommand({ Bucket, Key: 'three', UploadId }));
    const done = { Bucket, Key: 'three', UploadId, MultipartUpload: { Parts } };
    await client.send(new CompleteMultipartUploadCommand(done));
  },
  'abort an upload': async ({ client, Bucket }) => {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'aborted' }));
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key: 'aborted', UploadId }));
  },
  'get own': ({ client, Bucket, own }) => client.send(new GetObjectCommand({ Bucket, Key: own.Key })),
  'get own version': ({ client, Bucket, own }) => client.send(new GetObjectCommand({ Bucket, ...own })),
  'get theirs': ({ client, Bucket, theirs }) => client.send(new GetObjectCommand({ Bucket, Key: theirs.Key })),
  'get their version': ({ client, Bucket, theirs }) => client.send(new GetObjectCommand({ Bucket, ...theirs })),
  'head own': ({ client, Bucket, own }) => client.send(new HeadObjectCommand({ Bucket, Key: own.Key })),
  'head theirs': ({ client, Bucket, theirs }) => client.send(new HeadObjectCommand({ Bucket, Key: theirs.Key })),
  'read tags of own': ({ client, Bucket, own }) => client.send(new GetObjectTaggingCommand({ Bucket, Key: own.Key })),
  list: ({ client, Bucket }) => client.send(new ListObjectsV2Command({ Bucket })),
  'list versions': ({ client, Bucket }) => client.send(new ListObjectVersionsCommand({ Bucket })),
  'list uploads': ({ client, Bucket }) => client.send(new ListMultipartUploadsCommand({ Bucket })),
  location: ({ client, Bucket }) => client.send(new GetBucketLocationCommand({ Bucket })),
  'delete own': ({ client, Bucket, own }) => client.send(new DeleteObjectCommand({ Bucket, Key: own.Key })),
  'delete own version': ({ client, Bucket, own }) => client.send(new DeleteObjectCommand({ Bucket, ...own })),
  'delete their version': ({ client, Bucket, theirs }) => client.send(new DeleteObjectCommand({ Bucket, ...theirs })),
  'delete many': async ({ client, Bucket, theirs }) => {
    const { Errors } = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: [theirs] } }));
    if (Errors?.[0]) throw Object.assign(new Error(), { name: Errors[0].Code, $metadata: { httpStatusCode: 403 } });
  },
};

const READ = ['get own', 'get own version', 'get theirs', 'get their version', 'head own', 'head theirs'];
const LIST = ['list', 'list versions', 'location'];
const WRITE = ['put', 'upload in three parts', 'abort an upload'];
const REMOVE = ['delete own', 'delete own version', 'delete their version', 'delete many'];
const ALLOWED: Readonly<Record<AccessMode, readonly string[]>> = {
  // The uploader owns the ACL of its object, which includes the tags; only write_only must not read them.
  read_write: [...READ, ...LIST, ...WRITE, ...REMOVE, 'list uploads', 'read tags of own'],
  read_only: [...READ, ...LIST, 'read tags of own'],
  write_only: WRITE,
};

/** No mode allows any of these. */
const ADMINISTRATION: Readonly<Record<string, Probe>> = {
  'read the ACL of own': ({ client, Bucket, own }) => client.send(new GetObjectAclCommand({ Bucket, Key: own.Key })),
  'publish own by its ACL': ({ client, Bucket, own }) =>
    client.send(new PutObjectAclCommand({ Bucket, Key: own.Key, ACL: 'public-read' })),
  'publish own version by its ACL': ({ client, Bucket, own }) =>
    client.send(new PutObjectAclCommand({ Bucket, ...own, ACL: 'public-read' })),
  'read the ACL of the bucket': ({ client, Bucket }) => client.send(new GetBucketAclCommand({ Bucket })),
  'write the ACL of the bucket': ({ client, Bucket }) =>
    client.send(new PutBucketAclCommand({ Bucket, ACL: 'public-read' })),
  'write the policy': ({ client, Bucket }) =>
    client.send(new PutBucketPolicyCommand({ Bucket, Policy: '{"Version":"2012-10-17","Statement":[]}' })),
  'delete the policy': ({ client, Bucket }) => client.send(new DeleteBucketPolicyCommand({ Bucket })),
  'write tags of the bucket': ({ client, Bucket }) =>
    client.send(new PutBucketTaggingCommand({ Bucket, Tagging: { TagSet: [{ Key: 'a', Value: 'b' }] } })),
  'suspend versioning': ({ client, Bucket }) =>
    client.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Suspended' } })),
  'write a lifecycle': ({ client, Bucket }) => {
    const Rules = [{ ID: 'all', Status: 'Enabled' as const, Filter: { Prefix: '' }, Expiration: { Days: 1 } }];
    return client.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules } }));
  },
  'delete the bucket': ({ client, Bucket }) => client.send(new DeleteBucketCommand({ Bucket })),
  'make a bucket': ({ client, Bucket }) => client.send(new CreateBucketCommand({ Bucket: `${Bucket}-mine` })),
};

async function outcome(probe: Promise<unknown>): Promise<string> {
  try {
    await probe;
    return 'allowed';
  } catch (error) {
    const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
    return $metadata?.httpStatusCode === 403 ? 'refused' : `failed: ${errorCode(error)}`;
  }
}

describe.skipIf(!parts)('access modes on RGW', () => {
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
  async function makePrincipal(): Promise<{ principal: Principal; client: S3Client }> {
    const uid = `trivet-${randomUUID()}`;
    uids.push(uid);
    const id = randomUUID().replaceAll('-', '').toUpperCase();
    const principal = { uid, accessKeyId: id.slice(0, 20), secretAccessKey: id, displayName: 'access modes' };
    await harness.backend.putPrincipal(principal, soon());
    return { principal, client: harness.clientFor(principal) };
  }
  async function world(mode: Grant['mode']): Promise<World & { ref: BucketRef; uid: string }> {
    const ref = await makeBucket();
    const Bucket = ref.name;
    const { principal, client } = await makePrincipal();
    await harness.backend.putGrants(ref, [{ uid: principal.uid, mode: 'read_write' }], soon());
    const own = await client.send(new PutObjectCommand({ Bucket, Key: 'own', Body: 'own' }));
    const owner = await harness.ownerClient();
    const theirs = await owner.send(new PutObjectCommand({ Bucket, Key: 'theirs', Body: 'theirs' }));
    await harness.backend.putGrants(ref, [{ uid: principal.uid, mode }], soon());
    return {
      ref,
      uid: principal.uid,
      client,
      Bucket,
      own: { Key: 'own', VersionId: own.VersionId },
      theirs: { Key: 'theirs', VersionId: theirs.VersionId },
    };
  }

  describe.each(['read_write', 'read_only', 'write_only'] as const)('%s', mode => {
    it('allows what it should and refuses the rest', async () => {
      const here = await world(mode);
      const seen: Record<string, string> = {};
      const expected: Record<string, string> = {};
      for (const [name, probe] of Object.entries(PROBES)) {
        seen[name] = await outcome(probe(here));
        expected[name] = ALLOWED[mode].includes(name) ? 'allowed' : 'refused';
      }
      expect(seen).toEqual(expected);
    });

    it('leaves administration to the owner', async () => {
      const here = await world(mode);
      const seen: Record<string, string> = {};
      for (const [name, probe] of Object.entries(ADMINISTRATION)) seen[name] = await outcome(probe(here));
      expect(seen).toEqual(Object.fromEntries(Object.keys(ADMINISTRATION).map(name => [name, 'refused'])));
    });
  });

  it('refuses everything to a revoked principal that lives on, its own objects too', async () => {
    const here = await world('revoked');
    const seen: Record<string, string> = {};
    for (const [name, probe] of Object.entries(PROBES)) seen[name] = await outcome(probe(here));
    expect(seen).toEqual(Object.fromEntries(Object.keys(PROBES).map(name => [name, 'refused'])));
  });

  it('ends at once when the key is removed', async () => {
    const here = await world('read_write');
    expect(await outcome(PROBES['get own']!(here))).toBe('allowed');
    const [key] = (await harness.principalKeys(here.uid))!;
    await harness.backend.removeKey({ uid: here.uid, accessKeyId: key!.accessKeyId }, soon());
    expect(await outcome(PROBES['get own']!(here))).toBe('refused');
    expect(await outcome(PROBES.put!(here))).toBe('refused');
  });

  it('does not serve an object to the world that was uploaded as public', async () => {
    const { client, Bucket } = await world('read_write');
    await client.send(new PutObjectCommand({ Bucket, Key: 'public', Body: 'x', ACL: 'public-read' }));
    const anonymous = await fetch(`${parts!.endpoint}/${Bucket}/public`);
    expect(anonymous.status).toBe(403);
    await anonymous.body?.cancel();
    expect(await outcome(client.send(new GetObjectCommand({ Bucket, Key: 'public' })))).toBe('allowed');
  });

  it('keeps two principals with one bucket each apart', async () => {
    const one = await world('read_write');
    const two = await world('read_write');
    for (const probe of ['get theirs', 'put', 'list', 'delete own'])
      expect(await outcome(PROBES[probe]!({ ...two, client: one.client })), probe).toBe('refused');
  });

  it('gives one principal another mode on each bucket', async () => {
    const { principal, client } = await makePrincipal();
    const modes: Grant['mode'][] = ['read_only', 'write_only', 'read_write'];
    const seen = [];
    for (const mode of modes) {
      const ref = await makeBucket();
      await harness.backend.putGrants(ref, [{ uid: principal.uid, mode }], soon());
      const Bucket = ref.name;
      seen.push([
        await outcome(client.send(new PutObjectCommand({ Bucket, Key: 'a', Body: 'a' }))),
        await outcome(client.send(new ListObjectsV2Command({ Bucket }))),
      ]);
    }
    expect(seen).toEqual([
      ['refused', 'allowed'],
      ['allowed', 'refused'],
      ['allowed', 'allowed'],
    ]);
  });
});

describe.skipIf(!parts)('access modes inside an RGW tenant', () => {
  let harness: RgwHarness;
  let outside: RgwHarness;

  beforeAll(async () => {
    harness = await openRgwHarness(parts!, 'green');
    outside = await openRgwHarness(parts!);
  });
  afterAll(() => Promise.all([harness.close(), outside.close()]));

  it('grants by plain path, and keeps users and buckets of one name outside apart', async () => {
    const name = `${harness.prefix}shared`;
    const uid = `trivet-${randomUUID()}`;
    const both = [harness, outside].map(({ backend, clientFor }) => {
      const id = randomUUID().replaceAll('-', '').toUpperCase();
      const principal = { uid, accessKeyId: id.slice(0, 20), secretAccessKey: id, displayName: 'tenants' };
      return { backend, principal, ref: { name, incarnation: randomUUID() }, client: clientFor(principal) };
    });
    for (const [n, { backend, principal, ref, client }] of both.entries()) {
      await backend.createBucket(ref, spec, soon());
      await backend.configureBucket(ref, spec, soon());
      await backend.putPrincipal(principal, soon());
      await backend.putGrants(ref, [{ uid, mode: n === 0 ? 'read_write' : 'write_only' }], soon());
      await client.send(new PutObjectCommand({ Bucket: name, Key: 'whose', Body: `${n}` }));
    }
    const read = await both[0]!.client.send(new GetObjectCommand({ Bucket: name, Key: 'whose' }));
    expect(await read.Body?.transformToString()).toBe('0');
    expect(await outcome(both[1]!.client.send(new GetObjectCommand({ Bucket: name, Key: 'whose' })))).toBe('refused');
    expect(await outcome(both[0]!.client.send(new GetObjectCommand({ Bucket: `:${name}`, Key: 'whose' })))).not.toBe(
      'allowed',
    );
    for (const { backend, ref } of both) {
      while (!(await backend.emptyBucket(ref, soon())).done);
      expect(await backend.deleteBucket(ref, soon())).toBe('deleted');
      await backend.removePrincipal(uid, soon());
    }
  });
});
