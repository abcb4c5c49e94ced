import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { type ApiTokenReply, tokenRoutes } from '#admin/contract/users';
import { answerPage } from '#admin/paging';
import { Refusal } from '#admin/problems';
import { Serves } from '#admin/serves';
import { exceeds } from '#tenancy/roles';
import type { TokenView } from '#tenancy/token-directory';

const DAY_MS = 86_400_000;

/** API tokens: everybody makes and revokes one's own, an administrator anybody's. */
@Controller()
export class TokensController {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: AdminOptions) {}

  @Serves(tokenRoutes.list)
  list(@Call() call: AdminCall<typeof tokenRoutes.list>) {
    const { user } = call.query;
    return answerPage(call, page => this.options.tokens.list(call.tenant, { user }, page), shown);
  }

  @Serves(tokenRoutes.create)
  async create(@Call() call: AdminCall<typeof tokenRoutes.create>) {
    const { role, username, tenant, user } = call.principal;
    const { body } = call;
    const own = tenant === call.tenant.name;
    if (body.user === undefined && !own) {
      const message = `${username} is no user of tenant ${call.tenant.name}: say whose the token is`;
      throw new Refusal('invalid_argument', `user: ${message}`, [{ pointer: '/body/user', message }]);
    }
    const isSelf = own && (body.user === undefined || body.user === user || body.user === username);
    if (!isSelf && role !== 'admin')
      throw new Refusal('permission_denied', `${username} is ${role}, and makes tokens for itself alone`);
    if (exceeds(body.role, role)) {
      const message = `${username} is ${role} here, and gives nobody more rights than that`;
      throw new Refusal('permission_denied', message, [{ pointer: '/body/role', message }]);
    }
    const { token, ...made } = await this.options.tokens.create(call.actor, call.tenant, {
      name: body.name,
      user: body.user ?? user,
      role: body.role,
      expiresInMs: body.expiresInDays === undefined ? undefined : body.expiresInDays * DAY_MS,
    });
    return { ...shown(made), token };
  }

  @Serves(tokenRoutes.revoke)
  async revoke(@Call() call: AdminCall<typeof tokenRoutes.revoke>): Promise<void> {
    const { role, userId, username } = call.principal;
    await this.options.tokens.revoke(call.actor, call.tenant, call.params.token, owner => {
      if (owner !== userId && role !== 'admin')
        throw new Refusal('permission_denied', `${username} is ${role}, and revokes its own tokens alone`);
    });
  }
}

const shown = ({ createdAt, lastUsedAt, expiresAt, ...view }: TokenView): ApiTokenReply => ({
  ...view,
  createdAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
  expiresAt: expiresAt?.toISOString() ?? null,
});
