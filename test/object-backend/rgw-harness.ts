/** Looks at a real RGW by other means than the port: for the conformance suite and the tests of access modes. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteBucketTaggingCommand,
  GetBucketTaggingCommand,
  GetBucketVersioningCommand,
  HeadBucketCommand,
  ListBucketsCommand,
  PutObjectCommand,
  PutObjectRetentionCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { ObjectBackendHarness } from '#backends/conformance/object-world';
import type { ApplianceIdentity, ObjectBackend } from '#backends/object-backend';
import { AdminOps } from '#backends/rgw/admin-ops';
import { readPolicy } from '#backends/rgw/bucket-grants';
import { qualifiedBucket, qualifiedUid } from '#backends/rgw/rgw-config';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { grantsOf } from '#backends/s3/bucket-policy';
import { emptyPortion } from '#backends/s3/bucket-purge';
import { TAG_PREFIX } from '#backends/s3/bucket-tags';
import { errorCode, httpStatus } from '#backends/s3/errors';
import { HttpTransport } from '#backends/s3/http-transport';
import { S3User } from '#backends/s3/s3-user';
import { unleased } from '#platform/lease-signal';
import { type Parts, parts } from '#test/support/parts';

export type RgwParts = NonNullable<Parts['rgw']>;

/** Undefined when the test run could not start an RGW. */
export const rgwParts = (): RgwParts | undefined => parts().rgw ?? undefined;

export interface RgwHarness extends ObjectBackendHarness {
  admin: AdminOps;
  /** Of RGW's administrator. */
  credentials: { accessKeyId: string; secretAccessKey: string };
  /** As the stock client of a user with these keys would be set up. */
  clientFor(keys: { accessKeyId: string; secretAccessKey: string }): S3Client;
  /** Whom a client acts as, in the adapter's own way. */
  userOf(client: S3Client): Promise<S3User>;
  /** Acts as our own bucket owner. */
  ownerClient(): Promise<S3Client>;
  /** Acts as somebody who has nothing to do with Trivet. */
  foreignClient: S3Client;
  foreignUid: string;
  ownerUid: string;
  open(tenantId: string): ObjectBackend;
  /** What `backend` was opened with, for another process. */
  opened: { config: object; credentials: Record<string, string>; owner: ApplianceIdentity };
  /** As an administrator does who gives a bucket to another user. */
  linkBucket(name: string, uid: string): Promise<void>;
}

const signal = () => unleased(AbortSignal.timeout(60_000));
/** Of locked objects: long enough to be refused, short enough for the clean-up to wait for. */
const LOCK_MS = 4_000;

