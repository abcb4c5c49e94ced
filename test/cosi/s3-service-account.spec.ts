/** COSI without a key on S3: a role that a service account of a cluster assumes, from the socket to what it may do. */
import { GetRoleCommand, ListRolePoliciesCommand, UpdateAssumeRolePolicyCommand } from '@aws-sdk/client-iam';
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { AssumeRoleCommand, AssumeRoleWithWebIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CosiClient, Dialect, Outcome, Reply } from '#test/cosi/client';
import { openS3Harness, type S3Harness, s3Parts } from '#test/object-backend/s3-harness';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const parts = s3Parts();
const ISSUER = 'oidc.example.net/id/1';
const PROVIDER = `arn:aws:iam::123456789012:oidc-provider/${ISSUER}`;
const NAMESPACE = { serviceAccountNamespace: 'shop' };

describe.skipIf(!parts)('service accounts on S3 with IAM', () => {
  let store: S3Harness;
  let appliance: TestAppliance;
  let client: CosiClient;
  let sts: STSClient;
  let count = 0;
  beforeAll(async () => {
    const { endpoint, ...credentials } = parts!;
    store = await openS3Harness(parts!);
    appliance = await TestAppliance.start({
      backend: 's3',
      store: { config: { endpoint, oidcProvider: PROVIDER, iamDelaySeconds: 0 }, credentials },
    });
    client = appliance.client();
    sts = new STSClient({ endpoint, region: 'us-east-1', credentials });
  });
  afterAll(async () => {
    sts?.destroy();
    await appliance?.close();
    await store?.close();
  });

  async function settled(dialect: Dialect, method: string, request: object): Promise<Outcome> {
    return until(`${method} is answered`, async () => {
      const one = await client.call(dialect, method, request);
      return ['ABORTED', 'UNAVAILABLE'].includes(one.code) ? undefined : one;
    });
  }
  async function ok(dialect: Dialect, method: string, request: object): Promise<Reply> {
    const outcome = await settled(dialect, method, request);
    expect(outcome, outcome.message).toMatchObject({ code: 'OK' });
    return outcome.reply;
  }
  async function make(): Promise<string> {
    const name = `${store.prefix}w${++count}`;
    await ok('r1', 'DriverCreateBucket', {
      name,
      protocols: [{ type: 'S3' }],
      parameters: { deletePolicy: 'purge' },
    });
    return name;
  }
  const wish = (name: string, buckets: Record<string, string>, more: object = {}) => ({
    account_name: name,
    protocol: { type: 'S3' },
    authentication_type: { type: 'SERVICE_ACCOUNT' },
    service_account_name: 'uploader',
    parameters: NAMESPACE,
    buckets: Object.entries(buckets).map(([bucket_id, mode]) => ({ bucket_id, access_mode: { mode } })),
    ...more,
  });
  const grant = (name: string, buckets: Record<string, string>, more?: object) =>
    ok('r1', 'DriverGrantBucketAccess', wish(name, buckets, more));
  const revoke = (account_id: string, ...buckets: string[]) =>
    ok('r1', 'DriverRevokeBucketAccess', { account_id, buckets: buckets.map(bucket_id => ({ bucket_id })) });
  const roleArn = (account: string) => `arn:aws:iam::123456789012:role/trivet/${account}`;
  /** As the SDK in a pod does with the token that it finds there, which moto does not look at. */
  async function holderOf(account: string): Promise<S3Client> {
    const request = new AssumeRoleWithWebIdentityCommand({
      RoleArn: roleArn(account),
      RoleSessionName: 'pod',
      WebIdentityToken: 'token',
    });
    const { Credentials } = await store.unjudged(() => sts.send(request));
    const { AccessKeyId, SecretAccessKey, SessionToken } = Credentials!;
    return new S3Client({
      endpoint: parts!.endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      maxAttempts: 1,
      credentials: { accessKeyId: AccessKeyId!, secretAccessKey: SecretAccessKey!, sessionToken: SessionToken },
    });
  }
  const refused = (work: Promise<unknown>) =>
    expect(work).rejects.toMatchObject({ $metadata: { httpStatusCode: 403 } });
  const roleOf = async (RoleName: string) => (await store.iam.send(new GetRoleCommand({ RoleName }))).Role!;
  const trustOf = async (account: string) =>
    JSON.parse(decodeURIComponent((await roleOf(account)).AssumeRolePolicyDocument!));

  it('gives a role that this one account of this one cluster assumes, and no secret', async () => {
    const [one, two, other] = [await make(), await make(), await make()];
    const first = await grant(`ba-${one}`, { [one]: 'READ_WRITE', [two]: 'READ_ONLY' });
    const { account_id: account, credentials } = first;
    expect(account).toMatch(/^trivet-sa-[0-9a-f-]{36}$/);
    expect(credentials).toEqual({ s3: { access_key_id: '', access_secret_key: '' } });
    expect(first.buckets.map((bucket: Reply) => bucket.bucket_info.s3.bucket_id).sort()).toEqual([one, two].sort());
    expect(await grant(`ba-${one}`, { [two]: 'READ_ONLY', [one]: 'READ_WRITE' })).toEqual(first);

    expect((await roleOf(account)).Path).toBe('/trivet/');
    expect(await trustOf(account)).toEqual({
      Version: '2012-10-17',
      Statement: [
        {
          Effect: 'Allow',
          Principal: { Federated: PROVIDER },
          Action: 'sts:AssumeRoleWithWebIdentity',
          Condition: {
            StringEquals: {
              [`${ISSUER}:sub`]: 'system:serviceaccount:shop:uploader',
              [`${ISSUER}:aud`]: 'sts.amazonaws.com',
            },
          },
        },
      ],
    });
    expect(await store.users()).not.toContain(account);
    // Whoever has a key of the account, and all rights, is not that service account.
    await refused(sts.send(new AssumeRoleCommand({ RoleArn: roleArn(account), RoleSessionName: 'else' })));
    const holder = await holderOf(account);
    await holder.send(new PutObjectCommand({ Bucket: one, Key: 'it', Body: 'x' }));
    await holder.send(new GetObjectCommand({ Bucket: one, Key: 'it' }));
    await holder.send(new ListObjectsV2Command({ Bucket: two }));
    await refused(holder.send(new PutObjectCommand({ Bucket: two, Key: 'it', Body: 'x' })));
    await refused(holder.send(new ListObjectsV2Command({ Bucket: other })));

    await revoke(account, two);
    await refused(holder.send(new ListObjectsV2Command({ Bucket: two })));
    await holder.send(new GetObjectCommand({ Bucket: one, Key: 'it' }));
    await ok('r1', 'DriverDeleteBucket', { bucket_id: one });
    expect((await store.iam.send(new ListRolePoliciesCommand({ RoleName: account }))).PolicyNames).toHaveLength(1);
    await revoke(account);
    await expect(roleOf(account)).rejects.toMatchObject({ name: expect.stringContaining('NoSuchEntity') });
  });

  it('puts right what somebody changed of the role', async () => {
    const bucket = await make();
    const first = await grant(`ba-${bucket}`, { [bucket]: 'READ_ONLY' });
    const trust = await trustOf(first.account_id);
    const PolicyDocument = JSON.stringify(trust).replace('shop:uploader', 'shop:somebody-else');
    await store.iam.send(new UpdateAssumeRolePolicyCommand({ RoleName: first.account_id, PolicyDocument }));
    await appliance.database.query('UPDATE trivet.access SET stale = true WHERE account_id = $1', [first.account_id]);
    expect(await grant(`ba-${bucket}`, { [bucket]: 'READ_ONLY' })).toEqual(first);
    expect(await trustOf(first.account_id)).toEqual(trust);
    await revoke(first.account_id);
  });

  it('trusts the provider that the backend has by now, whatever a worker has read of it before', async () => {
    const bucket = await make();
    const first = await grant(`ba-${bucket}`, { [bucket]: 'READ_ONLY' });
    await revoke(first.account_id);
    const provide = (provider: string) =>
      appliance.database.query(
        `UPDATE trivet.backend SET version = version + 1, config = config || jsonb_build_object('oidcProvider', $1::text)
          WHERE kind = 's3'`,
        [provider],
      );
    await provide(`${PROVIDER}0`);
    const second = await grant(`bb-${bucket}`, { [bucket]: 'READ_ONLY' });
    expect((await trustOf(second.account_id)).Statement[0].Principal).toEqual({ Federated: `${PROVIDER}0` });
    await revoke(second.account_id);
    await provide(PROVIDER);
  });

  it('is another request for another account, or a key', async () => {
    const bucket = await make();
    const { account_id } = await grant(`ba-${bucket}`, { [bucket]: 'READ_ONLY' });
    for (const more of [
      { service_account_name: 'another' },
      { parameters: { serviceAccountNamespace: 'another' } },
      { authentication_type: { type: 'KEY' }, service_account_name: '', parameters: {} },
    ])
      expect(
        await settled('r1', 'DriverGrantBucketAccess', wish(`ba-${bucket}`, { [bucket]: 'READ_ONLY' }, more)),
      ).toMatchObject({ code: 'ALREADY_EXISTS', message: expect.stringContaining('service_account_name') });
    await revoke(account_id);
  });

  it.each([
    ['no namespace', { parameters: {} }, 'parameters[serviceAccountNamespace]'],
    ['a wrong namespace', { parameters: { serviceAccountNamespace: 'a/b' } }, 'parameters[serviceAccountNamespace]'],
    ['a wrong name', { service_account_name: 'a:b' }, 'service_account_name'],
    ['a wildcard', { service_account_name: '*' }, 'service_account_name'],
    ['a change of keys', { parameters: { ...NAMESPACE, rotateAfter: '90d' } }, 'parameters[rotateAfter]'],
    ['an end', { parameters: { ...NAMESPACE, expiresAfter: '90d' } }, 'parameters[expiresAfter]'],
    [
      'a namespace with a key',
      { authentication_type: { type: 'KEY' }, service_account_name: '' },
      'parameters[serviceAccountNamespace]',
    ],
  ])('refuses %s', async (_, more, named) => {
    const outcome = await client.call('r1', 'DriverGrantBucketAccess', wish('ba-refused', { none: 'READ_ONLY' }, more));
    expect(outcome).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(named) });
  });

  it('takes the account from the class in v1alpha1, whose sidecars do not send it', async () => {
    const bucket = await make();
    const request = (parameters: Record<string, string>) => ({
      bucket_id: bucket,
      name: `ba-${bucket}`,
      authentication_type: 'IAM',
      parameters,
    });
    const nameless = await client.call('v1alpha1', 'DriverGrantBucketAccess', request(NAMESPACE));
    expect(nameless).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('parameters[serviceAccountName]'),
    });
    const { account_id, credentials } = await ok(
      'v1alpha1',
      'DriverGrantBucketAccess',
      request({ ...NAMESPACE, serviceAccountName: 'uploader' }),
    );
    expect(credentials.s3.secrets).toMatchObject({ accessKeyID: '', accessSecretKey: '' });
    await (await holderOf(account_id)).send(new PutObjectCommand({ Bucket: bucket, Key: 'it', Body: 'x' }));
    await revoke(account_id);
  });
});
