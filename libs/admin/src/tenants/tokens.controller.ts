import { Controller } from '@nestjs/common';
import { type ApiTokenReply, tokenRoutes } from '#admin/contract/users';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { ApiTokens } from '#tenancy/tokens/api-tokens';
import type { TokenView } from '#tenancy/tokens/token-directory';
import { exceeds, type Role } from '#tenancy/users/roles';

const DAY_MS = 86_400_000;

/** API tokens: everybody makes and revokes one's own, an administrator anybody's. */
@Controller()
export class TokensController {
  constructor(private readonly tokens: ApiTokens) {}

  @Serves(tokenRoutes.list)
  list(@Call() call: AdminCall<typeof tokenRoutes.list>) {
    const { user } = call.query;
    return answerPage(call, page => this.tokens.list(call.tenant, { user }, page), shown);
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
    const { token, ...made } = await this.tokens.create(call.actor, call.tenant, {
      name: body.name,
      user: body.user ?? user,
      role: body.role,
      expiresInMs: body.expiresInDays === undefined ? undefined : body.expiresInDays * DAY_MS,
    });
    return { ...shown(made), token };
  }

  @Serves(tokenRoutes.rotate)
  async rotate(@Call() call: AdminCall<typeof tokenRoutes.rotate>) {
    const { graceSeconds, expiresInDays } = call.body;
    const { role, username } = call.principal;
    const rotation = {
      graceMs: graceSeconds * 1_000,
      expiresInMs: expiresInDays === undefined ? undefined : expiresInDays * DAY_MS,
    };
    const check = (owner: string, itsRole: Role) => {
      requireOwner(call, owner, 'rotates');
      // Whoever is shown the secret may do what it may.
      if (exceeds(itsRole, role))
        throw new Refusal('permission_denied', `${username} is ${role} here, and that token is ${itsRole}`);
    };
    const { token, ...made } = await this.tokens.rotate(call.actor, call.tenant, call.params.token, rotation, check);
    return { ...shown(made), token };
  }

  @Serves(tokenRoutes.revoke)
  async revoke(@Call() call: AdminCall<typeof tokenRoutes.revoke>): Promise<void> {
    await this.tokens.revoke(call.actor, call.tenant, call.params.token, owner => requireOwner(call, owner, 'revokes'));
  }
}

function requireOwner({ principal: { role, userId, username } }: AdminCall, owner: string, does: string): void {
  if (owner !== userId && role !== 'admin')
    throw new Refusal('permission_denied', `${username} is ${role}, and ${does} its own tokens alone`);
}

const shown = ({ createdAt, lastUsedAt, expiresAt, ...view }: TokenView): ApiTokenReply => ({
  ...view,
  createdAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
  expiresAt: expiresAt?.toISOString() ?? null,
});
