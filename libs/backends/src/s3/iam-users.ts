/** Principals: IAM users below a path of ours, one for each access. A user has two keys at most. */
import type { AccessKeyMetadata } from '@aws-sdk/client-iam';
import type { IssuedKey, Principal } from '#backends/object-backend';
import { iamLibrary } from '#backends/s3/aws-sdk';
import { APPLIANCE_TAG } from '#backends/s3/bucket-tags';
import { errorCode } from '#backends/s3/errors';
import type { Iam } from '#backends/s3/iam';
import type { S3Config } from '#backends/s3/s3-config';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

const isGone = (error: unknown): boolean => errorCode(error) === 'NoSuchEntity';

/** What was asked for is nothing when the user, the key or the policy is not there. */
async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

export async function putUser(
  iam: Iam,
  config: S3Config,
  appliance: string,
  principal: Principal,
  signal: LeaseSignal,
): Promise<void> {
  await ensureUser(iam, config, appliance, principal.uid, signal);
  // One that came after its answer was given up is nobody's.
  if (principal.accessKeyId !== '') await removeKeys(iam, principal.uid, signal, idsOf(principal));
}

const idsOf = ({ accessKeyId, beside = [] }: Principal): string[] => [
  accessKeyId,
  ...beside.map(key => key.accessKeyId),
];

async function ensureUser(
  iam: Iam,
  { userPath, permissionsBoundary }: S3Config,
  appliance: string,
  uid: string,
  signal: LeaseSignal,
): Promise<void> {
  const { CreateUserCommand, GetUserCommand, PutUserPermissionsBoundaryCommand } = iamLibrary();
  const Tags = [{ Key: APPLIANCE_TAG, Value: appliance }];
  const user = { UserName: uid, Path: userPath, PermissionsBoundary: permissionsBoundary, Tags };
  try {
    await iam.change(new CreateUserCommand(user), signal);
    return;
  } catch (error) {
    if (errorCode(error) !== 'EntityAlreadyExists') throw error;
  }
  const { User } = await iam.read(new GetUserCommand({ UserName: uid }), signal);
  if (!User?.Tags?.some(({ Key, Value }) => Key === APPLIANCE_TAG && Value === appliance))
    throw new StorageError('already_exists', `IAM user ${uid} was not made by this appliance`, {
      resource: `principal ${uid}`,
    });
  const bounded = User.PermissionsBoundary?.PermissionsBoundaryArn;
  if (permissionsBoundary !== undefined && bounded !== permissionsBoundary)
    await iam.change(
      new PutUserPermissionsBoundaryCommand({ UserName: uid, PermissionsBoundary: permissionsBoundary }),
      signal,
    );
}

/** Undefined: there is no such user. */
async function keysOf(iam: Iam, uid: string, signal: AbortSignal): Promise<AccessKeyMetadata[] | undefined> {
  const { ListAccessKeysCommand } = iamLibrary();
  const found = await unlessGone(iam.read(new ListAccessKeysCommand({ UserName: uid }), signal));
  return found && (found.AccessKeyMetadata ?? []);
}

export async function holdsKey(iam: Iam, principal: Principal, signal: AbortSignal): Promise<boolean> {
  const keys = (await keysOf(iam, principal.uid, signal)) ?? [];
  const ids = idsOf(principal);
  return (
    keys.some(({ AccessKeyId }) => AccessKeyId === principal.accessKeyId) &&
    keys.every(({ AccessKeyId = '', Status }) => ids.includes(AccessKeyId) && Status !== 'Inactive')
  );
}

export async function removeKeys(
  iam: Iam,
  uid: string,
  signal: LeaseSignal,
  staying: readonly string[] = [],
): Promise<void> {
  const { DeleteAccessKeyCommand } = iamLibrary();
  for (const { AccessKeyId = '' } of (await keysOf(iam, uid, signal)) ?? [])
    if (!staying.includes(AccessKeyId))
      await unlessGone(iam.change(new DeleteAccessKeyCommand({ UserName: uid, AccessKeyId }), signal));
}

export async function issueKey(iam: Iam, uid: string, signal: LeaseSignal, staying?: string): Promise<IssuedKey> {
  const { CreateAccessKeyCommand } = iamLibrary();
  await removeKeys(iam, uid, signal, staying === undefined ? [] : [staying]);
  const { AccessKey } = await iam.change(new CreateAccessKeyCommand({ UserName: uid }), signal);
  const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey } = AccessKey ?? {};
  if (!accessKeyId || !secretAccessKey) throw new Error('an answer of CreateAccessKey without a key');
  return { accessKeyId, secretAccessKey };
}

/** IAM deletes a user that has nothing any more: keys first, then policies. */
export async function removeUser(iam: Iam, uid: string, signal: LeaseSignal): Promise<void> {
  const { DeleteUserCommand, DeleteUserPolicyCommand, ListUserPoliciesCommand } = iamLibrary();
  await removeKeys(iam, uid, signal);
  const policies = await unlessGone(iam.read(new ListUserPoliciesCommand({ UserName: uid }), signal));
  if (!policies) return;
  for (const PolicyName of policies.PolicyNames ?? [])
    await unlessGone(iam.change(new DeleteUserPolicyCommand({ UserName: uid, PolicyName }), signal));
  try {
    await unlessGone(iam.change(new DeleteUserCommand({ UserName: uid }), signal));
  } catch (error) {
    if (errorCode(error) !== 'DeleteConflict') throw error;
    throw new StorageError(
      'failed_precondition',
      `IAM user ${uid} has what Trivet did not give it: take its groups, attached policies, password and devices away`,
      { resource: `principal ${uid}`, retry: 'later', cause: error },
    );
  }
}
