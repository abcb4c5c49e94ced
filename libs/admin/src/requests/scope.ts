import { Refusal } from '#admin/problems/problems';
import type { AdminCall } from '#admin/requests/admin-call';
import type { TenantDirectory } from '#tenancy/tenants/tenant-directory';

/**
 * Whose things a call of the scope `any` is about: its own tenant's, or all, and of those one tenant's when a filter says so.
 * Another tenant is not there, for whoever may not see it.
 */
export async function scopeOf(
  { principal }: AdminCall,
  tenants: Pick<TenantDirectory, 'find'>,
  named?: string,
): Promise<{ tenantId?: string }> {
  if (!principal.appliance) {
    if (named !== undefined && named !== principal.tenant) throw noTenant(named);
    return { tenantId: principal.tenantId };
  }
  if (named === undefined) return {};
  const tenant = await tenants.find(named);
  if (!tenant) throw noTenant(named);
  return { tenantId: tenant.id };
}

const noTenant = (name: string): Refusal => new Refusal('not_found', `there is no tenant ${name}`);
