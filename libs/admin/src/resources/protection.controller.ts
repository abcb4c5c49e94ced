import { Controller } from '@nestjs/common';
import { policyRoutes, protectionRoutes } from '#admin/contract/protection';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { PerformancePolicies } from '#storage/block/protection/policies';
import { ProtectionTemplates, type TemplateView } from '#storage/block/protection/templates';

@Controller()
export class ProtectionController {
  constructor(private readonly database: Database) {}

  @Serves(protectionRoutes.list)
  list(@Call() call: AdminCall<typeof protectionRoutes.list>) {
    return answerPage(call, page => this.templates(call).page(page), shown);
  }

  @Serves(protectionRoutes.get)
  get(@Call() call: AdminCall<typeof protectionRoutes.get>) {
    return this.answer(call, call.params.template);
  }

  @Serves(protectionRoutes.create)
  async create(@Call() call: AdminCall<typeof protectionRoutes.create>) {
    const { name, schedules } = call.body;
    const fields = { name: 'name', schedules: 'schedules' };
    const change = new Change(call, { action: 'protection-template.create', after: call.body, fields });
    await change.carryOut(() => this.templates(call).add(name, schedules, change));
    call.giveLocation(`/tenants/${call.tenant.name}/protection-templates/${encodeURIComponent(name)}`);
    return this.answer(call, name);
  }

  @Serves(protectionRoutes.delete)
  async delete(@Call() call: AdminCall<typeof protectionRoutes.delete>): Promise<void> {
    const { template: name } = call.params;
    const templates = this.templates(call);
    const read = async (tx: Tx) => {
      const row = await templates.find(tx, name);
      return row && { ...versioned(row), view: shown(row) };
    };
    const change = new Change(call, { action: 'protection-template.delete', read });
    await change.carryOut(() => templates.remove(name, change));
  }

  @Serves(policyRoutes.list)
  async policies(@Call() call: AdminCall<typeof policyRoutes.list>) {
    return { items: await this.policiesOf(call).list() };
  }

  @Serves(policyRoutes.create)
  async createPolicy(@Call() call: AdminCall<typeof policyRoutes.create>) {
    const { name, description, config: given } = call.body;
    const config = Object.fromEntries(Object.entries(given).map(([key, value]) => [key, String(value)]));
    const change = new Change(call, {
      action: 'performance-policy.create',
      after: call.body,
      fields: { name: 'name' },
    });
    await change.carryOut(() => this.policiesOf(call).add(name, description, config, change));
    call.giveLocation(`/tenants/${call.tenant.name}/performance-policies/${encodeURIComponent(name)}`);
    return { name, description, config, shipped: false };
  }

  @Serves(policyRoutes.delete)
  async deletePolicy(@Call() call: AdminCall<typeof policyRoutes.delete>): Promise<void> {
    const change = new Change(call, { action: 'performance-policy.delete' });
    await change.carryOut(() => this.policiesOf(call).remove(call.params.policy, change));
  }

  private policiesOf({ tenant }: AdminCall): PerformancePolicies {
    return new PerformancePolicies(this.database, tenant.id);
  }

  private templates({ tenant }: AdminCall): ProtectionTemplates {
    return new ProtectionTemplates(this.database, tenant.id);
  }

  private async answer(call: AdminCall, name: string) {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => this.templates(call).find(tx, name));
    if (!row) throw notFound(call);
    call.giveEtag(versioned(row));
    return shown(row);
  }
}

/** A template is never edited; another one of its name is another one. */
const versioned = ({ id }: TemplateView) => ({ id, version: 1 });

const shown = ({ createdAt, ...row }: TemplateView) => ({ ...row, createdAt: createdAt.toISOString() });
