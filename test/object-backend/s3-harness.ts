/** Looks at S3 and IAM by other means than the port: for the conformance suite and the tests of access modes. */
import { randomUUID } from 'node:crypto';
import {
  CreateAccessKeyCommand,
  GetUserPolicyCommand,
  IAMClient,
  ListAccessKeysCommand,
  ListUserPoliciesCommand,
  ListUsersCommand,
} from '@aws-sdk/client-iam';
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteBucketTaggingCommand,
  GetBucketTaggingCommand,
  GetBucketVersioningCommand,
  HeadBucketCommand,
  ListBucketsCommand,
  PutObjectCommand,
  PutObjectLegalHoldCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { ObjectBackendHarness } from '#backends/conformance/object-world';
import type { AccessMode, Grant, ObjectBackend } from '#backends/object-backend';
import { TAG_PREFIX } from '#backends/s3/bucket-tags';
import { errorCode } from '#backends/s3/errors';
import { s3Kind } from '#backends/s3/s3-kind';
import { rightsDocument } from '#backends/s3/user-rights';
import { S3Roles, textOf } from '#test/object-backend/s3-roles';
import { type Parts, parts } from '#test/support/parts';

export type S3Parts = NonNullable<Parts['moto']>;

/** Undefined when the test run could not start moto. */
export const s3Parts = (): S3Parts | undefined => parts().moto ?? undefined;

export interface S3Harness extends ObjectBackendHarness {
  admin: S3Client;
  iam: IAMClient;
  open(tenantId: string, config?: object, credentials?: Record<string, string>): ObjectBackend;
  clientFor(keys: { accessKeyId: string; secretAccessKey: string }): S3Client;
  /** A request that bears no signature: moto refuses those, also where there is to be none. */
  unjudged<T>(work: () => Promise<T>): Promise<T>;
  /** Names of all users below the path. */
  users(): Promise<string[]>;
}

/** Files that run at the same time share the store. */
function goneMeanwhile(error: unknown): [] {
  if (!/^NoSuchEntity/.test(errorCode(error))) throw error;
  return [];
}

const MODES = ['read_write', 'read_only', 'write_only', 'revoked'] as const;

