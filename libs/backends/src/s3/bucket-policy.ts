/**
 * The part of a bucket policy that is ours, generated from the grants in Postgres.
 *
 * An Allow alone does not make an access mode: RGW gives the uploader of an object full control by the object's ACL, so
 * a write-only principal reads back what it wrote, may publish it, and goes on doing so after its Allow is gone. Each
 * mode therefore carries an explicit Deny, which wins over ACLs, for what it forbids (invariant O2). The Deny names
 * actions: RGW 16.2 ignores a Deny with NotAction. A revoked principal that lives on with other buckets keeps a Deny
 * for everything (O4).
 *
 * Statements are ours when their Sid begins with `trivet`. All others stay as they are, in their order, before ours.
 * Principals of one mode share its two statements, so that the size grows by two ARNs for each grant and no more (O5).
 */

import type { Grant } from '#backends/object-backend';
import { StorageError } from '#platform/errors';

const SID_PREFIX = 'trivet';

/** Longest principal name and RGW tenant that the adapters use; the size of a policy is computed from them. */
export const MAX_UID_LENGTH = 64;
export const MAX_RGW_TENANT_LENGTH = 64;

export interface PolicyScope {
  bucket: string;
  /** Empty outside RGW's multi-tenancy. */
  tenant: string;
}

interface Statement {
  Sid?: string;
  [key: string]: unknown;
}

interface PolicyDocument {
  Version?: string;
  Statement: Statement[];
  [key: string]: unknown;
}

type Mode = Grant['mode'];
const MODES: readonly Mode[] = ['read_write', 'read_only', 'write_only', 'revoked'];
const SIDS: Readonly<Record<Mode, string>> = {
  read_write: 'ReadWrite',
  read_only: 'ReadOnly',
  write_only: 'WriteOnly',
  revoked: 'Revoked',
};

const READ_OBJECT = ['s3:GetObject', 's3:GetObjectVersion'];
const LIST = ['s3:ListBucket', 's3:ListBucketVersions', 's3:GetBucketLocation'];
const WRITE_OBJECT = ['s3:PutObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts'];
const REMOVE_OBJECT = ['s3:DeleteObject', 's3:DeleteObjectVersion'];

export const ALLOWED: Readonly<Record<Mode, readonly string[]>> = {
  read_write: [...READ_OBJECT, ...LIST, ...WRITE_OBJECT, 's3:ListBucketMultipartUploads', ...REMOVE_OBJECT],
  read_only: [...READ_OBJECT, ...LIST],
  write_only: WRITE_OBJECT,
  revoked: [],
};

/** Nobody but the owner decides who else may come in, and what the bucket is. */
const ADMINISTRATION = [
  's3:GetObjectAcl',
  's3:GetObjectVersionAcl',
  's3:PutObjectAcl',
  's3:PutObjectVersionAcl',
  's3:GetBucketAcl',
  's3:PutBucketAcl',
  's3:PutBucketPolicy',
  's3:DeleteBucketPolicy',
  's3:PutBucketTagging',
  's3:PutBucketVersioning',
  's3:PutLifecycleConfiguration',
];

export const DENIED: Readonly<Record<Mode, readonly string[]>> = {
  read_write: ADMINISTRATION,
  read_only: [
    's3:Put*',
    's3:Delete*',
    's3:AbortMultipartUpload',
    's3:GetObjectAcl',
    's3:GetObjectVersionAcl',
    's3:GetBucketAcl',
  ],
  write_only: ['s3:GetObject*', 's3:ListBucket*', ...REMOVE_OBJECT, 's3:DeleteObject*', ...ADMINISTRATION].filter(
    unique,
  ),
  revoked: ['s3:*'],
};

function unique<T>(value: T, index: number, all: readonly T[]): boolean {
  return all.indexOf(value) === index;
}

/** Principal of a user, in the form that RGW reads: the tenant stands where AWS has the account. */
const principalArn = (tenant: string, uid: string): string => `arn:aws:iam::${tenant}:user/${uid}`;

