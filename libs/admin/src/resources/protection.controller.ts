import { Controller } from '@nestjs/common';
import { policyRoutes, protectionRoutes } from '#admin/contract/protection';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Database, type Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { PerformancePolicies, type PolicyView } from '#storage/block/protection/policies';
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

  @Serves(protectionRoutes.change)
  async change(@Call() call: AdminCall<typeof protectionRoutes.change>) {
    const { template: name } = call.params;
    const templates = this.templates(call);
    const change = new Change(call, {
      action: 'protection-template.change',
      read: tx => seen(templates.find(tx, name)),
      after: call.body,
      fields: { schedules: 'schedules' },
    });
    await change.carryOut(() => templates.edit(name, call.body.schedules, change));
    return this.answer(call, name);
  }

  @Serves(protectionRoutes.delete)
  async delete(@Call() call: AdminCall<typeof protectionRoutes.delete>): Promise<void> {
    const { template: name } = call.params;
    const templates = this.templates(call);
    const read = (tx: Tx) => seen(templates.find(tx, name));
    const change = new Change(call, { action: 'protection-template.delete', read });
    await change.carryOut(() => templates.remove(name, change));
  }

  @Serves(policyRoutes.list)
  async policies(@Call() call: AdminCall<typeof policyRoutes.list>) {
    return { items: await this.policiesOf(call).list() };
  }

  @Serves(policyRoutes.get)
  policy(@Call() call: AdminCall<typeof policyRoutes.get>) {
    return this.answerPolicy(call, call.params.policy);
  }

  @Serves(policyRoutes.change)
  async changePolicy(@Call() call: AdminCall<typeof policyRoutes.change>) {
    const { policy: name } = call.params;
    const policies = this.policiesOf(call);
    const found = await this.findPolicy(call, name);
    call.requireMatch(versionedPolicy(found));
    const read = async (tx: Tx) => {
      const row = await policies.find(tx, name);
      return row && { ...versionedPolicy(row), view: row };
    };
    const change = new Change(call, { action: 'performance-policy.change', read, after: call.body });
    const { description, config } = call.body;
    const changes = { description, config: config && asText(config) };
    await change.carryOut(() => policies.edit(name, changes, change));
    return this.answerPolicy(call, name);
  }

  @Serves(policyRoutes.create)
  async createPolicy(@Call() call: AdminCall<typeof policyRoutes.create>) {
    const { name, description } = call.body;
    const config = asText(call.body.config);
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

  private async findPolicy(call: AdminCall, name: string): Promise<PolicyView> {
    const row = await this.database.withTenant(call.tenant.id, tx => this.policiesOf(call).find(tx, name));
    if (!row) throw new StorageError('not_found', `there is no performance policy ${name}`);
    return row;
  }

  private async answerPolicy(call: AdminCall, name: string): Promise<PolicyView> {
    const row = await this.findPolicy(call, name);
    call.giveEtag(versionedPolicy(row));
    return row;
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

/** Another one of its name is another one. */
const versioned = ({ id, schedules }: TemplateView) => ({ id, version: JSON.stringify(schedules) });

async function seen(found: Promise<TemplateView | undefined>) {
  const row = await found;
  return row && { ...versioned(row), view: shown(row) };
}

/** Its name is its key: one that says the same is the same. */
const versionedPolicy = ({ name, description, config }: PolicyView) => ({
  id: name,
  version: JSON.stringify([description, config]),
});

/** As the rows have it. */
const asText = (config: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.entries(config).map(([key, value]) => [key, String(value)]));

const shown = ({ createdAt, ...row }: TemplateView) => ({ ...row, createdAt: createdAt.toISOString() });
