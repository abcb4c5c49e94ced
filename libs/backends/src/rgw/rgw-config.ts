import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ApplianceIdentity, BackendCredentials } from '#backends/object-backend';
import { MAX_RGW_TENANT_LENGTH, MAX_UID_LENGTH } from '#backends/s3/bucket-policy';
import { StorageError } from '#platform/errors';

export const rgwConfig = z.strictObject({
  /** Where Trivet reaches the gateway; S3 and Admin Ops live on the same port. */
  endpoint: z.url({ protocol: /^https?$/ }).transform(trimSlash),
  /** Where users reach it; goes into credentials. */
  publicEndpoint: z
    .url({ protocol: /^https?$/ })
    .transform(trimSlash)
    .optional(),
  region: z.string().min(1).default('default'),
  /** Placement target of buckets that ask for none. */
  placement: z.string().min(1).optional(),
  /** RGW tenant that holds this tenant's users and buckets; empty: the global one. */
  rgwTenant: z
    .string()
    .regex(/^\w*$/, 'expected letters, digits and underscores')
    .max(MAX_RGW_TENANT_LENGTH)
    .default(''),
  /** The RGW user that owns this tenant's buckets and that nobody else uses; made on first use. */
  ownerUid: z
    .string()
    .regex(/^[\w.-]+$/)
    .max(MAX_UID_LENGTH)
    .optional(),
});
export type RgwConfig = z.output<typeof rgwConfig>;

export const rgwCredentials = z.strictObject({ accessKeyId: z.string().min(1), secretAccessKey: z.string().min(1) });
/** Whatever else an earlier release has kept there. */
const storedCredentials = z.object(rgwCredentials.shape);
export type RgwCredentials = z.output<typeof rgwCredentials>;

/** The registry's row; throws `internal` when it does not fit. */
export function parseRgwConfig(row: unknown): RgwConfig {
  const parsed = rgwConfig.safeParse(row);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', `configuration of the rgw backend: ${z.prettifyError(parsed.error)}`);
}

/** Keys of the RGW user with the caps users, buckets and metadata. The error never holds what was given. */
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
