import { Controller, Inject } from '@nestjs/common';
import { accessRoutes } from '#admin/contract/buckets';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { type ListedAccess, listAccesses, readAccess } from '#storage/object/accesses/access-list';
import { OBJECT_STORAGE } from '#storage/object/object.module';
import type { ObjectStorage } from '#storage/object/object-storage';

@Controller()
export class AccessesController {
  constructor(
    private readonly database: Database,
    @Inject(OBJECT_STORAGE) private readonly objectStorage: ObjectStorage,
  ) {}

  @Serves(accessRoutes.list)
  list(@Call() call: AdminCall<typeof accessRoutes.list>) {
    const { bucket, ...rest } = call.query;
    const filter = { ...rest, ...(bucket === undefined ? {} : { bucketId: bucket }) };
    return answerPage(call, page => listAccesses(this.database, call.tenant.id, filter, page), shown);
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
    await change.carryOut(() => this.objectStorage.accesses.remove(caller, access.accountId));
  }

  @Serves(accessRoutes.rotate)
  async rotate(@Call() call: AdminCall<typeof accessRoutes.rotate>) {
    const { id: tenantId } = call.tenant;
    const { reason, graceSeconds } = call.body;
    const access = await this.read(call, call.params.access);
    const read = async (tx: Tx) => {
      const row = await readAccess(tx, tenantId, access.id);
      return row && { ...row, view: shown(row) };
    };
    const change = new Change(call, { action: 'access.rotate', read, after: { graceSeconds }, reason, joins: true });
    const caller = change.caller(access);
    await change.carryOut(() => this.objectStorage.accesses.rotate(caller, access.accountId, graceSeconds));
    return shown(await this.read(call, access.id));
  }

  private async read(call: AdminCall, id: string): Promise<ListedAccess> {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => readAccess(tx, tenantId, id));
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
  formerKeyUntil: row.formerUntil?.toISOString() ?? null,
  rotatesAt: row.rotateAt?.toISOString() ?? null,
  operation: row.activeOperation ?? row.keyOperation,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});
