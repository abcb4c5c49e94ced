import { Controller } from '@nestjs/common';
import { tenantRoutes } from '#admin/contract/tenants';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Serves } from '#admin/requests/serves';
import { TenantEnding } from '#tenancy/tenants/tenant-ending';

/** The end of a tenant: at once when it has nothing, else by workers, which the caller may watch. */
@Controller()
export class TenantEndController {
  constructor(private readonly tenantEnding: TenantEnding) {}

  @Serves(tenantRoutes.delete)
  async delete(@Call() call: AdminCall<typeof tenantRoutes.delete>): Promise<void> {
    const { tenant, query, deadline } = call;
    call.requireMatch(tenant);
    const drain = query.drain === 'true';
    if (drain && query.confirm !== tenant.name) {
      const message = `expected ${tenant.name}, the name of the tenant whose data is to be removed for good`;
      throw new Refusal('invalid_argument', `/query/confirm: ${message}`, [{ pointer: '/query/confirm', message }]);
    }
    if (!(await this.tenantEnding.end(call.actor, tenant, { drain, deadline })))
      call.giveUnfinished(`/tenants/${tenant.name}`);
  }
}
