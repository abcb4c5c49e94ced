import { Controller } from '@nestjs/common';
import { type AlertDetailReply, type AlertReply, alertRoutes, type DeliveryReply } from '#admin/contract/alerts';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { AlertLog, type AlertView, type DeliveryView } from '#alerts/alert-log';

@Controller()
export class AlertsController {
  constructor(private readonly alerts: AlertLog) {}

  @Serves(alertRoutes.list)
  list(@Call() call: AdminCall<typeof alertRoutes.list>) {
    const { state, rule, severity } = call.query;
    const filter = { state, rule, severity };
    return answerPage(call, page => this.alerts.list(call.principal.tenantId, filter, page), shown);
  }

  @Serves(alertRoutes.get)
  async get(@Call() call: AdminCall<typeof alertRoutes.get>): Promise<AlertDetailReply> {
    const found = await this.alerts.get(call.principal.tenantId, call.params.alert);
    if (!found) throw notFound(call);
    return { ...shown(found), deliveries: found.deliveries.map(shownDelivery) };
  }

  @Serves(alertRoutes.acknowledge)
  async acknowledge(@Call() call: AdminCall<typeof alertRoutes.acknowledge>): Promise<AlertReply> {
    const { actor, actorName: by, principal, params, body } = call;
    const said = { by, note: body.note ?? null };
    const acknowledged = await this.alerts.acknowledge(actor, principal.tenantId, params.alert, said);
    if (!acknowledged) throw notFound(call);
    return shown(acknowledged);
  }
}

const shown = ({
  since,
  openedAt,
  acknowledgedAt,
  acknowledgedBy,
  note,
  endedAt,
  id,
  rule,
  object,
  severity,
  state,
  what,
  means,
  todo,
  link,
  silenced,
}: AlertView): AlertReply => ({
  id,
  rule,
  object,
  severity,
  state,
  what,
  means,
  todo,
  link,
  since: since.toISOString(),
  openedAt: openedAt.toISOString(),
  acknowledged: acknowledgedAt && { at: acknowledgedAt.toISOString(), by: acknowledgedBy ?? '', note },
  endedAt: endedAt?.toISOString() ?? null,
  silenced,
});

export const shownDelivery = ({ createdAt, nextAt, sentAt, ...delivery }: DeliveryView): DeliveryReply => ({
  ...delivery,
  createdAt: createdAt.toISOString(),
  nextAt: nextAt?.toISOString() ?? null,
  sentAt: sentAt?.toISOString() ?? null,
});
