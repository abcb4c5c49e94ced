import { Controller, Inject } from '@nestjs/common';
import { ENDPOINT_SOCKETS } from '#admin/admin-keys';
import { type EndpointReply, endpointRoutes } from '#admin/contract/endpoints';
import type { ReplyOf } from '#admin/contract/route';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import type { EndpointDoors } from '#tenancy/endpoints/endpoint-doors';
import { EndpointRegistrations, type EndpointView } from '#tenancy/endpoints/endpoint-registrations';

/** After a change the answer says what this gateway has made of it; the others follow within seconds. */
@Controller()
export class EndpointsController {
  constructor(
    private readonly endpoints: EndpointRegistrations,
    @Inject(ENDPOINT_SOCKETS) private readonly doors: EndpointDoors,
  ) {}

  @Serves(endpointRoutes.list)
  list(@Call() call: AdminCall<typeof endpointRoutes.list>): Promise<ReplyOf<typeof endpointRoutes.list>> {
    const { endpoints } = this;
    return answerPage(
      call,
      request => endpoints.list(call.tenant, request),
      view => this.shown(call, view),
    );
  }

  @Serves(endpointRoutes.get)
  async get(@Call() call: AdminCall<typeof endpointRoutes.get>): Promise<EndpointReply> {
    return this.reply(call, await this.endpoints.get(call.tenant, call.params.endpoint));
  }

  @Serves(endpointRoutes.create)
  async create(@Call() call: AdminCall<typeof endpointRoutes.create>): Promise<EndpointReply> {
    const { endpoints, doors } = this;
    const { name, protocol, driverName, ...rest } = call.body;
    const { backend, ...options } = { backend: undefined, ...rest };
    const made = await endpoints.create(call.actor, call.tenant, { name, protocol, backend, driverName, options });
    await doors.follow();
    call.giveLocation(`/tenants/${call.tenant.name}/endpoints/${made.name}`);
    return this.reply(call, made);
  }

  @Serves(endpointRoutes.change)
  async change(@Call() call: AdminCall<typeof endpointRoutes.change>): Promise<EndpointReply> {
    const { endpoints, doors } = this;
    const found = await endpoints.get(call.tenant, call.params.endpoint);
    call.requireMatch(found);
    const changed = await endpoints.change(call.actor, call.tenant, found, call.body);
    if (!changed) throw changedMeanwhile(found.name);
    await doors.follow();
    return this.reply(call, changed);
  }

  @Serves(endpointRoutes.delete)
  async delete(@Call() call: AdminCall<typeof endpointRoutes.delete>): Promise<void> {
    const { endpoints, doors } = this;
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
      ...this.doors.show(call.tenant.name, view),
    };
  }
}

const changedMeanwhile = (name: string): Refusal =>
  new Refusal('precondition_failed', `endpoint ${name} was changed meanwhile: read it again, and decide anew`);
