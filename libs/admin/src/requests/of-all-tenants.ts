import { Injectable } from '@nestjs/common';
import type { AdminCall } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { scopeOf } from '#admin/requests/scope';
import type { PageOf, PageRequest } from '#platform/database/keyset';
import { Names } from '#tenancy/names';
import { Tenants } from '#tenancy/tenants/tenants';

/** Answers lists over all tenants by the readers of those of one. */
@Injectable()
export class OfAllTenants {
  constructor(
    private readonly tenants: Tenants,
    private readonly names: Names,
  ) {}

  /** @param read of one tenant; of all when it is given none */
  async answer<Row extends { tenantId: string }, Item>(
    call: AdminCall,
    read: (tenantId: string | undefined, page: PageRequest) => Promise<PageOf<Row>>,
    show: (row: Row) => Item,
  ): Promise<{ items: (Item & { tenant: string })[]; next: string | null }> {
    const { tenantId } = await scopeOf(call, this.tenants, (call.query as unknown as { tenant?: string }).tenant);
    const named = async (page: PageRequest) => {
      const { rows, next } = await read(tenantId, page);
      const tenants = await this.names.ofTenants(rows.map(row => row.tenantId));
      return { rows: rows.map(row => ({ row, tenant: tenants.get(row.tenantId)! })), next };
    };
    return answerPage(call, named, ({ row, tenant }) => ({ ...show(row), tenant }));
  }
}
