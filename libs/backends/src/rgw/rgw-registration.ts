/**
 * A shared RGW has one RGW tenant for each tenant of ours (invariant O1). Names of buckets and users are global otherwise:
 * two tenants could not have a bucket of one name, and each would learn from a refusal what the other one has.
 */
import { createHash } from 'node:crypto';
import type { Registration, Share } from '#backends/registration';
import { type RgwConfig, rgwConfig, rgwCredentials } from '#backends/rgw/rgw-config';
import { StorageError } from '#platform/errors';

/** Of its 64 characters, for people who look at the store; the rest is what makes it one tenant's of one appliance. */
const NAME_LENGTH = 40;

export const rgwRegistration: Registration<RgwConfig> = {
  config: rgwConfig,
  credentials: rgwCredentials,
  fixed: ['rgwTenant', 'ownerUid'],
  addresses: ({ endpoint }) => ({ endpoint }),
  capabilities: ({ rgwTenant }) => ({
    protocols: ['s3'],
    versioning: true,
    objectLock: true,
    bucketQuota: true,
    tenantQuota: true,
    ...(rgwTenant === '' ? {} : { rgwTenant }),
  }),
  share({ ownerUid: _, ...config }, share) {
    // Inside one RGW tenant there is none below it.
    if (config.rgwTenant !== '')
      throw new StorageError(
        'failed_precondition',
        'it is bound to one RGW tenant (rgwTenant) and cannot be shared: register it without',
        { field: 'share' },
      );
    return { ...config, rgwTenant: rgwTenantOf(share) };
  },
};

/** Another tenant that gets the name later is another one here. */
function rgwTenantOf({ applianceId, tenant }: Pick<Share<RgwConfig>, 'applianceId' | 'tenant'>): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([applianceId, tenant.id]))
    .digest('hex');
  return `${tenant.name.replace(/\W/g, '_').slice(0, NAME_LENGTH)}_${digest.slice(0, 12)}`;
}