export async function openS3Harness({ endpoint, ...keys }: S3Parts, further: object = {}): Promise<S3Harness> {
  const run = randomUUID().slice(0, 8);
  const prefix = `parts-${run}-`;
  const open = (tenantId: string, config: object = {}, credentials: Record<string, string> = keys) =>
    s3Kind.open(s3Kind.parseConfig({ endpoint, ...further, ...config }), credentials, {
      applianceId: `appliance-${run}`,
      tenantId,
    });
  const options = { endpoint, region: 'us-east-1', maxAttempts: 1 };
  const clientFor = (credentials: { accessKeyId: string; secretAccessKey: string }) =>
    new S3Client({
      ...options,
      credentials,
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  const admin = clientFor(keys);
  const iam = new IAMClient({ ...options, credentials: keys });
  const roles = new S3Roles(iam);
  const foreign = new Set<string>();
  const unjudged = async <T>(work: () => Promise<T>): Promise<T> => {
    const judge = (count: string) => fetch(`${endpoint}/moto-api/reset-auth`, { method: 'POST', body: count });
    await judge('1000');
    try {
      return await work();
    } finally {
      await judge('0');
    }
  };
  /** As another account, which moto takes from this header, and asks for no signature there. */
  const asOther = (method: string, name: string): Promise<Response> =>
    unjudged(() => fetch(`${endpoint}/${name}`, { method, headers: { 'x-moto-account-id': '210987654321' } }));
  const policiesOf = async (uid: string): Promise<string[]> => {
    const { PolicyNames = [] } = await iam.send(new ListUserPoliciesCommand({ UserName: uid }));
    const read = async (PolicyName: string) => {
      const { PolicyDocument = '' } = await iam.send(new GetUserPolicyCommand({ UserName: uid, PolicyName }));
      return textOf(PolicyDocument);
    };
    return Promise.all(PolicyNames.map(read));
  };
  const users = async () =>
    ((await iam.send(new ListUsersCommand({ PathPrefix: '/trivet/' }))).Users ?? []).map(({ UserName }) => UserName!);
  const backend = open('default');
  return {
    backend,
    otherTenant: open('other'),
    unreachable: open('default', { endpoint: 'http://127.0.0.1:1' }),
    withKeysAlone: open('default', { oidcProvider: undefined }),
    refused: open('default', {}, { accessKeyId: 'AKIANOBODY0000000000', secretAccessKey: 'nothing' }),
    prefix,
    admin,
    iam,
    open,
    clientFor,
    unjudged,
    users,
    seedForeignBucket: async name => {
      const { status } = await asOther('PUT', name);
      if (status !== 200) throw new Error(`moto answered ${status}`);
      foreign.add(name);
    },
    seedRegistrable: async Bucket => void (await admin.send(new CreateBucketCommand({ Bucket }))),
    replaceForeignBucket: async Bucket => {
      await admin.send(new DeleteBucketCommand({ Bucket }));
      await admin.send(new CreateBucketCommand({ Bucket }));
    },
    foreignBucketExists: async name => {
      if (foreign.has(name)) return (await asOther('HEAD', name)).status === 200;
      try {
        await admin.send(new HeadBucketCommand({ Bucket: name }));
        return true;
      } catch (error) {
        if ((error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode === 404) return false;
        throw error;
      }
    },
    seedObjects: async (Bucket, count) => {
      for (let n = 0; n < count; n++)
        await admin.send(new PutObjectCommand({ Bucket, Key: `seed/${n}`, Body: `object ${n}` }));
    },
    seedLockedObject: async Bucket => {
      const Key = 'locked/object';
      await admin.send(new PutObjectCommand({ Bucket, Key, Body: 'locked' }));
      await admin.send(new PutObjectLegalHoldCommand({ Bucket, Key, LegalHold: { Status: 'ON' } }));
      return Key;
    },
    dropTags: async Bucket => void (await admin.send(new DeleteBucketTaggingCommand({ Bucket }))),
    bucketSpec: async Bucket => {
      const { Status } = await admin.send(new GetBucketVersioningCommand({ Bucket }));
      const { TagSet = [] } = await admin.send(new GetBucketTaggingCommand({ Bucket }));
      const theirs = TagSet.filter(({ Key }) => !Key?.startsWith(TAG_PREFIX));
      return { versioning: Status === 'Enabled', tags: Object.fromEntries(theirs.map(tag => [tag.Key!, tag.Value!])) };
    },
    principalKeys: async uid => {
      try {
        const { AccessKeyMetadata = [] } = await iam.send(new ListAccessKeysCommand({ UserName: uid }));
        return AccessKeyMetadata.map(({ AccessKeyId }) => ({ accessKeyId: AccessKeyId!, secretAccessKey: '' }));
      } catch (error) {
        if (errorCode(error) === 'NoSuchEntity') return undefined;
        throw error;
      }
    },
    seedKey: async UserName => void (await iam.send(new CreateAccessKeyCommand({ UserName }))),
    trustOf: uid => roles.trustOf(uid),
    seedTrust: (uid, account) => roles.seedTrust(uid, account),
    grants: async name => {
      const found: Grant[] = [];
      for (const [uid, read] of [
        ...(await users()).map(uid => [uid, policiesOf] as const),
        ...(await roles.names()).map(uid => [uid, (role: string) => roles.policiesOf(role)] as const),
      ])
        for (const policy of await read(uid).catch(goneMeanwhile)) {
          if (!policy.includes(`"arn:aws:s3:::${name}"`)) continue;
          const mode = MODES.find(one => rightsDocument(name, one) === JSON.stringify(JSON.parse(policy)));
          if (!mode) throw new Error(`a policy of ${uid} says ${policy}`);
          found.push({ uid, mode: mode as AccessMode });
        }
      return found.toSorted((a, b) => (a.uid < b.uid ? -1 : 1));
    },
    close: async () => {
      for (const { Name } of (await admin.send(new ListBucketsCommand({}))).Buckets ?? [])
        if (Name?.startsWith(prefix))
          await admin.send(new DeleteBucketCommand({ Bucket: Name })).catch(() => undefined);
      admin.destroy();
      iam.destroy();
      backend.close();
    },
  };
}
