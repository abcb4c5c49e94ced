import { Controller } from '@nestjs/common';
import { FOUND_KINDS, searchRoutes } from '#admin/contract/search';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { scopeOf } from '#admin/requests/scope';
import { Serves } from '#admin/requests/serves';
import { Database } from '#platform/database/database';
import { type Found, search } from '#storage/shared/search';
import { Names } from '#tenancy/names';
import { Tenants } from '#tenancy/tenants/tenants';

type Shown = Omit<Found, 'tenantId' | 'kind'> & { tenant: string; kind: (typeof FOUND_KINDS)[number] };

@Controller()
export class SearchController {
  constructor(
    private readonly database: Database,
    private readonly tenants: Tenants,
    private readonly names: Names,
  ) {}

  @Serves(searchRoutes.search)
  async search(@Call() call: AdminCall<typeof searchRoutes.search>) {
    const { q, limit } = call.query;
    if (q === '' || q.includes('\0')) return { groups: [] };
    const { tenantId } = await scopeOf(call, this.tenants);
    const every = tenantId === undefined ? await this.names.everyTenant() : [];
    const whose = tenantId === undefined ? { every } : { tenantId, every };
    const rows = await search(this.database, whose, q, limit + 1);
    const names = await this.names.ofTenants(rows.map(row => row.tenantId));
    const shown: Shown[] = rows.map(({ tenantId: of, ...row }) => ({ ...row, tenant: names.get(of)! }));
    if (tenantId === undefined) shown.push(...(await this.tenantsNamed(every, q)));
    const groups = FOUND_KINDS.map(kind => {
      const items = shown.filter(row => row.kind === kind).map(({ kind: _, ...item }) => item);
      return { kind, items: items.slice(0, limit), more: items.length > limit };
    });
    return { groups: groups.filter(({ items }) => items.length > 0) };
  }

  /** Their names are remembered. */
  private async tenantsNamed(every: readonly string[], q: string): Promise<Shown[]> {
    const all = [...(await this.names.ofTenants(every))];
    return all
      .filter(([id, name]) => id === q || name.startsWith(q))
      .sort(([, a], [, b]) => (a < b ? -1 : 1))
      .map(([id, name]) => ({ kind: 'tenant', id, name, tenant: name, state: null, detail: null }));
  }
}
