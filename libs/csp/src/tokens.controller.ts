import { Body, Delete, HttpCode, Inject, Param, Post, Req, UseGuards } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { Call, type CspCall, Rules } from '#csp/csp-call';
import { CspRefusal } from '#csp/csp-errors';
import { CSP_OPTIONS, type CspOptions } from '#csp/csp-options';
import { parseBody, text, unwrap } from '#csp/request-body';
import { seconds } from '#csp/snapshot-messages';
import { TokenGuard } from '#csp/token.guard';
import { isStorageError } from '#platform/errors';

/** The driver always sends array_ip, empty when it talks to the array directly. */
const loginBody = z.object({
  username: text(255).min(1, 'required'),
  password: z.string({ error: 'required, expected text' }).min(1, 'required').max(1_024),
  array_ip: text(255).nullish(),
});

/** `/tokens`: logins. The way the login is written decides over the envelope of every reply to its session. */
export class TokensController {
  constructor(@Inject(CSP_OPTIONS) private readonly options: CspOptions) {}

  /** Exactly 200: the driver ends itself at any other success (docs/callers.md#logins). */
  @Post()
  @HttpCode(200)
  async login(@Body() given: unknown, @Req() request: FastifyRequest): Promise<unknown> {
    const { body, enveloped } = unwrap(given);
    const { username, password, array_ip } = parseBody(loginBody, body);
    const session = await this.options.sessions
      .login({ username, password, arrayIp: array_ip ?? '', enveloped, address: request.ip })
      .catch(refuseLogin);
    const reply = {
      id: session.id,
      username,
      array_ip: array_ip ?? '',
      creation_time: seconds(session.createdAt),
      expiry_time: seconds(session.expiresAt),
      session_token: session.token,
    };
    return enveloped ? { data: reply } : reply;
  }

  @Delete(':id')
  @HttpCode(204)
  @UseGuards(TokenGuard)
  @Rules({ anyRole: true })
  revoke(@Call() call: CspCall, @Param('id') id: string): Promise<void> {
    return this.options.sessions.revoke(call.session, id);
  }
}

/** Here 401 may have a body: the driver reads it into a variable of its own. */
function refuseLogin(error: unknown): never {
  if (isStorageError(error) && error.kind === 'unauthenticated') throw new CspRefusal(401, error.message);
  throw error;
}
