import { Controller } from '@nestjs/common';
import { workerRoutes } from '#admin/contract/operations';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Serves } from '#admin/requests/serves';
import { type QueueView, WorkerDirectory } from '#operations/workers/worker-directory';
import { auditWrite } from '#tenancy/audit-log/audit-log';

@Controller()
export class WorkersController {
  constructor(private readonly directory: WorkerDirectory) {}

  @Serves(workerRoutes.workers)
  async workers() {
    const items = await this.directory.list();
    return {
      items: items.map(({ startedAt, seenAt, ...worker }) => ({
        ...worker,
        startedAt: startedAt.toISOString(),
        seenAt: seenAt.toISOString(),
      })),
    };
  }

  @Serves(workerRoutes.tasks)
  async tasks() {
    const items = await this.directory.tasks();
    return { items: items.map(task => ({ ...task, lastSuccessAt: task.lastSuccessAt?.toISOString() ?? null })) };
  }

  @Serves(workerRoutes.queues)
  async queues() {
    return { items: (await this.directory.queues()).map(shown) };
  }

  @Serves(workerRoutes.changeQueue)
  async change(@Call() call: AdminCall<typeof workerRoutes.changeQueue>) {
    const { actor, principal, params } = call;
    const { paused, reason = null } = call.body;
    const change = { paused, reason, by: call.actorName, tenantId: principal.tenantId };
    const changed = await this.directory.change(params.class, change, before =>
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
