import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { Change, notFound } from '#admin/change';
import { snapshotSessionRoutes } from '#admin/contract/protection';
import { answerPage } from '#admin/paging';
import type { Resources } from '#admin/resources';
import { Serves } from '#admin/serves';
import type { Tx } from '#platform/database';
import { type ListedSession, listSessions, readSession } from '#storage/sessions/session-list';

@Controller()
export class SnapshotSessionsController {
  private readonly resources: Resources;

  constructor(@Inject(ADMIN_OPTIONS) { resources }: AdminOptions) {
    this.resources = resources;
  }

  @Serves(snapshotSessionRoutes.list)
  list(@Call() call: AdminCall<typeof snapshotSessionRoutes.list>) {
    return answerPage(call, page => listSessions(this.resources.database, call.tenant.id, page), shown);
  }

  @Serves(snapshotSessionRoutes.end)
  async end(@Call() call: AdminCall<typeof snapshotSessionRoutes.end>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const { session } = call.params;
    const read = async (tx: Tx) => {
      const row = await readSession(tx, tenantId, session);
      return row && { id: row.id, version: 1, view: shown(row) };
    };
    if (!(await this.resources.database.withTenant(tenantId, read))) throw notFound(call);
    const change = new Change(call, { action: 'snapshot-session.end', read });
    await change.carryOut({}, () => this.resources.snapshotSessions.delete({ tenantId }, session, change));
  }
}

const shown = ({ createdAt, expiresAt, ...row }: ListedSession) => ({
  ...row,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
});
