import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CreateAccessKeyCommand,
  CreateUserCommand,
  DeleteAccessKeyCommand,
  DeleteUserCommand,
  DeleteUserPolicyCommand,
  ListRolesCommand,
  PutUserPolicyCommand,
} from '@aws-sdk/client-iam';
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ObjectBackend } from '#backends/object-backend';
import { unleased } from '#platform/lease-signal';
import { PACKAGE_ROOT } from '#platform/package-root';
import { openS3Harness, type S3Harness, s3Parts } from '#test/object-backend/s3-harness';

const parts = s3Parts();
const soon = () => unleased(AbortSignal.timeout(60_000));
const PROBE = /^trivet-probe-/;

describe.skipIf(!parts)('rights of Trivet’s own at S3 and IAM', () => {
  const UserName = `trivet-own-${randomUUID().slice(0, 8)}`;
  let store: S3Harness;
  let backend: ObjectBackend;
  let own: { accessKeyId: string; secretAccessKey: string };
  beforeAll(async () => {
    store = await openS3Harness(parts!);
    await store.iam.send(new CreateUserCommand({ UserName }));
    const { AccessKey } = await store.iam.send(new CreateAccessKeyCommand({ UserName }));
    own = { accessKeyId: AccessKey!.AccessKeyId!, secretAccessKey: AccessKey!.SecretAccessKey! };
    backend = store.open('limited', {}, own);
  });
  afterAll(async () => {
    backend?.close();
    await store?.iam.send(new DeleteAccessKeyCommand({ UserName, AccessKeyId: own.accessKeyId }));
    await store?.iam.send(new DeleteUserPolicyCommand({ UserName, PolicyName: 'own' }));
    await store?.iam.send(new DeleteUserCommand({ UserName }));
    await store?.close();
  });

  const may = (...Statement: object[]) =>
    store.iam.send(
      new PutUserPolicyCommand({
        UserName,
        PolicyName: 'own',
        PolicyDocument: JSON.stringify({ Version: '2012-10-17', Statement }),
      }),
    );
  const allow = (Action: string[]) => ({ Effect: 'Allow', Action, Resource: '*' });
  const deny = (Action: string[]) => ({ Effect: 'Deny', Action, Resource: '*' });
  const left = async () => {
    const { Buckets = [] } = await store.admin.send(new ListBucketsCommand({}));
    return [...Buckets.map(({ Name = '' }) => Name), ...(await store.users())].filter(name => PROBE.test(name));
  };

  it('are tried each, and nothing is left', async () => {
    await may(allow(['s3:*', 'iam:*']));
    for (let time = 0; time < 2; time++) {
      expect(await backend.tryRights(soon())).toEqual([
        { name: 'rights at S3', ok: true, detail: 'all 14 rights that are needed at S3' },
        { name: 'rights at IAM', ok: true, detail: 'all 10 rights that are needed at IAM' },
      ]);
      expect(await left()).toEqual([]);
    }
  });

  it.each([
    's3:CreateBucket',
    's3:PutBucketTagging',
    's3:DeleteObject',
    's3:DeleteBucket',
    's3:ListBucketVersions',
    's3:AbortMultipartUpload',
    'iam:CreateUser',
    'iam:PutUserPolicy',
    'iam:CreateAccessKey',
    'iam:ListAccessKeys',
  ])('are named when %s alone is missing', async right => {
    await may(allow(['s3:*', 'iam:*']), deny([right]));
    const checks = await backend.tryRights(soon());
    const missing = checks.filter(({ ok }) => !ok);
    expect(missing).toHaveLength(1);
    const { detail } = missing[0]!;
    const where = right.startsWith('s3') ? 'S3' : 'IAM';
    const others = /:Create(Bucket|User)$/.test(right) ? ' (the rights at what it makes were not tried)' : '';
    expect(detail).toBe(`Trivet lacks at ${where}: ${right}${others}`);
    await may(allow(['s3:*', 'iam:*']));
    await backend.tryRights(soon());
    expect(await left()).toEqual([]);
  });

  it('are all named together, and are those that the documentation names', async () => {
    await may(allow(['s3:CreateBucket', 's3:ListAllMyBuckets', 'iam:CreateUser', 'iam:ListUsers']));
    const named = (await backend.tryRights(soon())).flatMap(({ detail }) => detail.match(/(s3|iam):[A-Za-z]+/g) ?? []);
    // moto judges no others.
    expect(named).toHaveLength(19);
    const [, told = ''] =
      /Rights that Trivet needs\*\*:([\s\S]*?)\n- /.exec(readFileSync(join(PACKAGE_ROOT, 'docs/buckets.md'), 'utf8')) ??
      [];
    for (const right of named) expect(told).toMatch(new RegExp(`\\b${right.split(':')[1]}\\b`));
    await may(allow(['s3:*', 'iam:*']));
    await backend.tryRights(soon());
    expect(await left()).toEqual([]);
  });

  it('are tried at a role, too, where service accounts come in', async () => {
    const oidcProvider = 'arn:aws:iam::123456789012:oidc-provider/oidc.example.net/id/1';
    const withRoles = store.open('roles', { oidcProvider }, own);
    await may(allow(['s3:*', 'iam:*']));
    expect((await withRoles.tryRights(soon())).at(-1)).toEqual({
      name: 'rights at IAM for roles',
      ok: true,
      detail: 'all 8 rights that are needed at IAM for roles',
    });
    await may(allow(['s3:*', 'iam:*']), deny(['iam:PutRolePolicy', 'iam:UpdateAssumeRolePolicy']));
    expect((await withRoles.tryRights(soon())).at(-1)!.detail).toBe(
      'Trivet lacks at IAM for roles: iam:UpdateAssumeRolePolicy, iam:PutRolePolicy',
    );
    const { Roles = [] } = await store.iam.send(new ListRolesCommand({ PathPrefix: '/trivet/' }));
    expect(Roles.filter(({ RoleName = '' }) => PROBE.test(RoleName))).toEqual([]);
    withRoles.close();
  });

  it('are named where an operation meets that one is missing', async () => {
    const ref = { name: `${store.prefix}rights`, incarnation: randomUUID() };
    const spec = { versioning: false, objectLock: false, tags: {}, deletePolicy: 'retain' as const };
    const uid = `trivet-${randomUUID()}`;
    const denied = async (right: string, work: () => Promise<unknown>) => {
      await may(allow(['s3:*', 'iam:*']), deny([right]));
      await expect(work()).rejects.toMatchObject({
        kind: 'permission_denied',
        message: expect.stringContaining(`Trivet needs the right ${right}`),
      });
    };
    await denied('s3:CreateBucket', () => backend.createBucket(ref, spec, soon()));
    await denied('iam:CreateUser', () =>
      backend.putPrincipal({ uid, accessKeyId: '', secretAccessKey: '', displayName: 'x' }, soon()),
    );
  });

  it('are not said to be missing where the key is wrong', async () => {
    for (const { ok, detail } of await store.refused.tryRights(soon())) {
      expect(ok).toBe(false);
      expect(detail).toContain('check the keys of this backend');
    }
    for (const { ok, detail } of await store.unreachable.tryRights(soon())) {
      expect(ok).toBe(false);
      expect(detail).toContain('http://127.0.0.1:1');
    }
  });
});
