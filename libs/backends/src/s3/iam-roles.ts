/**
 * Principals without a key: IAM roles below the same path as users, which a service account of a cluster assumes with the token that
 * the cluster gives it. The role trusts that one account of that one cluster, and has the same inline policies as a user.
 */
import type { KeylessDoor, ServiceAccount } from '#backends/object-backend';
import { iamLibrary } from '#backends/s3/aws-sdk';
import { APPLIANCE_TAG } from '#backends/s3/bucket-tags';
import { errorCode } from '#backends/s3/errors';
import type { Iam } from '#backends/s3/iam';
import { sameDocument } from '#backends/s3/policy-document';
import type { S3Config } from '#backends/s3/s3-config';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/** Roles are in the account of the provider, below the path of users. */
export function roleDoor(provider: string, { userPath }: S3Config): KeylessDoor {
  const [, partition, , , account] = provider.split(':');
  return { protocol: 's3', nameOf: uid => `arn:${partition}:iam::${account}:role${userPath}${uid}` };
}

/** Undefined: this backend has no provider of identities. */
export function trustDocument(
  { oidcProvider, oidcAudience }: S3Config,
  { namespace, name }: ServiceAccount,
): string | undefined {
  if (oidcProvider === undefined) return undefined;
  const issuer = oidcProvider.slice(oidcProvider.indexOf('oidc-provider/') + 'oidc-provider/'.length);
  const StringEquals = {
    [`${issuer}:sub`]: `system:serviceaccount:${namespace}:${name}`,
    [`${issuer}:aud`]: oidcAudience,
  };
  const statement = {
    Effect: 'Allow',
    Principal: { Federated: oidcProvider },
    Action: 'sts:AssumeRoleWithWebIdentity',
    Condition: { StringEquals },
  };
  return JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
}

export async function putRole(
  iam: Iam,
  config: S3Config,
  appliance: string,
  { uid, trusts }: { uid: string; trusts: ServiceAccount },
  signal: LeaseSignal,
): Promise<void> {
  const { CreateRoleCommand, PutRolePermissionsBoundaryCommand, UpdateAssumeRolePolicyCommand } = iamLibrary();
  const { userPath: Path, permissionsBoundary: PermissionsBoundary } = config;
  const trust = trustDocument(config, trusts);
  if (trust === undefined)
    throw new StorageError(
      'failed_precondition',
      'this backend has no provider of identities any more: give it oidcProvider again, or revoke this access',
      { resource: `principal ${uid}` },
    );
  const Tags = [{ Key: APPLIANCE_TAG, Value: appliance }];
  const role = { RoleName: uid, Path, PermissionsBoundary, Tags, AssumeRolePolicyDocument: trust };
  try {
    await iam.change(new CreateRoleCommand(role), signal);
    return;
  } catch (error) {
    if (errorCode(error) !== 'EntityAlreadyExists') throw error;
  }
  const found = await roleOf(iam, uid, signal);
  if (!found)
    throw new StorageError('aborted', `IAM role ${uid} is being deleted, or not known everywhere yet`, {
      resource: `principal ${uid}`,
    });
  if (!found.Tags?.some(({ Key, Value }) => Key === APPLIANCE_TAG && Value === appliance))
    throw new StorageError('already_exists', `IAM role ${uid} was not made by this appliance`, {
      resource: `principal ${uid}`,
    });
  if (!sameDocument(found.AssumeRolePolicyDocument ?? '', trust))
    await iam.change(new UpdateAssumeRolePolicyCommand({ RoleName: uid, PolicyDocument: trust }), signal);
  const bounded = found.PermissionsBoundary?.PermissionsBoundaryArn;
  if (PermissionsBoundary !== undefined && bounded !== PermissionsBoundary)
    await iam.change(new PutRolePermissionsBoundaryCommand({ RoleName: uid, PermissionsBoundary }), signal);
}

export async function holdsRole(
  iam: Iam,
  config: S3Config,
  { uid, trusts }: { uid: string; trusts: ServiceAccount },
  signal: AbortSignal,
): Promise<boolean> {
  const trust = trustDocument(config, trusts);
  const role = await roleOf(iam, uid, signal);
  return trust !== undefined && role !== undefined && sameDocument(role.AssumeRolePolicyDocument ?? '', trust);
}

/** What is assumed already stays good for its hour, and may do nothing without the role's policies. */
export async function removeRole(iam: Iam, RoleName: string, signal: LeaseSignal): Promise<void> {
  const { DeleteRoleCommand, DeleteRolePolicyCommand, ListRolePoliciesCommand } = iamLibrary();
  // IAM may not know its newest role for a moment: that it lists nothing is no proof that there is none.
  const policies = await unlessGone(iam.read(new ListRolePoliciesCommand({ RoleName }), signal));
  for (const PolicyName of policies?.PolicyNames ?? [])
    await unlessGone(iam.change(new DeleteRolePolicyCommand({ RoleName, PolicyName }), signal));
  try {
    await unlessGone(iam.change(new DeleteRoleCommand({ RoleName }), signal));
  } catch (error) {
    if (errorCode(error) !== 'DeleteConflict') throw error;
    throw new StorageError(
      'failed_precondition',
      `IAM role ${RoleName} has what Trivet did not give it: take its attached policies and instance profiles away`,
      { resource: `principal ${RoleName}`, retry: 'later', cause: error },
    );
  }
}

async function roleOf(iam: Iam, RoleName: string, signal: AbortSignal) {
  const { GetRoleCommand } = iamLibrary();
  return (await unlessGone(iam.read(new GetRoleCommand({ RoleName }), signal)))?.Role;
}

async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errorCode(error) === 'NoSuchEntity') return undefined;
    throw error;
  }
}
