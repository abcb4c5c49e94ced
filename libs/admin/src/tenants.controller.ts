import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { type QuotasReply, type TenantReply, tenantRoutes } from '#admin/contract/tenants';
import { answerPage } from '#admin/paging';
import { Refusal } from '#admin/problems';
import { Serves } from '#admin/serves';
import type { PageRequest } from '#platform/keyset';
import { APPLIANCE_TENANT } from '#tenancy/login-name';
import type { Quota } from '#tenancy/quotas';
import type { TenantView } from '#tenancy/tenant-directory';
import { limitsOf } from '#tenancy/tenant-quotas';

@Controller()
export class TenantsController {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: AdminOptions) {}

  @Serves(tenantRoutes.list)
  list(@Call() call: AdminCall<typeof tenantRoutes.list>) {
    const { state, search } = call.query;
    const { appliance, tenant } = call.principal;
    const only = appliance ? undefined : tenant;
    const read = (page: PageRequest) => this.options.tenants.page({ state, search, only }, page);
    return answerPage(call, read, shown);
  }

  @Serves(tenantRoutes.create)
  async create(@Call() call: AdminCall<typeof tenantRoutes.create>): Promise<TenantReply> {
    const made = await this.options.tenants.create(call.actor, call.body);
    call.giveLocation(`/tenants/${made.name}`);
    return reply(call, made);
  }

  @Serves(tenantRoutes.get)
  async get(@Call() call: AdminCall<typeof tenantRoutes.get>): Promise<TenantReply> {
    const { tenant } = call;
    const drain = tenant.state === 'draining' ? await this.options.tenantEnding.view(tenant.id) : null;
    return { ...reply(call, tenant), drain: drain && { ...drain, left: { ...drain.left } } };
  }

  @Serves(tenantRoutes.change)
  async change(@Call() call: AdminCall<typeof tenantRoutes.change>): Promise<TenantReply> {
    if (call.tenant.name === APPLIANCE_TENANT)
      throw new Refusal('failed_precondition', 'the tenant of the appliance itself stays as it is');
    call.requireMatch(call.tenant);
    const changed = await this.options.tenants.change(call.actor, call.tenant, call.body);
    if (!changed) throw new Refusal('precondition_failed', `tenant ${call.tenant.name} was changed meanwhile`);
    return reply(call, changed);
  }

  @Serves(tenantRoutes.quotas)
  async quotas(@Call() call: AdminCall<typeof tenantRoutes.quotas>): Promise<QuotasReply> {
    return quotasReply(call, await this.options.quotas.read(call.tenant));
  }

  @Serves(tenantRoutes.setQuotas)
  async setQuotas(@Call() call: AdminCall<typeof tenantRoutes.setQuotas>): Promise<QuotasReply> {
    const check = (now: Quota[]) => call.requireMatch(versioned(call, now));
    const given = Object.entries(call.body).filter(([, limit]) => limit !== undefined);
    const changes = Object.fromEntries(given.map(([key, limit]) => [key, limit === null ? null : String(limit)]));
    return quotasReply(call, await this.options.quotas.change(call.actor, call.tenant, changes, check));
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
