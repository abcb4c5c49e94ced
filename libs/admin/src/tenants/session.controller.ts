import { Controller, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { type Me, sessionRoutes } from '#admin/contract/session';
import { COOKIE, csrfOf } from '#admin/requests/admin.guard';
import { AdminCall, Call } from '#admin/requests/admin-call';
import { Serves } from '#admin/requests/serves';
import { BEGUN_COOKIE, begunCookie, sessionCookie } from '#admin/tenants/session-cookie';
import { StorageError } from '#platform/errors';
import type { LoginOrigin, Principal } from '#tenancy/logins/admin-directory';
import { AdminLogins } from '#tenancy/logins/admin-logins';
import type { ProviderDirectory } from '#tenancy/oidc/provider-directory';
import { LOGIN_SECONDS } from '#tenancy/oidc/sealed-login';
import { PROVIDER } from '#tenancy/tenancy.module';

/** Logins at the page: an httpOnly cookie, and a second value that scripts of this page alone can send back. */
@Controller()
export class SessionController {
  constructor(
    @Inject(PROVIDER) private readonly identity: ProviderDirectory | undefined,
    private readonly logins: AdminLogins,
  ) {}

  @Serves(sessionRoutes.login)
  async login(
    @Call() call: AdminCall<typeof sessionRoutes.login>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Me> {
    const { principal, token } = await this.logins.login({ ...call.body, ...originOf(call) });
    call.audited = true;
    reply.header('set-cookie', sessionCookie(token, call.encrypted, principal.expiresAt ?? undefined));
    return shownMe(principal, token);
  }

  @Serves(sessionRoutes.provider)
  provider(): { name: string | null } {
    return { name: this.identity?.name ?? null };
  }

  @Serves(sessionRoutes.beginProvider)
  async beginProvider(
    @Call() call: AdminCall<typeof sessionRoutes.beginProvider>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<{ location: string }> {
    // Nothing is changed yet.
    call.audited = true;
    const { location, sealed } = await this.known().begin();
    reply.header('set-cookie', begunCookie(sealed, call.encrypted, LOGIN_SECONDS));
    return { location };
  }

  @Serves(sessionRoutes.finishProvider)
  async finishProvider(
    @Call() call: AdminCall<typeof sessionRoutes.finishProvider>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Me> {
    const provider = this.known();
    const forget = begunCookie('', call.encrypted, 0);
    // Also when it is refused: one answer is one try.
    reply.header('set-cookie', forget);
    const sealed = call.cookie(BEGUN_COOKIE);
    const { principal, token } = await provider.finish({
      sealed,
      answer: call.body.answer,
      ...originOf(call),
    });
    call.audited = true;
    reply.header('set-cookie', sessionCookie(token, call.encrypted, principal.expiresAt ?? undefined));
    return shownMe(principal, token);
  }

  @Serves(sessionRoutes.me)
  me(@Call() call: AdminCall<typeof sessionRoutes.me>): Me {
    return shownMe(call.principal, call.cookie(COOKIE));
  }

  @Serves(sessionRoutes.logout)
  async logout(
    @Call() call: AdminCall<typeof sessionRoutes.logout>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<void> {
    call.audited = true;
    if (call.principal.kind !== 'session') return;
    await this.logins.logout(call.actor, call.principal);
    reply.header('set-cookie', sessionCookie('', call.encrypted, new Date(0)));
  }

  @Serves(sessionRoutes.changePassword)
  async changePassword(@Call() call: AdminCall<typeof sessionRoutes.changePassword>): Promise<void> {
    await this.logins.changePassword(call.actor, call.principal, call.body);
  }

  private known(): ProviderDirectory {
    const { identity: provider } = this;
    if (!provider)
      throw new StorageError('failed_precondition', 'there is no identity provider: log in with a password');
    return provider;
  }
}

export const originOf = ({ address, userAgent }: AdminCall): LoginOrigin => ({ address, userAgent });

export const shownMe = (principal: Principal, cookie: string | undefined): Me => ({
  username: principal.username,
  tenant: principal.tenant,
  appliance: principal.appliance,
  role: principal.role,
  token: principal.kind === 'token' ? principal.tokenName : null,
  expiresAt: principal.expiresAt?.toISOString() ?? null,
  csrf: principal.kind === 'session' && cookie ? csrfOf(cookie) : null,
});
