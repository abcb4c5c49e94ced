/**
 * Tries each action that the adapter needs, at a bucket and a user of its own names, and takes both away again. Neither S3 nor IAM
 * tells what somebody may do without a right to ask for that, and S3 says of a bucket that is not there that it is not there,
 * whoever asks. What was left by a test that was cut off is found, and taken away, by the next one.
 */
import { createHash } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetBucketTaggingCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutBucketEncryptionCommand,
  PutBucketTaggingCommand,
  PutBucketVersioningCommand,
  PutObjectLockConfigurationCommand,
  PutPublicAccessBlockCommand,
} from '@aws-sdk/client-s3';
import type { BackendCheck } from '#backends/registration';
import { iamLibrary } from '#backends/s3/aws-sdk';
import { makeBucket } from '#backends/s3/bucket-making';
import { emptyPortion } from '#backends/s3/bucket-purge';
import { APPLIANCE_TAG } from '#backends/s3/bucket-tags';
import { checksOf } from '#backends/s3/connection-test';
import { errorCode, httpStatus } from '#backends/s3/errors';
import type { Iam } from '#backends/s3/iam';
import { trustDocument } from '#backends/s3/iam-roles';
import { lacking, saidOf } from '#backends/s3/needed-rights';
import { placesOf, type S3Config } from '#backends/s3/s3-config';
import type { S3User } from '#backends/s3/s3-user';
import { S3_WORDS, SAID } from '#backends/s3/s3-words';
import { rightsDocument } from '#backends/s3/user-rights';
import type { LeaseSignal } from '#platform/lease-signal';

interface Try {
  right: string;
  request: () => Promise<unknown>;
}

export interface TriedStore {
  admin: S3User;
  iam: Iam;
  config: S3Config;
  /** The tag of this appliance and tenant. */
  appliance: string;
  /** Where buckets are to be; undefined: where they have no location. */
  location: string | undefined;
}

/** Not what callers may ask for: COSI's names have no such digest in them but by intent. */
const probeOf = ({ appliance, config }: TriedStore): string =>
  `trivet-probe-${createHash('sha256').update(`${appliance} ${config.userPath}`).digest('hex').slice(0, 24)}`;

export async function tryRights(store: TriedStore, signal: LeaseSignal): Promise<BackendCheck[]> {
  const check = checksOf(S3_WORDS, signal);
  const places = placesOf(store.config);
  const name = probeOf(store);
  return [
    await check('rights at S3', `try the rights at bucket ${name}`, places.s3, () =>
      allowed('at S3', atBucket(store, name, signal)),
    ),
    await check('rights at IAM', `try the rights at user ${name}`, places.iam, () =>
      allowed('at IAM', atUser(store, name, signal)),
    ),
    ...(store.config.oidcProvider === undefined
      ? []
      : [
          await check('rights at IAM for roles', `try the rights at role ${name}`, places.iam, () =>
            allowed('at IAM for roles', atRole(store, name, signal)),
          ),
        ]),
  ];
}

/** The first makes what the others are tried at: without it nothing is known of them. */
async function allowed(where: string, [make, ...others]: readonly Try[]): Promise<string> {
  const lacked = await lackedBy(make!);
  if (lacked) throw lacking(where, [`${lacked} (the rights at what it makes were not tried)`]);
  const missing: string[] = [];
  for (const one of others) missing.push(...[(await lackedBy(one)) ?? []].flat());
  const distinct = [...new Set(missing)];
  if (distinct.length > 0) throw lacking(where, distinct);
  return `all ${others.length + 1} rights that are needed ${where}`;
}

/** Who is let in may hear that there is nothing of that kind. */
async function lackedBy({ right, request }: Try): Promise<string | undefined> {
  try {
    await request();
    return undefined;
  } catch (error) {
    const status = httpStatus(error);
    if (status === 403 && REFUSED.has(errorCode(error))) return saidOf(error, SAID) ?? right;
    if (status === undefined || status === 401 || status === 403 || status >= 500) throw error;
    return undefined;
  }
}

