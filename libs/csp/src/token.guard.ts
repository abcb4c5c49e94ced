import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CspCall, isRead, rulesOf, setCall } from '#csp/csp-call';
import { BadToken, CspRefusal } from '#csp/csp-errors';
import { CSP_OPTIONS, type CspOptions, type CspWaits, DEFAULT_WAITS } from '#csp/csp-options';
import type { Session, SessionBackend } from '#tenancy/logins/session-directory';

/**
 * Lets in who has a token (`x-auth-token`), and says by session and `x-array-ip` for which tenant and backend the call is.
 * Without a valid token the answer is 401 with an empty body; a viewer that would change something gets 403.
 */
@Injectable()
export class TokenGuard implements CanActivate {
  private readonly waits: CspWaits;

  constructor(@Inject(CSP_OPTIONS) private readonly options: CspOptions) {
    this.waits = { ...DEFAULT_WAITS, ...options.waits };
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const token = request.headers['x-auth-token'];
    if (typeof token !== 'string' || token === '') throw new BadToken();
    const session = await this.options.sessions.authenticate(token);
    if (!session) throw new BadToken();
    const rules = rulesOf(context.getHandler());
    const backend = await this.backendOf(session, request);
    setCall(request, new CspCall(request, http.getResponse<FastifyReply>(), session, backend, rules, this.waits));
    if (session.role === 'viewer' && !isRead(request.method) && !rules.anyRole)
      throw new CspRefusal(403, `user ${session.username} may only look; log in as an operator to change something`);
    return true;
  }

  private backendOf(session: Session, { headers }: FastifyRequest): SessionBackend | Promise<SessionBackend> {
    const wanted = headers['x-array-ip'];
    // The driver repeats at every call what it gave at login.
    if (typeof wanted !== 'string' || wanted === '' || wanted === session.arrayIp) return session;
    return this.options.sessions.selectBackend(session, wanted);
  }
}
