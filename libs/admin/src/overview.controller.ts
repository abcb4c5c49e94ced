import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { type OverviewReply, overviewRoutes } from '#admin/contract/overview';
import { scopeOf } from '#admin/scope';
import { Serves } from '#admin/serves';

@Controller()
export class OverviewController {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: AdminOptions) {}

  @Serves(overviewRoutes.get)
  async get(@Call() call: AdminCall<typeof overviewRoutes.get>): Promise<OverviewReply> {
    const { tenantId } = await scopeOf(call, this.options);
    return this.options.overview.read(tenantId);
  }
}
