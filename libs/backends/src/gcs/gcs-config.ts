import { z } from 'zod';
import { POOL } from '#backends/gcs/pool-names';
import type { BackendCredentials } from '#backends/object-backend';
import { StorageError } from '#platform/errors';

/** The example stands before the transform: of what is sent, not of what is kept. */
const address = (example: string) =>
  z
    .url({ protocol: /^https?$/ })
    .meta({ examples: [example] })
    .transform(url => url.replace(/\/+$/, ''));

const SOFT_DELETE_DAYS = { least: 7, most: 90 };

export const gcsConfig = z
  .strictObject({
    project: z
      .string()
      .regex(/^[a-z][a-z0-9-]{4,28}[a-z0-9]$/, 'expected the id of a project')
      .meta({ title: 'Project', description: 'Id of the project that has the buckets, and the service accounts' }),
    location: z
      .string()
      .regex(/^[A-Za-z0-9-]{2,40}$/, 'expected a region, dual-region or multi-region')
      .default('US')
      .transform(name => name.toUpperCase())
      .meta({
        title: 'Location',
        description: 'Where buckets are made that name no region',
        examples: ['EUROPE-WEST3'],
      }),
    softDeleteDays: z
      .union([z.literal(0), z.int().min(SOFT_DELETE_DAYS.least).max(SOFT_DELETE_DAYS.most)])
      .optional()
      .meta({
        title: 'Soft delete',
        description:
          'Days for which the store keeps, and bills, what was deleted: 0, or 7 to 90. As the project has it when absent',
      }),
    workloadIdentityPool: z
      .string()
      .regex(
        POOL,
        'expected projects/NUMBER/locations/global/workloadIdentityPools/POOL, or PROJECT.svc.id.goog of GKE',
      )
      .optional()
      .meta({
        title: 'Workload identity pool',
        description: 'Of one cluster: workloads come in by their service accounts, without a key',
        examples: ['projects/123456789012/locations/global/workloadIdentityPools/cluster-one'],
      }),
    endpoint: address('https://storage.googleapis.com')
      .default('https://storage.googleapis.com')
      .meta({ title: 'Storage endpoint', description: 'Where Trivet reaches Cloud Storage, by JSON and by XML' }),
    iamEndpoint: address('https://iam.googleapis.com')
      .default('https://iam.googleapis.com')
      .meta({ title: 'IAM endpoint', description: 'Where service accounts are made' }),
    resourceManagerEndpoint: address('https://cloudresourcemanager.googleapis.com')
      .default('https://cloudresourcemanager.googleapis.com')
      .meta({
        title: 'Resource Manager endpoint',
        description: 'Where the connection test asks which rights are missing',
      }),
    publicEndpoint: address('https://storage.googleapis.com').optional().meta({
      title: 'Public endpoint',
      description:
        'Where users reach Cloud Storage as S3; goes into their credentials. The storage endpoint when absent',
    }),
  })
  .meta({
    title: 'Google Cloud Storage',
    description: 'Buckets of one project, and a service account with an HMAC key for each access',
  });
export type GcsConfig = z.output<typeof gcsConfig>;

/** Of the file that Google gives for a key of a service account; no other kind, which could name addresses and programs. */
const keyFile = z.looseObject({
  type: z.literal('service_account'),
  client_email: z.string().min(3),
  private_key: z.string().startsWith('-----BEGIN'),
  private_key_id: z.string().optional(),
});
export type KeyFile = z.output<typeof keyFile>;

export function readKeyFile(text: string): KeyFile | undefined {
  try {
    const parsed = keyFile.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

export const gcsCredentials = z
  .strictObject({
    serviceAccountKey: z
      .string()
      .refine(text => readKeyFile(text) !== undefined, 'expected the JSON of a key file of a service account')
      .optional()
      .meta({ title: 'Key of the service account', description: 'The whole JSON', format: 'password' }),
  })
  .meta({
    description:
      'None: those that the process has by itself, as Google’s libraries look for them (workload identity, an instance’s account)',
  });
export type GcsCredentials = z.output<typeof gcsCredentials>;

/** The registry's row; throws `internal` when it does not fit. */
export function parseGcsConfig(row: unknown): GcsConfig {
  const parsed = gcsConfig.safeParse(row);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', `configuration of the gcs backend: ${z.prettifyError(parsed.error)}`);
}

/** The error never holds what was given. */
export function parseGcsCredentials(given: BackendCredentials): GcsCredentials {
  const parsed = gcsCredentials.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', 'credentials of the gcs backend: expected serviceAccountKey, or none');
}
