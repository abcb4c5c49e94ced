import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { Change, notFound } from '#admin/change';
import { accessRoutes } from '#admin/contract/buckets';
import { answerPage } from '#admin/paging';
import type { Resources } from '#admin/resources';
import { Serves } from '#admin/serves';
import type { Tx } from '#platform/database';
import { type ListedAccess, listAccesses, readAccess } from '#storage/accesses/access-list';

@Controller()
export class AccessesController {
  private readonly resources: Resources;

  constructor(@Inject(ADMIN_OPTIONS) { resources }: AdminOptions) {
    this.resources = resources;
  }

  @Serves(accessRoutes.list)
  list(@Call() call: AdminCall<typeof accessRoutes.list>) {
    const { bucket, ...rest } = call.query;
    const filter = { ...rest, ...(bucket === undefined ? {} : { bucketId: bucket }) };
    return answerPage(call, page => listAccesses(this.resources.database, call.tenant.id, filter, page), shown);
  }

  @Serves(accessRoutes.get)
  async get(@Call() call: AdminCall<typeof accessRoutes.get>) {
    const row = await this.read(call, call.params.access);
    call.giveEtag(row);
    return shown(row);
  }

  @Serves(accessRoutes.revoke)
  async revoke(@Call() call: AdminCall<typeof accessRoutes.revoke>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const access = await this.read(call, call.params.access);
    const read = async (tx: Tx) => {
      const row = await readAccess(tx, tenantId, access.id);
      return row && { ...row, view: shown(row) };
    };
    const change = new Change(call, { action: 'access.revoke', read, reason: call.body.reason, joins: true });
    const caller = change.caller(access);
    await change.carryOut(caller, () => this.resources.objectStorage.removeAccess(caller, access.accountId));
  }

  private async read(call: AdminCall, id: string): Promise<ListedAccess> {
    const { id: tenantId } = call.tenant;
    const row = await this.resources.database.withTenant(tenantId, tx => readAccess(tx, tenantId, id));
    if (!row) throw notFound(call);
    return row;
  }
}

const shown = (row: ListedAccess) => ({
  id: row.id,
  name: row.name,
  backend: row.backend,
  accountId: row.accountId,
  state: row.state,
  stale: row.stale,
  grants: row.grants,
  operation: row.activeOperation,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});