/** Our statements for these grants; none for no grant. Independent of the order of the grants. */
function grantStatements(scope: PolicyScope, grants: readonly Grant[]): Statement[] {
  const bucketArn = `arn:aws:s3::${scope.tenant}:${scope.bucket}`;
  return MODES.flatMap(mode => {
    const principals = grants
      .filter(grant => grant.mode === mode)
      .map(grant => principalArn(scope.tenant, grant.uid))
      .sort();
    if (principals.length === 0) return [];
    const statement = (effect: 'Allow' | 'Deny', actions: readonly string[]): Statement => ({
      Sid: `${SID_PREFIX}${SIDS[mode]}${effect}`,
      Effect: effect,
      Principal: { AWS: principals },
      Action: actions,
      Resource: [bucketArn, `${bucketArn}/*`],
    });
    return ALLOWED[mode].length === 0
      ? [statement('Deny', DENIED[mode])]
      : [statement('Allow', ALLOWED[mode]), statement('Deny', DENIED[mode])];
  });
}

/** The grants that our statements in this policy express; what the statements of others say is not looked at. */
export function grantsOf(policy: string | undefined): Grant[] {
  return parsePolicy(policy)
    .Statement.filter(isOurs)
    .flatMap(statement => {
      const mode = MODES.find(m => statement.Sid === `${SID_PREFIX}${SIDS[m]}Deny`);
      const principal = statement.Principal as { AWS?: string | string[] } | undefined;
      const arns = typeof principal?.AWS === 'string' ? [principal.AWS] : (principal?.AWS ?? []);
      return mode === undefined ? [] : arns.map(arn => ({ uid: arn.slice(arn.indexOf(':user/') + 6), mode }));
    });
}

/**
 * The policy's text with our statements replaced by those for `grants`; undefined when no statement is left. A policy
 * that cannot be parsed is `failed_precondition`: somebody has to look at it before anything is written over it.
 */
export function mergePolicy(
  current: string | undefined,
  scope: PolicyScope,
  grants: readonly Grant[],
): string | undefined {
  const document = parsePolicy(current, scope.bucket);
  const statements = [...document.Statement.filter(s => !isOurs(s)), ...grantStatements(scope, grants)];
  if (statements.length === 0) return undefined;
  return JSON.stringify({ ...document, Version: document.Version ?? '2012-10-17', Statement: statements });
}

/** The same statements in the same order, whatever the spelling of the JSON text. */
export function samePolicy(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  try {
    return JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
  } catch {
    return a === b;
  }
}

/** Bytes of a policy with these many principals, none of which has a longer name than the adapters allow. */
export function policyBytes(bucket: string, counts: Readonly<Record<Mode, number>>): number {
  const tenant = 't'.repeat(MAX_RGW_TENANT_LENGTH);
  const uid = 'u'.repeat(MAX_UID_LENGTH);
  const one = MODES.filter(mode => counts[mode] > 0).map(mode => ({ uid, mode }));
  const statements = JSON.stringify({ Version: '2012-10-17', Statement: grantStatements({ bucket, tenant }, one) });
  const arn = principalArn(tenant, uid).length + '"",'.length;
  const more = MODES.reduce(
    (sum, mode) => sum + Math.max(0, counts[mode] - 1) * arn * (ALLOWED[mode].length === 0 ? 1 : 2),
    0,
  );
  return Buffer.byteLength(statements) + more;
}

function isOurs(statement: Statement): boolean {
  return typeof statement.Sid === 'string' && statement.Sid.startsWith(SID_PREFIX);
}

function parsePolicy(text: string | undefined, bucket = ''): PolicyDocument {
  if (text === undefined || text === '') return { Statement: [] };
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw unusable(bucket, 'is not JSON', cause);
  }
  const statements = (document as { Statement?: unknown } | null)?.Statement;
  // A single statement may stand without a list around it.
  const list = Array.isArray(statements) ? statements : [statements];
  if (!list.every(s => typeof s === 'object' && s !== null && !Array.isArray(s)))
    throw unusable(bucket, 'has no list of statements');
  return { ...(document as object), Statement: list as Statement[] };
}

function unusable(bucket: string, what: string, cause?: unknown): StorageError {
  return new StorageError(
    'failed_precondition',
    `the policy of bucket ${bucket} ${what}; correct or remove it at the store, then retry`,
    { resource: `bucket ${bucket}`, cause },
  );
}
