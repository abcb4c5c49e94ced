import { type CanActivate, createParamDecorator, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { SESSIONS_API, type SessionsApi } from '#cbt/sessions-api';
import { StorageError } from '#platform/errors';
import type { Session } from '#tenancy/logins/session-directory';

const LOGIN = Symbol('Login');
type WithLogin = FastifyRequest & { [LOGIN]?: Session };

/** The token of a login over CSP: `x-auth-token` as there, or a bearer token. */
export function loginToken({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const own = headers['x-auth-token'];
  if (typeof own === 'string' && own !== '') return own;
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
}

/**
 * Lets in who is logged in over CSP, in any role: a session changes nothing, and what it lets see a viewer may see anyway.
 */
@Injectable()
export class LoginGuard implements CanActivate {
  constructor(@Inject(SESSIONS_API) private readonly api: SessionsApi) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<WithLogin>();
    const token = loginToken(request);
    const login = token === undefined ? undefined : await this.api.logins.authenticate(token);
    if (!login)
      throw new StorageError(
        'unauthenticated',
        'log in with POST /containers/v1/tokens and send its session_token as x-auth-token or as bearer token',
      );
    request[LOGIN] = login;
    return true;
  }
}

/** Who called, as LoginGuard found out. */
export const Login = createParamDecorator((_: unknown, context: ExecutionContext): Session => {
  const login = context.switchToHttp().getRequest<WithLogin>()[LOGIN];
  if (!login) throw new Error('a route without LoginGuard has no login');
  return login;
});