function unlessRefused(error: unknown): void {
  if (!REFUSED.has(errorCode(error))) throw error;
}

/** Other words with this status are of keys and clocks. */
const REFUSED = new Set(['AccessDenied', 'AccessDeniedException', 'UnauthorizedOperation']);

function atBucket({ admin, appliance, location }: TriedStore, Bucket: string, signal: LeaseSignal): Try[] {
  const tags = { TagSet: [{ Key: APPLIANCE_TAG, Value: appliance }] };
  const encryption = { Rules: [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' as const } }] };
  const blocked = {
    BlockPublicAcls: true,
    IgnorePublicAcls: true,
    BlockPublicPolicy: true,
    RestrictPublicBuckets: true,
  };
  const spec = { versioning: false, objectLock: false, tags: {}, deletePolicy: 'retain' as const };
  const none = { Bucket, Key: 'trivet-probe' };
  // Each command has types of its own, and no answer is looked at.
  const change = (command: object) => () => admin.change(command as never, signal);
  const read = (command: object) => () => admin.read(command as never, signal);
  return [
    { right: 's3:CreateBucket', request: () => makeBucket(admin, Bucket, spec, location, signal) },
    { right: 's3:PutBucketTagging', request: change(new PutBucketTaggingCommand({ Bucket, Tagging: tags })) },
    { right: 's3:GetBucketTagging', request: read(new GetBucketTaggingCommand({ Bucket })) },
    {
      right: 's3:PutBucketPublicAccessBlock',
      request: change(new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: blocked })),
    },
    {
      right: 's3:PutEncryptionConfiguration',
      request: change(new PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration: encryption })),
    },
    // Before it keeps versions, where what is deleted would leave a mark.
    { right: 's3:DeleteObject', request: change(new DeleteObjectCommand(none)) },
    {
      right: 's3:PutBucketVersioning',
      request: change(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })),
    },
    // Of a bucket without it this changes nothing.
    {
      right: 's3:PutBucketObjectLockConfiguration',
      request: change(new PutObjectLockConfigurationCommand({ Bucket })),
    },
    { right: 's3:ListBucket', request: read(new ListObjectsV2Command({ Bucket, MaxKeys: 1 })) },
    { right: 's3:ListBucketVersions', request: read(new ListObjectVersionsCommand({ Bucket, MaxKeys: 1 })) },
    {
      right: 's3:ListBucketMultipartUploads',
      request: read(new ListMultipartUploadsCommand({ Bucket, MaxUploads: 1 })),
    },
    {
      right: 's3:AbortMultipartUpload',
      request: change(new AbortMultipartUploadCommand({ ...none, UploadId: 'none' })),
    },
    { right: 's3:DeleteObjectVersion', request: change(new DeleteObjectCommand({ ...none, VersionId: 'null' })) },
    {
      right: 's3:DeleteBucket',
      request: async () => {
        // One that was left by a test keeps versions. What this needs has been tried.
        await emptyPortion(admin, Bucket, signal).catch(unlessRefused);
        await admin.change(new DeleteBucketCommand({ Bucket }), signal);
      },
    },
  ];
}

