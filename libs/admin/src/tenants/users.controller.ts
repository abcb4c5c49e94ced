import { Controller } from '@nestjs/common';
import { type UserReply, userRoutes } from '#admin/contract/users';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { showLoginName } from '#tenancy/credentials/login-name';
import type { TenantRef, UserView } from '#tenancy/users/user-directory';
import { Users } from '#tenancy/users/users';

@Controller()
export class UsersController {
  constructor(private readonly users: Users) {}

  @Serves(userRoutes.list)
  list(@Call() call: AdminCall<typeof userRoutes.list>) {
    const { tenant } = call;
    return answerPage(
      call,
      page => this.users.list(tenant, page),
      user => shown(tenant, user),
    );
  }

  @Serves(userRoutes.create)
  async create(@Call() call: AdminCall<typeof userRoutes.create>): Promise<UserReply> {
    const made = await this.users.create(call.actor, call.tenant, call.body);
    call.giveLocation(`/tenants/${call.tenant.name}/users/${made.name}`);
    return reply(call, made);
  }

  @Serves(userRoutes.get)
  async get(@Call() call: AdminCall<typeof userRoutes.get>): Promise<UserReply> {
    return reply(call, await this.users.get(call.tenant, call.params.user));
  }

  @Serves(userRoutes.change)
  async change(@Call() call: AdminCall<typeof userRoutes.change>): Promise<UserReply> {
    // Whoever sets it says which person of the provider, which is the appliance's, may enter here.
    if (call.body.subject !== undefined && !call.principal.appliance)
      throw new Refusal('permission_denied', 'only administrators of the appliance link users with an identity', [
        { pointer: '/body/subject', message: 'set by administrators of the appliance alone' },
      ]);
    const check = (user: UserView) => call.requireMatch(user);
    return reply(call, await this.users.change(call.actor, call.tenant, call.params.user, call.body, check));
  }

  @Serves(userRoutes.delete)
  async delete(@Call() call: AdminCall<typeof userRoutes.delete>): Promise<void> {
    const check = (user: UserView) => call.requireMatch(user);
    await this.users.delete(call.actor, call.tenant, call.params.user, check);
  }
}

function reply(call: AdminCall, user: UserView): UserReply {
  call.giveEtag(user);
  return shown(call.tenant, user);
}

const shown = (
  tenant: TenantRef,
  { id, name, role, state, identity, createdAt, updatedAt, tokens }: UserView,
): UserReply => ({
  id,
  name,
  username: showLoginName({ tenant: tenant.name, user: name }),
  role,
  state,
  identity,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
  tokens,
});
