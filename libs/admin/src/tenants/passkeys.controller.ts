import { Controller, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { PasskeyReply } from '#admin/contract/factor-forms';
import { passkeyRoutes } from '#admin/contract/passkeys';
import type { Me } from '#admin/contract/session';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Serves } from '#admin/requests/serves';
import { originOf, shownMe } from '#admin/tenants/session.controller';
import { sessionCookie } from '#admin/tenants/session-cookie';
import { Passkeys, type PasskeyView } from '#tenancy/logins/passkeys';

@Controller()
export class PasskeysController {
  constructor(private readonly passkeys: Passkeys) {}

  @Serves(passkeyRoutes.available)
  available() {
    return { host: this.passkeys.host ?? null };
  }

  @Serves(passkeyRoutes.beginLogin)
  async beginLogin(@Call() call: AdminCall<typeof passkeyRoutes.beginLogin>) {
    // Nothing is changed yet.
    call.audited = true;
    return { options: await this.passkeys.beginLogin(originOf(call)) };
  }

  @Serves(passkeyRoutes.login)
  async login(
    @Call() call: AdminCall<typeof passkeyRoutes.login>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Me> {
    const { principal, token } = await this.passkeys.login(call.body, originOf(call));
    call.audited = true;
    reply.header('set-cookie', sessionCookie(token, call.encrypted, principal.expiresAt ?? undefined));
    return shownMe(principal, token);
  }

  @Serves(passkeyRoutes.beginAdding)
  async beginAdding(@Call() call: AdminCall<typeof passkeyRoutes.beginAdding>) {
    return { options: await this.passkeys.beginAdding(call.actor, call.principal, call.body) };
  }

  @Serves(passkeyRoutes.add)
  async add(@Call() call: AdminCall<typeof passkeyRoutes.add>): Promise<PasskeyReply> {
    const { name, ...made } = call.body;
    return shownPasskey(await this.passkeys.add(call.actor, call.principal, name, made));
  }

  @Serves(passkeyRoutes.remove)
  async remove(@Call() call: AdminCall<typeof passkeyRoutes.remove>): Promise<void> {
    await this.passkeys.remove(call.actor, call.principal, call.params.passkey, call.body);
  }
}

export const shownPasskey = ({ id, name, createdAt, lastUsedAt }: PasskeyView): PasskeyReply => ({
  id,
  name,
  createdAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
});
