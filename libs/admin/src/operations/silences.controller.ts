import { Controller } from '@nestjs/common';
import { type SilenceReply, silenceRoutes } from '#admin/contract/alerts';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Silences, type SilenceView } from '#alerts/silences';

@Controller()
export class SilencesController {
  constructor(private readonly silences: Silences) {}

  @Serves(silenceRoutes.list)
  list(@Call() call: AdminCall<typeof silenceRoutes.list>) {
    return answerPage(call, page => this.silences.list(call.principal.tenantId, page), shown);
  }

  @Serves(silenceRoutes.create)
  async create(@Call() call: AdminCall<typeof silenceRoutes.create>): Promise<SilenceReply> {
    return shown(await this.silences.create(call.actor, call.principal.tenantId, call.body));
  }

  @Serves(silenceRoutes.delete)
  async delete(@Call() call: AdminCall<typeof silenceRoutes.delete>): Promise<void> {
    if (!(await this.silences.delete(call.actor, call.principal.tenantId, call.params.silence))) throw notFound(call);
  }
}

const shown = ({ until, createdAt, ...silence }: SilenceView): SilenceReply => ({
  ...silence,
  until: until.toISOString(),
  createdAt: createdAt.toISOString(),
});
