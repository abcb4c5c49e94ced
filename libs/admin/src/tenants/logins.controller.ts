import { Controller } from '@nestjs/common';
import { type LoginReply, loginRoutes } from '#admin/contract/logins';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { type LoginOwner, type LoginView, OpenLogins } from '#tenancy/logins/open-logins';

/** Logins at the page: everybody ends one's own, an administrator anybody's. */
@Controller()
export class LoginsController {
  constructor(private readonly logins: OpenLogins) {}

  @Serves(loginRoutes.listOwn)
  listOwn(@Call() call: AdminCall<typeof loginRoutes.listOwn>) {
    return this.page(call, call.principal);
  }

  @Serves(loginRoutes.endOwn)
  async endOwn(@Call() call: AdminCall<typeof loginRoutes.endOwn>): Promise<void> {
    await this.logins.end(call.actor, call.principal, call.params.login);
  }

  @Serves(loginRoutes.endOthers)
  async endOthers(@Call() call: AdminCall<typeof loginRoutes.endOthers>): Promise<{ ended: number }> {
    const { principal } = call;
    const spared = principal.kind === 'session' ? principal.id : undefined;
    return { ended: await this.logins.endAll(call.actor, principal, spared) };
  }

  @Serves(loginRoutes.list)
  async list(@Call() call: AdminCall<typeof loginRoutes.list>) {
    return this.page(call, await this.logins.ownerOf(call.tenant, call.params.user));
  }

  @Serves(loginRoutes.endAll)
  async endAll(@Call() call: AdminCall<typeof loginRoutes.endAll>): Promise<{ ended: number }> {
    const owner = await this.logins.ownerOf(call.tenant, call.params.user);
    return { ended: await this.logins.endAll(call.actor, owner) };
  }

  private page(call: AdminCall, owner: Pick<LoginOwner, 'tenantId' | 'userId'>) {
    const { id } = call.principal;
    return answerPage(
      call,
      page => this.logins.list(owner, page),
      login => shown(login, id),
    );
  }
}

const shown = ({ openedBy, createdAt, lastUsedAt, expiresAt, ...view }: LoginView, own: string): LoginReply => ({
  ...view,
  current: view.id === own,
  openedBy: openedBy === '' ? null : openedBy,
  createdAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
  expiresAt: expiresAt.toISOString(),
});
