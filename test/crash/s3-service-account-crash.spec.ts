import { GetRoleCommand, GetRolePolicyCommand, ListRolePoliciesCommand, ListRolesCommand } from '@aws-sdk/client-iam';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { AssumeRoleWithWebIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { describe } from 'vitest';
import { errorCode } from '#backends/s3/errors';
import { describeStoreKills } from '#test/crash/describe-store-kills';
import { openS3Harness, type S3Harness, s3Parts } from '#test/object-backend/s3-harness';

const parts = s3Parts();

/** An answer has no secret, and does not say whose it is: the role that may do something at the bucket. */
async function roleAt({ iam }: S3Harness, bucket: string): Promise<string> {
  for (const { RoleName } of (await iam.send(new ListRolesCommand({ PathPrefix: '/trivet/' }))).Roles ?? [])
    for (const PolicyName of (await iam.send(new ListRolePoliciesCommand({ RoleName }))).PolicyNames ?? []) {
      const { PolicyDocument = '' } = await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
      if (decodeURIComponent(PolicyDocument).includes(`"arn:aws:s3:::${bucket}"`)) return RoleName!;
    }
  throw new Error(`no role may do anything at ${bucket}`);
}

async function open(): Promise<S3Harness> {
  const store = await openS3Harness(parts!);
  const principalKeys = async (RoleName: string) => {
    try {
      await store.iam.send(new GetRoleCommand({ RoleName }));
      return [];
    } catch (error) {
      if (/^NoSuchEntity/.test(errorCode(error))) return undefined;
      throw error;
    }
  };
  return { ...store, principalKeys };
}

describe.skipIf(!parts)('s3 with service accounts', () =>
  describeStoreKills('S3 with IAM, for service accounts', {
    open,
    appliance: () => {
      const { endpoint, ...credentials } = parts!;
      const oidcProvider = 'arn:aws:iam::123456789012:oidc-provider/oidc.example.net/id/1';
      return { backend: 's3', store: { config: { endpoint, oidcProvider, iamDelaySeconds: 0 }, credentials } };
    },
    protocol: 'S3',
    authentication: {
      authentication_type: { type: 'SERVICE_ACCOUNT' },
      service_account_name: 'uploader',
      parameters: { serviceAccountNamespace: 'shop' },
    },
    changes: {
      'access.grant': ['putPrincipal', 'putGrants'],
      'access.revoke': ['putGrants', 'removePrincipal'],
    },
    writeAs: async (store, _, Bucket) => {
      const { endpoint, ...keys } = parts!;
      const sts = new STSClient({ endpoint, region: 'us-east-1', credentials: keys });
      const request = new AssumeRoleWithWebIdentityCommand({
        RoleArn: `arn:aws:iam::123456789012:role/trivet/${await roleAt(store, Bucket)}`,
        RoleSessionName: 'pod',
        WebIdentityToken: 'token',
      });
      const { Credentials } = await store.unjudged(() => sts.send(request));
      const { AccessKeyId, SecretAccessKey, SessionToken } = Credentials!;
      const credentials = { accessKeyId: AccessKeyId!, secretAccessKey: SecretAccessKey!, sessionToken: SessionToken };
      const holder = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
      await holder.send(new PutObjectCommand({ Bucket, Key: 'mine', Body: 'x' }));
    },
  }),
);
