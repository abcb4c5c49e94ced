import { Controller } from '@nestjs/common';
import { type QuotasReply, type TenantReply, tenantRoutes } from '#admin/contract/tenants';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import type { PageRequest } from '#platform/database/keyset';
import { APPLIANCE_TENANT } from '#tenancy/credentials/login-name';
import type { Quota } from '#tenancy/quotas/quotas';
import { limitsOf, TenantQuotas } from '#tenancy/quotas/tenant-quotas';
import type { TenantView } from '#tenancy/tenants/tenant-directory';
import { TenantEnding } from '#tenancy/tenants/tenant-ending';
import { Tenants } from '#tenancy/tenants/tenants';

@Controller()
export class TenantsController {
  constructor(
    private readonly tenants: Tenants,
    private readonly tenantEnding: TenantEnding,
    private readonly limits: TenantQuotas,
  ) {}

  @Serves(tenantRoutes.list)
  list(@Call() call: AdminCall<typeof tenantRoutes.list>) {
    const { state, search } = call.query;
    const { appliance, tenant } = call.principal;
    const only = appliance ? undefined : tenant;
    const read = (page: PageRequest) => this.tenants.page({ state, search, only }, page);
    return answerPage(call, read, shown);
  }

  @Serves(tenantRoutes.create)
  async create(@Call() call: AdminCall<typeof tenantRoutes.create>): Promise<TenantReply> {
    const made = await this.tenants.create(call.actor, call.body);
    call.giveLocation(`/tenants/${made.name}`);
    return reply(call, made);
  }

  @Serves(tenantRoutes.get)
  async get(@Call() call: AdminCall<typeof tenantRoutes.get>): Promise<TenantReply> {
    const { tenant } = call;
    const drain = tenant.state === 'draining' ? await this.tenantEnding.view(tenant.id) : null;
    return { ...reply(call, tenant), drain: drain && { ...drain, left: { ...drain.left } } };
  }

  @Serves(tenantRoutes.change)
  async change(@Call() call: AdminCall<typeof tenantRoutes.change>): Promise<TenantReply> {
    if (call.tenant.name === APPLIANCE_TENANT)
      throw new Refusal('failed_precondition', 'the tenant of the appliance itself stays as it is');
    call.requireMatch(call.tenant);
    const changed = await this.tenants.change(call.actor, call.tenant, call.body);
    if (!changed) throw new Refusal('precondition_failed', `tenant ${call.tenant.name} was changed meanwhile`);
    return reply(call, changed);
  }

  @Serves(tenantRoutes.quotas)
  async quotas(@Call() call: AdminCall<typeof tenantRoutes.quotas>): Promise<QuotasReply> {
    return quotasReply(call, await this.limits.read(call.tenant));
  }

  @Serves(tenantRoutes.setQuotas)
  async setQuotas(@Call() call: AdminCall<typeof tenantRoutes.setQuotas>): Promise<QuotasReply> {
    const check = (now: Quota[]) => call.requireMatch(versioned(call, now));
    const given = Object.entries(call.body).filter(([, limit]) => limit !== undefined);
    const changes = Object.fromEntries(given.map(([key, limit]) => [key, limit === null ? null : String(limit)]));
    return quotasReply(call, await this.limits.change(call.actor, call.tenant, changes, check));
  }
}

function reply(call: AdminCall, tenant: TenantView): TenantReply {
  call.giveEtag(tenant);
  return shown(tenant);
}

const shown = ({ id: _, createdAt, updatedAt, ...view }: TenantView): TenantReply => ({
  ...view,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
  drain: null,
});

function quotasReply(call: AdminCall, quotas: readonly Quota[]): QuotasReply {
  call.giveEtag(versioned(call, quotas));
  return Object.fromEntries(quotas.map(({ key, limit, used }) => [key, { limit, used }])) as QuotasReply;
}

/** Of the limits: what is used changes all the time, and nobody sets it. */
const versioned = ({ tenant: { id } }: AdminCall, quotas: readonly Quota[]) => ({
  id,
  version: JSON.stringify(limitsOf(quotas)),
});
