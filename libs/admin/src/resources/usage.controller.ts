import { Controller } from '@nestjs/common';
import type { ReplyOf } from '#admin/contract/route';
import { type ForecastReply, type PerformanceReply, type UsagePartReply, usageRoutes } from '#admin/contract/usage';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { notFound } from '#admin/requests/change';
import { scopeOf } from '#admin/requests/scope';
import { Serves } from '#admin/requests/serves';
import { Database } from '#platform/database/database';
import { readVolume } from '#storage/block/volumes/volume-list';
import { readForecasts } from '#storage/usage/forecasts';
import { hoursOf, type Month, monthOf, reportUsage } from '#storage/usage/usage-report';
import { daysOfVolume, mostGrown } from '#storage/usage/volume-growth';
import { busiest, ioOfTenant, ioOfVolume } from '#storage/usage/volume-io';
import type { TenantView } from '#tenancy/tenants/tenant-directory';
import { Tenants } from '#tenancy/tenants/tenants';

@Controller()
export class UsageController {
  constructor(
    private readonly database: Database,
    private readonly tenants: Tenants,
  ) {}

  @Serves(usageRoutes.report)
  async report(@Call() { tenant, query }: AdminCall<typeof usageRoutes.report>): Promise<{ items: UsagePartReply[] }> {
    return { items: await this.usageOf(tenant, monthOf(query.month, new Date())) };
  }

  @Serves(usageRoutes.reportOfAll)
  async reportOfAll(@Call() call: AdminCall<typeof usageRoutes.reportOfAll>): Promise<{ items: UsagePartReply[] }> {
    const month = monthOf(call.query.month, new Date());
    return { items: await this.ofEach(call, call.query.tenant, tenant => this.usageOf(tenant, month)) };
  }

  @Serves(usageRoutes.forecasts)
  async forecasts(@Call() { tenant }: AdminCall<typeof usageRoutes.forecasts>): Promise<{ items: ForecastReply[] }> {
    return { items: await this.forecastsOf(tenant) };
  }

  @Serves(usageRoutes.forecastsOfAll)
  async forecastsOfAll(
    @Call() call: AdminCall<typeof usageRoutes.forecastsOfAll>,
  ): Promise<{ items: ForecastReply[] }> {
    return { items: await this.ofEach(call, call.query.tenant, tenant => this.forecastsOf(tenant)) };
  }

  @Serves(usageRoutes.growth)
  async growth(
    @Call() { tenant, query }: AdminCall<typeof usageRoutes.growth>,
  ): Promise<ReplyOf<typeof usageRoutes.growth>> {
    return { items: await mostGrown(this.database, tenant.id, query.limit) };
  }

  @Serves(usageRoutes.busiest)
  async busiest(@Call() call: AdminCall<typeof usageRoutes.busiest>): Promise<ReplyOf<typeof usageRoutes.busiest>> {
    const { by, limit } = call.query;
    return { items: (await busiest(this.database, call.tenant.id, by, limit)).map(dated) };
  }

  @Serves(usageRoutes.ofTenant)
  async ofTenant(@Call() call: AdminCall<typeof usageRoutes.ofTenant>): Promise<{ items: PerformanceReply[] }> {
    return { items: (await ioOfTenant(this.database, call.tenant.id, call.query)).map(dated) };
  }

  @Serves(usageRoutes.ofVolume)
  async ofVolume(@Call() call: AdminCall<typeof usageRoutes.ofVolume>): Promise<{ items: PerformanceReply[] }> {
    const id = await this.volume(call, call.params.volume);
    return { items: (await ioOfVolume(this.database, call.tenant.id, id, call.query)).map(dated) };
  }

  @Serves(usageRoutes.history)
  async history(@Call() call: AdminCall<typeof usageRoutes.history>): Promise<ReplyOf<typeof usageRoutes.history>> {
    const id = await this.volume(call, call.params.volume);
    return { items: await daysOfVolume(this.database, call.tenant.id, id, call.query.days) };
  }

  /** Its id; a Refusal when the tenant has none of it. */
  private async volume(call: AdminCall, id: string): Promise<string> {
    const { id: tenantId } = call.tenant;
    if (!(await this.database.withTenant(tenantId, tx => readVolume(tx, tenantId, id)))) throw notFound(call);
    return id;
  }

  private async usageOf(tenant: Named & { createdAt: Date }, month: Month): Promise<UsagePartReply[]> {
    const { measured, parts } = await reportUsage(this.database, tenant.id, month);
    return parts.map(({ kind, backend, pool, ...sums }) => ({
      tenant: tenant.name,
      month: month.name,
      kind,
      backend,
      pool: pool === '' ? null : pool,
      monthHours: hoursOf(month, tenant.createdAt),
      measuredHours: measured,
      ...sums,
    }));
  }

  private async forecastsOf(tenant: Named): Promise<ForecastReply[]> {
    const found = await readForecasts(this.database, tenant.id);
    return found.map(forecast => ({ tenant: tenant.name, ...forecast }));
  }

  /** One tenant after the other, the appliance's own as the last: what each has is read inside it. */
  private async ofEach<T>(
    call: AdminCall,
    only: string | undefined,
    read: (tenant: TenantView) => Promise<T[]>,
  ): Promise<T[]> {
    const { tenantId } = await scopeOf(call, this.tenants, only);
    const appliance = await this.tenants.find(call.principal.tenant);
    const items: T[] = [];
    for (const tenant of [...(await this.tenants.list()), appliance!])
      if (tenantId === undefined || tenant.id === tenantId) items.push(...(await read(tenant)));
    return items;
  }
}

const dated = <T extends { at: Date }>(row: T): Omit<T, 'at'> & { at: string } => ({
  ...row,
  at: row.at.toISOString(),
});

interface Named {
  id: string;
  name: string;
}
