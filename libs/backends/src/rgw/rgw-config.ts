import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ApplianceIdentity, BackendCredentials } from '#backends/object-backend';
import { MAX_RGW_TENANT_LENGTH, MAX_UID_LENGTH } from '#backends/s3/bucket-policy';
import { StorageError } from '#platform/errors';

/** The example stands before the transform: of what is sent, not of what is kept. */
const address = (example: string) =>
  z
    .url({ protocol: /^https?$/ })
    .meta({ examples: [example] })
    .transform(trimSlash);

export const rgwConfig = z
  .strictObject({
    endpoint: address('http://10.0.0.5:7480').meta({
      title: 'Endpoint',
      description: 'Where Trivet reaches the gateway; S3 and Admin Ops are on the same port',
    }),
    publicEndpoint: address('https://s3.example.net').optional().meta({
      title: 'Public endpoint',
      description: 'Where users reach it; goes into their credentials. The endpoint when absent',
    }),
    region: z.string().min(1).default('default').meta({ title: 'Region', description: 'That users sign for' }),
    placement: z
      .string()
      .min(1)
      .optional()
      .meta({ title: 'Placement', description: 'Placement target of buckets that ask for none' }),
    rgwTenant: z
      .string()
      .regex(/^\w*$/, 'expected letters, digits and underscores')
      .max(MAX_RGW_TENANT_LENGTH)
      .default('')
      .meta({
        title: 'RGW tenant',
        description:
          'That holds the users and buckets of this backend; empty: the global one. One that is to be shared has none',
      }),
    ownerUid: z
      .string()
      .regex(/^[\w.-]+$/, 'expected letters, digits, dots, dashes and underscores')
      .max(MAX_UID_LENGTH)
      .optional()
      .meta({
        title: 'Owner',
        description:
          'RGW user that owns the buckets and that nobody else uses, made on first use. When absent Trivet chooses its name',
      }),
  })
  .meta({ title: 'Ceph RGW', description: 'Buckets and their accesses, over S3 and Admin Ops' });
export type RgwConfig = z.output<typeof rgwConfig>;

export const rgwCredentials = z
  .strictObject({
    accessKeyId: z.string().min(1).meta({ title: 'Access key', description: 'Of the user by whom Trivet works there' }),
    secretAccessKey: z
      .string()
      .min(1)
      .meta({ title: 'Secret key', description: 'Of the same user', format: 'password' }),
  })
  .meta({ description: 'Of an RGW user with the caps users, buckets and metadata' });
/** Whatever else an earlier release has kept there. */
const storedCredentials = z.object(rgwCredentials.shape);
export type RgwCredentials = z.output<typeof rgwCredentials>;

/** The registry's row; throws `internal` when it does not fit. */
export function parseRgwConfig(row: unknown): RgwConfig {
  const parsed = rgwConfig.safeParse(row);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', `configuration of the rgw backend: ${z.prettifyError(parsed.error)}`);
}

/** The error never holds what was given. */
export function parseRgwCredentials(given: BackendCredentials): RgwCredentials {
  const parsed = storedCredentials.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', 'credentials of the rgw backend: expected accessKeyId and secretAccessKey');
}

/** Without a configured owner, one whose name no other appliance or tenant on the same RGW can have. */
export function ownerUid({ ownerUid: configured }: RgwConfig, owner: ApplianceIdentity): string {
  if (configured !== undefined) return configured;
  const digest = createHash('sha256')
    .update(JSON.stringify([owner.applianceId, owner.tenantId]))
    .digest('hex');
  return `trivet-owner-${digest.slice(0, 16)}`;
}

/** RGW's spelling of a user or bucket inside a tenant: `tenant$uid`, `tenant/bucket`. */
export const qualifiedUid = (tenant: string, uid: string): string => (tenant === '' ? uid : `${tenant}$${uid}`);
export const qualifiedBucket = (tenant: string, name: string): string => (tenant === '' ? name : `${tenant}/${name}`);

function trimSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
