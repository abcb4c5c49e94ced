import { Controller } from '@nestjs/common';
import { type OverviewReply, overviewRoutes } from '#admin/contract/overview';
import { Overview } from '#admin/overview/overview';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { scopeOf } from '#admin/requests/scope';
import { Serves } from '#admin/requests/serves';
import { Tenants } from '#tenancy/tenants/tenants';

@Controller()
export class OverviewController {
  constructor(
    private readonly tenants: Tenants,
    private readonly overview: Overview,
  ) {}

  @Serves(overviewRoutes.get)
  async get(@Call() call: AdminCall<typeof overviewRoutes.get>): Promise<OverviewReply> {
    const { tenantId } = await scopeOf(call, this.tenants);
    return this.overview.read(tenantId);
  }
}
