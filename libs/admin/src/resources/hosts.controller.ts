import { Controller, Inject } from '@nestjs/common';
import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { hostRoutes } from '#admin/contract/hosts';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { OfAllTenants } from '#admin/requests/of-all-tenants';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { BLOCK_STORAGE } from '#storage/block/block.module';
import type { BlockStorage } from '#storage/block/block-storage';
import { type ListedHost, listHosts, readHost } from '#storage/block/hosts/host-list';
import { lockRow } from '#storage/shared/lock-row';

@Controller()
export class HostsController {
  constructor(
    private readonly database: Database,
    @Inject(BLOCK_STORAGE) private readonly blockStorage: BlockStorage,
    private readonly ofAllTenants: OfAllTenants,
  ) {}

  @Serves(hostRoutes.list)
  list(@Call() call: AdminCall<typeof hostRoutes.list>) {
    return answerPage(call, page => listHosts(this.database, call.tenant.id, wantedOf(call.query), page), shown);
  }

  @Serves(allTenantsRoutes.hosts)
  listAll(@Call() call: AdminCall<typeof allTenantsRoutes.hosts>) {
    const wanted = wantedOf(call.query);
    return this.ofAllTenants.answer(call, (tenant, page) => listHosts(this.database, tenant, wanted, page), shown);
  }

  @Serves(hostRoutes.get)
  async get(@Call() call: AdminCall<typeof hostRoutes.get>) {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => readHost(tx, tenantId, call.params.host));
    if (!row) throw notFound(call);
    call.giveEtag(row);
    return shown(row);
  }

  @Serves(hostRoutes.create)
  async create(@Call() call: AdminCall<typeof hostRoutes.create>) {
    const { id: tenantId, name: tenant } = call.tenant;
    const { chap, ...body } = call.body;
    // The account is told by its name alone.
    const change = new Change(call, {
      action: 'host.create',
      after: { ...body, chapUser: chap?.user ?? null },
      fields: { 'chap.user': 'chap/user', iqns: 'iqns' },
    });
    const request = { ...body, wwpns: [], nqns: [], networks: [], ...(chap ? { chap } : {}) };
    await change.carryOut(() => this.blockStorage.hosts.add({ tenantId, observer: change }, request));
    const row = await this.database.withTenant(tenantId, tx => readHost(tx, tenantId, change.noted!.resourceId));
    if (!row) throw notFound(call);
    call.giveLocation(`/tenants/${tenant}/hosts/${row.id}`);
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
    const found = await this.database.withTenant(tenantId, tx => readHost(tx, tenantId, host));
    if (!found) throw notFound(call);
    const change = new Change(call, { action: 'host.delete', read });
    await change.carryOut(() => this.blockStorage.hosts.delete({ tenantId, observer: change }, found.uuid));
  }
}

const wantedOf = ({ search, sort }: AdminCall<typeof hostRoutes.list>['query']) => ({
  sort,
  ...(search === undefined ? {} : { search }),
});

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
