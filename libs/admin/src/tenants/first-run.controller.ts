import { Controller } from '@nestjs/common';
import { type FirstRunReply, firstRunRoutes } from '#admin/contract/first-run';
import { FirstRun } from '#admin/first-run/first-run';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Serves } from '#admin/requests/serves';

@Controller()
export class FirstRunController {
  constructor(private readonly firstRun: FirstRun) {}

  @Serves(firstRunRoutes.get)
  get(@Call() { tenant, host }: AdminCall<typeof firstRunRoutes.get>): Promise<FirstRunReply> {
    return this.firstRun.read(tenant, host);
  }

  @Serves(firstRunRoutes.dismiss)
  async dismiss(
    @Call() { actor, tenant, host, body }: AdminCall<typeof firstRunRoutes.dismiss>,
  ): Promise<FirstRunReply> {
    await this.firstRun.dismiss(actor, tenant, body.reason);
    return this.firstRun.read(tenant, host);
  }
}
