import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { Change, notFound } from '#admin/change';
import { protectionRoutes } from '#admin/contract/protection';
import { answerPage } from '#admin/paging';
import type { Resources } from '#admin/resources';
import { Serves } from '#admin/serves';
import type { Tx } from '#platform/database';
import { ProtectionTemplates, type TemplateView } from '#storage/protection/templates';

@Controller()
export class ProtectionController {
  private readonly resources: Resources;

  constructor(@Inject(ADMIN_OPTIONS) { resources }: AdminOptions) {
    this.resources = resources;
  }

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
    await change.carryOut({}, () => this.templates(call).add(name, schedules, change));
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
    await change.carryOut({}, () => templates.remove(name, change));
  }

  private templates({ tenant }: AdminCall): ProtectionTemplates {
    return new ProtectionTemplates(this.resources.database, tenant.id);
  }

  private async answer(call: AdminCall, name: string) {
    const { id: tenantId } = call.tenant;
    const row = await this.resources.database.withTenant(tenantId, tx => this.templates(call).find(tx, name));
    if (!row) throw notFound(call);
    call.giveEtag(versioned(row));
    return shown(row);
  }
}

/** A template is never edited; another one of its name is another one. */
const versioned = ({ id }: TemplateView) => ({ id, version: 1 });

const shown = ({ createdAt, ...row }: TemplateView) => ({ ...row, createdAt: createdAt.toISOString() });