export async function openRgwHarness(rgw: RgwParts, rgwTenant = ''): Promise<RgwHarness> {
  const run = randomUUID().slice(0, 8);
  const prefix = `parts-${run}-`;
  const foreignUid = `foreign-${run}`;
  const ownerUid = `trivet-owner-${run}`;
  const credentials = {
    accessKeyId: readFileSync(rgw.accessKeyFile, 'utf8').trim(),
    secretAccessKey: readFileSync(rgw.secretKeyFile, 'utf8').trim(),
  };
  const open = (tenantId: string, endpoint = rgw.endpoint, keys: Record<string, string> = credentials) => {
    const uid = tenantId === 'default' ? ownerUid : `${ownerUid}-${tenantId}`;
    const config = rgwKind.parseConfig({ endpoint, region: rgw.region, ownerUid: uid, rgwTenant });
    return rgwKind.open(config, keys, { applianceId: `appliance-${run}`, tenantId });
  };
  const backend = open('default');
  const transport = new HttpTransport({ endpoint: rgw.endpoint, region: rgw.region, name: 'rgw', expiring: true });
  const admin = new AdminOps(transport, credentials);
  const clients: S3Client[] = [];
  const clientFor = (keys: { accessKeyId: string; secretAccessKey: string }): S3Client => {
    const client = new S3Client({
      endpoint: rgw.endpoint,
      region: rgw.region,
      credentials: keys,
      forcePathStyle: true,
      maxAttempts: 1,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
    clients.push(client);
    return client;
  };
  const userOf = async (client: S3Client) => new S3User(transport, await client.config.credentials());
  const clientOfUser = async (uid: string): Promise<S3Client> => {
    const key = (await admin.getUser(qualifiedUid(rgwTenant, uid), signal()))?.keys[0];
    if (!key) throw new Error(`user ${uid} has no key`);
    return clientFor({ accessKeyId: key.access_key, secretAccessKey: key.secret_key });
  };
  await admin.createUserWithKey(qualifiedUid(rgwTenant, foreignUid), 'somebody else', signal());
  const foreignClient = await clientOfUser(foreignUid);

  let owner: Promise<S3Client> | undefined;
  const ownerClient = () => {
    owner ??= clientOfUser(ownerUid);
    return owner;
  };
  const clientOf = async (name: string): Promise<S3Client> => {
    const bucket = await admin.getBucket(qualifiedBucket(rgwTenant, name), signal());
    return bucket?.owner === qualifiedUid(rgwTenant, foreignUid) ? foreignClient : ownerClient();
  };

  return {
    backend,
    otherTenant: open('other'),
    unreachable: open('default', 'http://127.0.0.1:1'),
    refused: open('default', rgw.endpoint, { accessKeyId: 'NOBODY', secretAccessKey: 'nothing' }),
    prefix,
    admin,
    credentials,
    clientFor,
    userOf,
    ownerClient,
    foreignClient,
    foreignUid,
    ownerUid,
    open,
    opened: {
      config: { endpoint: rgw.endpoint, region: rgw.region, ownerUid, rgwTenant },
      credentials,
      owner: { applianceId: `appliance-${run}`, tenantId: 'default' },
    },
    linkBucket: async (name, uid) => {
      const qualified = qualifiedBucket(rgwTenant, name);
      const bucket = await admin.getBucket(qualified, signal());
      const query = { bucket: qualified, 'bucket-id': bucket!.id, uid: qualifiedUid(rgwTenant, uid) };
      await admin.change('PUT', '/admin/bucket', query, signal());
    },
    seedForeignBucket: async Bucket => {
      await foreignClient.send(new CreateBucketCommand({ Bucket }));
    },
    replaceForeignBucket: async Bucket => {
      await foreignClient.send(new DeleteBucketCommand({ Bucket }));
      await foreignClient.send(new CreateBucketCommand({ Bucket }));
    },
    foreignBucketExists: async Bucket => {
      try {
        await foreignClient.send(new HeadBucketCommand({ Bucket }));
        return true;
      } catch (error) {
        // It may not look at one of somebody else's.
        if (httpStatus(error) === 403) return true;
        if (httpStatus(error) === 404) return false;
        throw error;
      }
    },
    seedObjects: async (Bucket, count) => {
      const client = await ownerClient();
      for (let n = 0; n < count; n++)
        await client.send(new PutObjectCommand({ Bucket, Key: `seed/${n % 3}`, Body: `version ${n}` }));
    },
    seedLockedObject: async Bucket => {
      const client = await ownerClient();
      const Key = 'locked/object';
      await client.send(new PutObjectCommand({ Bucket, Key, Body: 'locked' }));
      const Retention = { Mode: 'COMPLIANCE' as const, RetainUntilDate: new Date(Date.now() + LOCK_MS) };
      await client.send(new PutObjectRetentionCommand({ Bucket, Key, Retention }));
      return Key;
    },
    dropTags: async Bucket => {
      await (await ownerClient()).send(new DeleteBucketTaggingCommand({ Bucket }));
    },
    bucketSpec: async Bucket => {
      const client = await ownerClient();
      const { Status } = await client.send(new GetBucketVersioningCommand({ Bucket }));
      const { TagSet } = await client.send(new GetBucketTaggingCommand({ Bucket }));
      const { bucket_quota: quota } = (await admin.getBucket(qualifiedBucket(rgwTenant, Bucket), signal()))!;
      const users = (TagSet ?? []).filter(tag => !tag.Key?.startsWith(TAG_PREFIX));
      return {
        versioning: Status === 'Enabled',
        ...(quota.enabled && quota.max_size >= 0 ? { quotaMaxSize: String(quota.max_size) } : {}),
        ...(quota.enabled && quota.max_objects >= 0 ? { quotaMaxObjects: String(quota.max_objects) } : {}),
        tags: Object.fromEntries(users.map(tag => [tag.Key!, tag.Value!])),
      };
    },
    principalKeys: async uid => {
      const user = await admin.getUser(qualifiedUid(rgwTenant, uid), signal());
      return user?.keys.map(key => ({ accessKeyId: key.access_key, secretAccessKey: key.secret_key }));
    },
    grants: async name => grantsOf(await readPolicy(await userOf(await clientOf(name)), name, signal())),
    close: async () => {
      const remove = async (client: S3Client) => removeBuckets(client, await userOf(client), prefix);
      await remove(foreignClient);
      if (await admin.getUser(qualifiedUid(rgwTenant, ownerUid), signal())) await remove(await ownerClient());
      for (const uid of [foreignUid, ownerUid, `${ownerUid}-other`])
        await admin.deleteUser(qualifiedUid(rgwTenant, uid), signal()).catch(ignoreMissing);
      for (const client of clients) client.destroy();
      transport.close();
      backend.close();
    },
  };
}

async function removeBuckets(client: S3Client, user: S3User, prefix: string): Promise<void> {
  const { Buckets } = await client.send(new ListBucketsCommand({}));
  for (const { Name } of Buckets ?? []) {
    if (!Name?.startsWith(prefix)) continue;
    await emptyUnlocked(user, Name);
    await client.send(new DeleteBucketCommand({ Bucket: Name }));
  }
}

/** Waits out the retention of locked objects. */
async function emptyUnlocked(user: S3User, name: string): Promise<void> {
  const end = Date.now() + 2 * LOCK_MS;
  for (;;) {
    try {
      if ((await emptyPortion(user, name, signal())).done) return;
    } catch (error) {
      if ((error as { kind?: string }).kind !== 'failed_precondition' || Date.now() > end) throw error;
      await new Promise(resolve => setTimeout(resolve, 250));
    }
  }
}

function ignoreMissing(error: unknown): void {
  if (errorCode(error) !== 'NoSuchUser') throw error;
}
