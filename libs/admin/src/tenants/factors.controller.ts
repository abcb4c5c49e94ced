import { Controller } from '@nestjs/common';
import { factorRoutes } from '#admin/contract/factors';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Serves } from '#admin/requests/serves';
import { shownPasskey } from '#admin/tenants/passkeys.controller';
import { type BegunTotp, FactorChanges } from '#tenancy/logins/factor-changes';
import { Passkeys } from '#tenancy/logins/passkeys';

/** Second factors: everybody one's own, with password and code; an administrator takes those of others away. */
@Controller()
export class FactorsController {
  constructor(
    private readonly factors: FactorChanges,
    private readonly passkeys: Passkeys,
  ) {}

  @Serves(factorRoutes.get)
  async get(@Call() call: AdminCall<typeof factorRoutes.get>) {
    const { totpSince, recoveryCodes } = await this.factors.view(call.principal);
    const passkeys = await this.passkeys.list(call.principal);
    return {
      totp: totpSince && { since: totpSince.toISOString() },
      passkeys: passkeys.map(shownPasskey),
      recoveryCodes,
    };
  }

  @Serves(factorRoutes.beginTotp)
  beginTotp(@Call() call: AdminCall<typeof factorRoutes.beginTotp>): Promise<BegunTotp> {
    return this.factors.begin(call.actor, call.principal, call.body.password);
  }

  @Serves(factorRoutes.confirmTotp)
  async confirmTotp(@Call() call: AdminCall<typeof factorRoutes.confirmTotp>) {
    const { principal, body } = call;
    return { recoveryCodes: await this.factors.confirm(call.actor, principal, body.code, principal.id) };
  }

  @Serves(factorRoutes.renewRecoveryCodes)
  async renewRecoveryCodes(@Call() call: AdminCall<typeof factorRoutes.renewRecoveryCodes>) {
    return { recoveryCodes: await this.factors.renewRecovery(call.actor, call.principal, call.body) };
  }

  @Serves(factorRoutes.removeTotp)
  async removeTotp(@Call() call: AdminCall<typeof factorRoutes.removeTotp>): Promise<void> {
    await this.factors.remove(call.actor, call.principal, call.body);
  }

  @Serves(factorRoutes.reset)
  async reset(@Call() call: AdminCall<typeof factorRoutes.reset>): Promise<void> {
    await this.factors.reset(call.actor, call.tenant, call.params.user, call.principal.userId);
  }
}
