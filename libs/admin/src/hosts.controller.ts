import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { Change, notFound } from '#admin/change';
import { hostRoutes } from '#admin/contract/volumes';
import { answerPage } from '#admin/paging';
import type { Resources } from '#admin/resources';
import { Serves } from '#admin/serves';
import type { Tx } from '#platform/database';
import { type ListedHost, listHosts, readHost } from '#storage/hosts/host-list';
import { lockRow } from '#storage/lock-row';

@Controller()
export class HostsController {
  private readonly resources: Resources;

  constructor(@Inject(ADMIN_OPTIONS) { resources }: AdminOptions) {
    this.resources = resources;
  }

  @Serves(hostRoutes.list)
  list(@Call() call: AdminCall<typeof hostRoutes.list>) {
    const { search } = call.query;
    const filter = search === undefined ? {} : { search };
    return answerPage(call, page => listHosts(this.resources.database, call.tenant.id, filter, page), shown);
  }

  @Serves(hostRoutes.get)
  async get(@Call() call: AdminCall<typeof hostRoutes.get>) {
    const { id: tenantId } = call.tenant;
    const row = await this.resources.database.withTenant(tenantId, tx => readHost(tx, tenantId, call.params.host));
    if (!row) throw notFound(call);
    call.giveEtag(row);
    return shown(row);
  }

  @Serves(hostRoutes.delete)
  async delete(@Call() call: AdminCall<typeof hostRoutes.delete>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const { host } = call.params;
    const read = async (tx: Tx) => {
      await lockRow(tx, 'host', tenantId, host);
      const row = await readHost(tx, tenantId, host);
      // Initiators and account, by its time: publications need not count, with any it is refused.
      return row && { ...row, view: shown(row) };
    };
    const change = new Change(call, { action: 'host.delete', read });
    await change.carryOut({}, () => this.resources.blockStorage.deleteHost({ tenantId, witness: change }, host));
  }
}

const shown = (row: ListedHost) => ({
  id: row.id,
  uuid: row.uuid,
  name: row.name,
  iqns: row.iqns,
  wwpns: row.wwpns,
  nqns: row.nqns,
  networks: row.networks,
  chapUser: row.chapUser,
  publications: row.publications,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});