function atRole({ iam, appliance, config }: TriedStore, RoleName: string, signal: LeaseSignal): Try[] {
  const library = iamLibrary();
  const { userPath: Path, permissionsBoundary: PermissionsBoundary } = config;
  const trust = trustDocument(config, { namespace: 'trivet-probe', name: 'trivet-probe' })!;
  const Tags = [{ Key: APPLIANCE_TAG, Value: appliance }];
  const policy = { RoleName, PolicyName: 'trivet-probe' };
  const role = { RoleName, Path, PermissionsBoundary, Tags, AssumeRolePolicyDocument: trust };
  const change = (command: object) => () => iam.change(command as never, signal);
  const read = (command: object) => () => iam.read(command as never, signal);
  return [
    { right: 'iam:CreateRole', request: change(new library.CreateRoleCommand(role)) },
    { right: 'iam:GetRole', request: read(new library.GetRoleCommand({ RoleName })) },
    {
      right: 'iam:UpdateAssumeRolePolicy',
      request: change(new library.UpdateAssumeRolePolicyCommand({ RoleName, PolicyDocument: trust })),
    },
    ...(PermissionsBoundary === undefined
      ? []
      : [
          {
            right: 'iam:PutRolePermissionsBoundary',
            request: change(new library.PutRolePermissionsBoundaryCommand({ RoleName, PermissionsBoundary })),
          },
        ]),
    {
      right: 'iam:PutRolePolicy',
      request: change(
        new library.PutRolePolicyCommand({ ...policy, PolicyDocument: rightsDocument(RoleName, 'revoked') }),
      ),
    },
    { right: 'iam:GetRolePolicy', request: read(new library.GetRolePolicyCommand(policy)) },
    { right: 'iam:ListRolePolicies', request: read(new library.ListRolePoliciesCommand({ RoleName })) },
    { right: 'iam:DeleteRolePolicy', request: change(new library.DeleteRolePolicyCommand(policy)) },
    { right: 'iam:DeleteRole', request: change(new library.DeleteRoleCommand({ RoleName })) },
  ];
}

function atUser({ iam, appliance, config }: TriedStore, UserName: string, signal: LeaseSignal): Try[] {
  const library = iamLibrary();
  const { userPath: Path, permissionsBoundary: PermissionsBoundary } = config;
  const Tags = [{ Key: APPLIANCE_TAG, Value: appliance }];
  const policy = { UserName, PolicyName: 'trivet-probe' };
  const keyIds: string[] = [];
  const change = (command: object) => () => iam.change(command as never, signal);
  const read = (command: object) => () => iam.read(command as never, signal);
  return [
    {
      right: 'iam:CreateUser',
      request: change(new library.CreateUserCommand({ UserName, Path, PermissionsBoundary, Tags })),
    },
    { right: 'iam:GetUser', request: read(new library.GetUserCommand({ UserName })) },
    ...(PermissionsBoundary === undefined
      ? []
      : [
          {
            right: 'iam:PutUserPermissionsBoundary',
            request: change(new library.PutUserPermissionsBoundaryCommand({ UserName, PermissionsBoundary })),
          },
        ]),
    {
      right: 'iam:PutUserPolicy',
      request: change(
        new library.PutUserPolicyCommand({ ...policy, PolicyDocument: rightsDocument(UserName, 'revoked') }),
      ),
    },
    { right: 'iam:GetUserPolicy', request: read(new library.GetUserPolicyCommand(policy)) },
    { right: 'iam:ListUserPolicies', request: read(new library.ListUserPoliciesCommand({ UserName })) },
    // It opens nothing, and nobody hears of it.
    { right: 'iam:CreateAccessKey', request: change(new library.CreateAccessKeyCommand({ UserName })) },
    {
      right: 'iam:ListAccessKeys',
      request: async () => {
        const found = await iam.read(new library.ListAccessKeysCommand({ UserName }), signal);
        keyIds.push(...(found.AccessKeyMetadata ?? []).map(({ AccessKeyId = '' }) => AccessKeyId));
      },
    },
    {
      right: 'iam:DeleteAccessKey',
      request: async () => {
        for (const AccessKeyId of keyIds.length > 0 ? keyIds : ['AKIANONE000000000000'])
          await iam.change(new library.DeleteAccessKeyCommand({ UserName, AccessKeyId }), signal);
      },
    },
    { right: 'iam:DeleteUserPolicy', request: change(new library.DeleteUserPolicyCommand(policy)) },
    { right: 'iam:DeleteUser', request: change(new library.DeleteUserCommand({ UserName })) },
  ];
}
