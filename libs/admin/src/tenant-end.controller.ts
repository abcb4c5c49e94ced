import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { tenantRoutes } from '#admin/contract/tenants';
import { Refusal } from '#admin/problems';
import { Serves } from '#admin/serves';

/** The end of a tenant: at once when it has nothing, else by workers, which the caller may watch. */
@Controller()
export class TenantEndController {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: AdminOptions) {}

  @Serves(tenantRoutes.delete)
  async delete(@Call() call: AdminCall<typeof tenantRoutes.delete>): Promise<void> {
    const { tenant, query, deadline } = call;
    call.requireMatch(tenant);
    const drain = query.drain === 'true';
    if (drain && query.confirm !== tenant.name) {
      const message = `expected ${tenant.name}, the name of the tenant whose data is to be removed for good`;
      throw new Refusal('invalid_argument', `/query/confirm: ${message}`, [{ pointer: '/query/confirm', message }]);
    }
    if (!(await this.options.tenantEnding.end(call.actor, tenant, { drain, deadline })))
      call.giveUnfinished(`/tenants/${tenant.name}`);
  }
}
