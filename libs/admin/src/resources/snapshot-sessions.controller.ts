import { Controller } from '@nestjs/common';
import { snapshotSessionRoutes } from '#admin/contract/protection';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { type ListedSession, listSessions, readSession } from '#storage/block/sessions/session-list';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';

@Controller()
export class SnapshotSessionsController {
  constructor(
    private readonly database: Database,
    private readonly snapshotSessions: SnapshotSessionService,
  ) {}

  @Serves(snapshotSessionRoutes.list)
  list(@Call() call: AdminCall<typeof snapshotSessionRoutes.list>) {
    return answerPage(call, page => listSessions(this.database, call.tenant.id, page), shown);
  }

  @Serves(snapshotSessionRoutes.get)
  async get(@Call() call: AdminCall<typeof snapshotSessionRoutes.get>) {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => readSession(tx, tenantId, call.params.session));
    if (!row) throw notFound(call);
    return shown(row);
  }

  @Serves(snapshotSessionRoutes.end)
  async end(@Call() call: AdminCall<typeof snapshotSessionRoutes.end>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const { session } = call.params;
    const read = async (tx: Tx) => {
      const row = await readSession(tx, tenantId, session);
      return row && { id: row.id, version: 1, view: shown(row) };
    };
    if (!(await this.database.withTenant(tenantId, read))) throw notFound(call);
    const change = new Change(call, { action: 'snapshot-session.end', read });
    await change.carryOut(() => this.snapshotSessions.delete({ tenantId }, session, change));
  }
}

const shown = ({ createdAt, expiresAt, ...row }: ListedSession) => ({
  ...row,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
});
