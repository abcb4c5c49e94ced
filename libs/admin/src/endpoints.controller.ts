import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { type EndpointReply, endpointRoutes } from '#admin/contract/backends';
import type { ReplyOf } from '#admin/contract/route';
import { answerPage } from '#admin/paging';
import { Refusal } from '#admin/problems';
import { Serves } from '#admin/serves';
import type { EndpointView } from '#tenancy/endpoint-registrations';

/** After a change the answer says what this gateway has made of it; the others follow within seconds. */
@Controller()
export class EndpointsController {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: AdminOptions) {}

  @Serves(endpointRoutes.list)
  list(@Call() call: AdminCall<typeof endpointRoutes.list>): Promise<ReplyOf<typeof endpointRoutes.list>> {
    const { endpoints } = this.options;
    return answerPage(
      call,
      request => endpoints.list(call.tenant, request),
      view => this.shown(call, view),
    );
  }

  @Serves(endpointRoutes.get)
  async get(@Call() call: AdminCall<typeof endpointRoutes.get>): Promise<EndpointReply> {
    return this.reply(call, await this.options.endpoints.get(call.tenant, call.params.endpoint));
  }

  @Serves(endpointRoutes.create)
  async create(@Call() call: AdminCall<typeof endpointRoutes.create>): Promise<EndpointReply> {
    const { endpoints, doors } = this.options;
    const { name, protocol, driverName, ...rest } = call.body;
    const { backend, ...options } = { backend: undefined, ...rest };
    const made = await endpoints.create(call.actor, call.tenant, { name, protocol, backend, driverName, options });
    await doors.follow();
    call.giveLocation(`/tenants/${call.tenant.name}/endpoints/${made.name}`);
    return this.reply(call, made);
  }

  @Serves(endpointRoutes.change)
  async change(@Call() call: AdminCall<typeof endpointRoutes.change>): Promise<EndpointReply> {
    const { endpoints, doors } = this.options;
    const found = await endpoints.get(call.tenant, call.params.endpoint);
    call.requireMatch(found);
    const changed = await endpoints.change(call.actor, call.tenant, found, call.body);
    if (!changed) throw changedMeanwhile(found.name);
    await doors.follow();
    return this.reply(call, changed);
  }

  @Serves(endpointRoutes.delete)
  async delete(@Call() call: AdminCall<typeof endpointRoutes.delete>): Promise<void> {
    const { endpoints, doors } = this.options;
    const found = await endpoints.get(call.tenant, call.params.endpoint);
    call.requireMatch(found);
    if (!(await endpoints.delete(call.actor, call.tenant, found))) throw changedMeanwhile(found.name);
    await doors.follow();
  }

  private reply(call: AdminCall, view: EndpointView): EndpointReply {
    call.giveEtag(view);
    return this.shown(call, view);
  }

  private shown(call: AdminCall, view: EndpointView): EndpointReply {
    const { id, name, protocol, backend, state, version, createdAt, updatedAt } = view;
    return {
      id,
      name,
      protocol,
      backend,
      state,
      version,
      createdAt: createdAt.toISOString(),
      updatedAt: updatedAt.toISOString(),
      ...this.options.doors.show(call.tenant.name, view),
    };
  }
}

const changedMeanwhile = (name: string): Refusal =>
  new Refusal('precondition_failed', `endpoint ${name} was changed meanwhile: read it again, and decide anew`);
