import { Controller } from '@nestjs/common';
import { z } from 'zod';
import { type BackendKindReply, type BackendReply, backendRoutes } from '#admin/contract/backends';
import type { ReplyOf } from '#admin/contract/route';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import type { KnownKind } from '#storage/backends/backend-kinds';
import { BackendRegistrations } from '#storage/backends/backend-registrations';
import type { BackendView } from '#storage/backends/backend-view';

@Controller()
export class BackendsController {
  constructor(private readonly backends: BackendRegistrations) {}

  @Serves(backendRoutes.kinds)
  kinds(): ReplyOf<typeof backendRoutes.kinds> {
    return { items: this.backends.kinds.all().map(kindShown) };
  }

  @Serves(backendRoutes.list)
  list(@Call() call: AdminCall<typeof backendRoutes.list>): Promise<ReplyOf<typeof backendRoutes.list>> {
    return answerPage(call, request => this.backends.list(call.tenant, request), shown);
  }

  @Serves(backendRoutes.get)
  async get(@Call() call: AdminCall<typeof backendRoutes.get>): Promise<BackendReply> {
    return reply(call, await this.backends.get(call.tenant, call.params.backend));
  }

  @Serves(backendRoutes.create)
  async create(@Call() call: AdminCall<typeof backendRoutes.create>): Promise<BackendReply> {
    const { backends } = this;
    const { body } = call;
    const made =
      'share' in body
        ? await backends.share(call.actor, call.tenant, body)
        : await backends.register(call.actor, call.tenant, body);
    call.giveLocation(`/tenants/${call.tenant.name}/backends/${made.name}`);
    return reply(call, made);
  }

  @Serves(backendRoutes.change)
  async change(@Call() call: AdminCall<typeof backendRoutes.change>): Promise<BackendReply> {
    const { backends } = this;
    const found = await backends.get(call.tenant, call.params.backend);
    call.requireMatch(found);
    const changed = await backends.change(call.actor, call.tenant, found, call.body);
    if (!changed) throw changedMeanwhile(found.name);
    return reply(call, changed);
  }

  @Serves(backendRoutes.delete)
  async delete(@Call() call: AdminCall<typeof backendRoutes.delete>): Promise<void> {
    const { backends } = this;
    const found = await backends.get(call.tenant, call.params.backend);
    call.requireMatch(found);
    if (!(await backends.delete(call.actor, call.tenant, found))) throw changedMeanwhile(found.name);
  }

  @Serves(backendRoutes.tryOut)
  tryOut(@Call() call: AdminCall<typeof backendRoutes.tryOut>): Promise<ReplyOf<typeof backendRoutes.tryOut>> {
    const { name, ...wanted } = call.body;
    return this.backends.tryOut(call.actor, call.tenant, { ...wanted, ...(name === undefined ? {} : { name }) });
  }

  /** Nothing changes, so the audit log has no word of it. */
  @Serves(backendRoutes.test)
  test(@Call() call: AdminCall<typeof backendRoutes.test>): Promise<ReplyOf<typeof backendRoutes.test>> {
    call.audited = true;
    return this.backends.test(call.tenant, call.params.backend);
  }
}

const changedMeanwhile = (name: string): Refusal =>
  new Refusal('precondition_failed', `backend ${name} was changed meanwhile: read it again, and decide anew`);

function reply(call: AdminCall, view: BackendView): BackendReply {
  call.giveEtag(view);
  return shown(view);
}

function kindShown({ kind, config, credentials }: KnownKind): BackendKindReply {
  const { title = kind, description = '' } = config.meta() ?? {};
  return { kind, title, description, config: formOf(config), credentials: formOf(credentials) };
}

/** As it may be sent: what has a default may be left out. */
function formOf(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...form } = z.toJSONSchema(schema, { io: 'input' });
  return form;
}

const shown = (view: BackendView): BackendReply => ({
  ...view,
  health: { ...view.health, since: view.health.since?.toISOString() ?? null },
  createdAt: view.createdAt.toISOString(),
  updatedAt: view.updatedAt.toISOString(),
});
