import { Controller } from '@nestjs/common';
import { type DeliveryReply, type ReceiverReply, receiverRoutes } from '#admin/contract/alerts';
import { shownDelivery } from '#admin/operations/alerts.controller';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Receivers, type ReceiverView } from '#alerts/receivers';
import { Sender } from '#alerts/sender';
import { Database } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';
import { audit } from '#tenancy/audit-log/audit-log';

@Controller()
export class ReceiversController {
  constructor(
    private readonly database: Database,
    private readonly receivers: Receivers,
    private readonly sender: Sender,
  ) {}

  @Serves(receiverRoutes.list)
  list(@Call() call: AdminCall<typeof receiverRoutes.list>) {
    return answerPage(call, page => this.receivers.list(call.principal.tenantId, page), shown);
  }

  @Serves(receiverRoutes.create)
  async create(@Call() call: AdminCall<typeof receiverRoutes.create>): Promise<ReceiverReply> {
    const made = await this.receivers.create(call.actor, call.principal.tenantId, call.body);
    call.giveLocation(`/receivers/${made.name}`);
    return reply(call, made);
  }

  @Serves(receiverRoutes.get)
  async get(@Call() call: AdminCall<typeof receiverRoutes.get>): Promise<ReceiverReply> {
    return reply(call, await this.receivers.get(call.principal.tenantId, call.params.receiver));
  }

  @Serves(receiverRoutes.change)
  async change(@Call() call: AdminCall<typeof receiverRoutes.change>): Promise<ReceiverReply> {
    const { actor, principal, params, body } = call;
    const check = (found: ReceiverView) => call.requireMatch(found);
    return reply(call, await this.receivers.change(actor, principal.tenantId, params.receiver, body, check));
  }

  @Serves(receiverRoutes.delete)
  async delete(@Call() call: AdminCall<typeof receiverRoutes.delete>): Promise<void> {
    const { actor, principal, params } = call;
    const check = (found: ReceiverView) => call.requireMatch(found);
    if (!(await this.receivers.delete(actor, principal.tenantId, params.receiver, check))) throw notFound(call);
  }

  @Serves(receiverRoutes.test)
  async test(@Call() call: AdminCall<typeof receiverRoutes.test>): Promise<DeliveryReply> {
    const { actor, principal, actorName } = call;
    const { tenantId, tenant: tenantName } = principal;
    const found = await this.receivers.get(tenantId, call.params.receiver);
    if (!found) throw notFound(call);
    const { id, name } = found;
    await this.database.withTenant(tenantId, tx =>
      audit(tx, actor, { tenantId, tenantName, action: 'receiver.test', subject: { kind: 'receiver', id, name } }),
    );
    return shownDelivery(await this.sender.test(tenantId, found, uuidv7(), actorName));
  }
}

function reply(call: AdminCall, found: ReceiverView | undefined): ReceiverReply {
  if (!found) throw notFound(call);
  call.giveEtag(found);
  return shown(found);
}

const shown = ({ version: _, lastSentAt, createdAt, updatedAt, ...receiver }: ReceiverView): ReceiverReply => ({
  ...receiver,
  lastSentAt: lastSentAt?.toISOString() ?? null,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});
