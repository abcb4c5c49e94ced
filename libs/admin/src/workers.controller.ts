import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { workerRoutes } from '#admin/contract/operations';
import { Serves } from '#admin/serves';
import type { QueueView } from '#operations/worker-directory';
import { auditWrite } from '#tenancy/audit-log';

@Controller()
export class WorkersController {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: AdminOptions) {}

  @Serves(workerRoutes.workers)
  async workers() {
    const items = await this.options.workers.list();
    return {
      items: items.map(({ startedAt, seenAt, ...worker }) => ({
        ...worker,
        startedAt: startedAt.toISOString(),
        seenAt: seenAt.toISOString(),
      })),
    };
  }

  @Serves(workerRoutes.queues)
  async queues() {
    return { items: (await this.options.workers.queues()).map(shown) };
  }

  @Serves(workerRoutes.changeQueue)
  async change(@Call() call: AdminCall<typeof workerRoutes.changeQueue>) {
    const { actor, principal, params } = call;
    const { paused, reason = null } = call.body;
    const change = { paused, reason, by: call.actorName, tenantId: principal.tenantId };
    const changed = await this.options.workers.change(params.class, change, before =>
      auditWrite(actor, {
        tenantId: principal.tenantId,
        tenantName: principal.tenant,
        action: paused ? 'queue.pause' : 'queue.resume',
        subject: { kind: 'queue', id: params.class, name: params.class },
        before: { paused: before.paused, reason: before.reason },
        after: { paused, reason },
        ...(reason === null ? {} : { reason }),
      }),
    );
    return shown(changed);
  }
}

const shown = ({ version: _, changedAt, ...queue }: QueueView) => ({ ...queue, changedAt: changedAt.toISOString() });
