/**
 * What an access may do at one bucket: an inline policy of its user, by the bucket's incarnation, so that what writes the one
 * never meets what writes another. An Allow alone would leave a way around: where a store has ACLs the uploader owns what it
 * wrote, and a bucket's own policy may allow more. So each mode denies what it forbids, by patterns that take little of IAM's
 * 2,048 characters (invariant O2).
 */
import { type Grant, type GrantTarget, KEYLESS, MissingPrincipal, type Right } from '#backends/object-backend';
import { iamLibrary } from '#backends/s3/aws-sdk';
import { ALLOWED } from '#backends/s3/bucket-policy';
import { errorCode } from '#backends/s3/errors';
import type { Iam } from '#backends/s3/iam';
import { sameDocument } from '#backends/s3/policy-document';
import type { LeaseSignal } from '#platform/lease-signal';

type Mode = Grant['mode'];

/** Roles have policies as users have, by requests of their own. */
export const isRole = (uid: string): boolean => uid.startsWith(KEYLESS);

/** Of all inline policies of a user together; spaces do not count. */
export const MAX_RIGHTS_BYTES = 2_048;

const ADMINISTRATION = ['s3:*Acl', 's3:*BucketPolicy', 's3:PutBucket*', 's3:PutLifecycleConfiguration'];
export const DENIED: Readonly<Record<Mode, readonly string[]>> = {
  read_write: ADMINISTRATION,
  read_only: ['s3:Put*', 's3:Delete*', 's3:AbortMultipartUpload', 's3:*Acl'],
  write_only: ['s3:GetObject*', 's3:ListBucket*', 's3:DeleteObject*', ...ADMINISTRATION],
  revoked: ['s3:*'],
};

export function rightsDocument(bucket: string, mode: Mode): string {
  const arn = `arn:aws:s3:::${bucket}`;
  const Resource = [arn, `${arn}/*`];
  const allow = { Effect: 'Allow', Action: ALLOWED[mode], Resource };
  const deny = { Effect: 'Deny', Action: DENIED[mode], Resource };
  return JSON.stringify({ Version: '2012-10-17', Statement: mode === 'revoked' ? [deny] : [allow, deny] });
}

export const rightsBytes = (rights: readonly Right[]): number =>
  rights.reduce((sum, { bucket, mode }) => sum + rightsDocument(bucket, mode).length, 0);

const nameOf = ({ name, incarnation }: GrantTarget): string =>
  incarnation === undefined ? `trivet.${name}` : `trivet-${incarnation}`;

/** What is taken away or denied holds whatever has become of the bucket; what is allowed is so at this one alone. */
export function partedRights(grants: readonly Grant[], whose: readonly string[]) {
  const given = new Map(grants.map(grant => [grant.uid, grant]));
  const ours = whose.flatMap(uid => given.get(uid) ?? []);
  return {
    dropped: whose.filter(uid => !given.has(uid)),
    denied: ours.filter(({ mode }) => mode === 'revoked'),
    allowed: ours.filter(({ mode }) => mode !== 'revoked'),
  };
}

export async function writeRights(
  iam: Iam,
  bucket: GrantTarget,
  { uid, mode }: Grant,
  signal: LeaseSignal,
): Promise<void> {
  const { PutUserPolicyCommand, PutRolePolicyCommand } = iamLibrary();
  if (await saysRights(iam, bucket, { uid, mode }, signal)) return;
  const policy = { PolicyName: nameOf(bucket), PolicyDocument: rightsDocument(bucket.name, mode) };
  try {
    if (isRole(uid)) await iam.change(new PutRolePolicyCommand({ RoleName: uid, ...policy }), signal);
    else await iam.change(new PutUserPolicyCommand({ UserName: uid, ...policy }), signal);
  } catch (error) {
    throw errorCode(error) === 'NoSuchEntity' ? new MissingPrincipal(uid, error) : error;
  }
}

export async function dropRights(iam: Iam, bucket: GrantTarget, uid: string, signal: LeaseSignal): Promise<void> {
  const { DeleteUserPolicyCommand, DeleteRolePolicyCommand } = iamLibrary();
  const PolicyName = nameOf(bucket);
  try {
    if (isRole(uid)) await iam.change(new DeleteRolePolicyCommand({ RoleName: uid, PolicyName }), signal);
    else await iam.change(new DeleteUserPolicyCommand({ UserName: uid, PolicyName }), signal);
  } catch (error) {
    if (errorCode(error) !== 'NoSuchEntity') throw error;
  }
}

/** `mode` undefined: that there are none. */
export async function saysRights(
  iam: Iam,
  bucket: GrantTarget,
  { uid, mode }: { uid: string; mode: Mode | undefined },
  signal: AbortSignal,
): Promise<boolean> {
  const { GetUserPolicyCommand, GetRolePolicyCommand } = iamLibrary();
  const PolicyName = nameOf(bucket);
  try {
    const { PolicyDocument = '' } = isRole(uid)
      ? await iam.read(new GetRolePolicyCommand({ RoleName: uid, PolicyName }), signal)
      : await iam.read(new GetUserPolicyCommand({ UserName: uid, PolicyName }), signal);
    return mode !== undefined && sameDocument(PolicyDocument, rightsDocument(bucket.name, mode));
  } catch (error) {
    if (errorCode(error) === 'NoSuchEntity') return mode === undefined;
    throw error;
  }
}
