import { z } from 'zod';
import type { BackendCredentials } from '#backends/object-backend';
import { StorageError } from '#platform/errors';

/** The example stands before the transform: of what is sent, not of what is kept. */
const address = (example: string) =>
  z
    .url({ protocol: /^https?$/ })
    .meta({ examples: [example] })
    .transform(url => url.replace(/\/+$/, ''));
const role = (what: string) =>
  z.string().regex(/^arn:[\w-]+:iam::\d{12}:(role|policy)\/[\w+=,.@/-]+$/, `expected the ARN of a ${what}`);

export const s3Config = z
  .strictObject({
    region: z
      .string()
      .regex(/^[a-z0-9-]+$/, 'expected the name of a region, as us-east-1')
      .default('us-east-1')
      .meta({ title: 'Region', description: 'Of the buckets; one backend for each region' }),
    endpoint: address('https://s3.example.net').optional().meta({
      title: 'Endpoint',
      description: 'Where Trivet reaches S3. That of AWS in the region when absent',
    }),
    publicEndpoint: address('https://s3.example.net').optional().meta({
      title: 'Public endpoint',
      description: 'Where users reach it; goes into their credentials. The endpoint when absent',
    }),
    iamEndpoint: address('https://iam.example.net').optional().meta({
      title: 'IAM endpoint',
      description: 'The endpoint when absent, or that of AWS',
    }),
    stsEndpoint: address('https://sts.example.net').optional().meta({
      title: 'STS endpoint',
      description: 'Where a role is assumed. The endpoint when absent, or that of AWS in the region',
    }),
    addressing: z.enum(['path', 'virtual']).default('path').meta({
      title: 'Addressing',
      description: 'Of buckets, as users are told: in the path or in the name of the host. Trivet uses the path',
    }),
    userPath: z
      .string()
      .regex(/^\/([\w.,=@+-]+\/)+$/, 'expected a path that begins and ends with a slash')
      .max(120)
      .default('/trivet/')
      .meta({ title: 'User path', description: 'Of the IAM users that Trivet makes; nobody else makes users there' }),
    permissionsBoundary: role('policy')
      .optional()
      .meta({
        title: 'Permissions boundary',
        description: 'ARN of the policy that bounds each of these users',
        examples: ['arn:aws:iam::123456789012:policy/trivet-boundary'],
      }),
    oidcProvider: z
      .string()
      // Of this partition alone, as the rights name buckets of it.
      .regex(/^arn:aws:iam::\d{12}:oidc-provider\/[\w.:/-]+$/, 'expected the ARN of a provider of identities in IAM')
      .optional()
      .meta({
        title: 'Identity provider',
        description: 'ARN of the cluster’s, in IAM: workloads come in by their service accounts, without a key',
        examples: ['arn:aws:iam::123456789012:oidc-provider/oidc.eks.eu-central-1.amazonaws.com/id/EXAMPLE'],
      }),
    oidcAudience: z.string().min(1).max(255).default('sts.amazonaws.com').meta({
      title: 'Audience',
      description: 'That the tokens of these service accounts are for',
    }),
    iamDelaySeconds: z
      .int()
      .min(0)
      .max(600)
      .optional()
      .meta({
        title: 'Delay of IAM',
        description:
          'How long S3 may go by former rights of a service account: a bucket that one could use goes so long after. 10 when absent',
        examples: [10],
      }),
    roleArn: role('role')
      .optional()
      .meta({
        title: 'Role',
        description: 'ARN of a role that Trivet assumes, for one hour at a time',
        examples: ['arn:aws:iam::123456789012:role/trivet'],
      }),
    externalId: z
      .string()
      .min(2)
      .max(1224)
      .optional()
      .meta({ title: 'External id', description: 'That the role asks for' }),
  })
  .meta({
    title: 'S3 with IAM',
    description: 'Buckets and their accesses over S3 and the IAM API: AWS, and what speaks both',
  });
export type S3Config = z.output<typeof s3Config>;

export const s3Credentials = z
  .strictObject({
    accessKeyId: z
      .string()
      .min(1)
      .optional()
      .meta({ title: 'Access key', description: 'Of the user by whom Trivet works there' }),
    secretAccessKey: z
      .string()
      .min(1)
      .optional()
      .meta({ title: 'Secret key', description: 'Of the same user', format: 'password' }),
  })
  .refine(
    given => (given.accessKeyId === undefined) === (given.secretAccessKey === undefined),
    'expected both keys, or none of them',
  )
  .meta({ description: 'None: those that the process has by itself, as the SDK of AWS looks for them' });
export type S3Credentials = z.output<typeof s3Credentials>;

/** The registry's row; throws `internal` when it does not fit. */
export function parseS3Config(row: unknown): S3Config {
  const parsed = s3Config.safeParse(row);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', `configuration of the s3 backend: ${z.prettifyError(parsed.error)}`);
}

/** The error never holds what was given. */
export function parseS3Credentials(given: BackendCredentials): S3Credentials {
  const parsed = s3Credentials.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new StorageError(
    'internal',
    'credentials of the s3 backend: expected accessKeyId and secretAccessKey, or none',
  );
}

export interface Places {
  s3: string;
  iam: string;
  /** IAM of AWS is one for all regions. */
  iamRegion: string;
  sts: string;
}

export function placesOf({ endpoint, iamEndpoint, stsEndpoint, region }: S3Config): Places {
  return {
    s3: endpoint ?? `https://s3.${region}.amazonaws.com`,
    iam: iamEndpoint ?? endpoint ?? 'https://iam.amazonaws.com',
    iamRegion: (iamEndpoint ?? endpoint) === undefined ? 'us-east-1' : region,
    sts: stsEndpoint ?? endpoint ?? `https://sts.${region}.amazonaws.com`,
  };
}
