import { createHash, timingSafeEqual } from 'node:crypto';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { tenantName } from '#admin/contract/common';
import { ROLES, type RouteContract } from '#admin/contract/route';
import { fieldErrors, oddNumbers, pointerOf, unfit } from '#admin/problems/field-errors';
import { type FieldError, Refusal } from '#admin/problems/problems';
import { AdminCall, cookieOf, setCall } from '#admin/requests/admin-call';
import { contractOf } from '#admin/requests/contract-of';
import type { Principal } from '#tenancy/logins/admin-directory';
import { AdminLogins } from '#tenancy/logins/admin-logins';
import type { TenantView } from '#tenancy/tenants/tenant-directory';
import { Tenants } from '#tenancy/tenants/tenants';

export const COOKIE = 'trivet_session';

/**
 * Decides by the route's contract: who calls, whether they may, and whether what they sent has its form; in that order, so
 * that nobody learns the form of what they may not call.
 */
@Injectable()
export class AdminGuard implements CanActivate {
  constructor(
    private readonly logins: AdminLogins,
    private readonly tenants: Tenants,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const contract = contractOf(context);
    const caller = contract.access.scope === 'public' ? undefined : await this.authenticate(request);
    const tenant = caller && (await this.admit(caller, contract, request));
    if (contract.etag === 'needs' && request.headers['if-match'] === undefined)
      throw new Refusal(
        'precondition_required',
        'send If-Match with the ETag of what you read, so that nobody’s change is lost',
        [{ pointer: '/header/if-match', message: 'required' }],
      );
    const errors: FieldError[] = [];
    const params = checked(contract.params, request.params, 'path', errors);
    const query = checked(contract.query, request.query ?? {}, 'query', errors);
    if (contract.query) errors.push(...oddNumbers(contract.query, Object(request.query), 'query'));
    const body = checked(contract.body, request.body, 'body', errors);
    if (!contract.query) refuseSurplus(request.query, 'query', errors);
    if (!contract.body && request.body !== undefined)
      errors.push({ pointer: '/body', message: 'this call has no body' });
    if (errors.length > 0)
      throw new Refusal(
        'invalid_argument',
        errors.map(({ pointer, message }) => `${pointer}: ${message}`).join('; '),
        errors,
      );
    setCall(
      request,
      new AdminCall(
        contract,
        request,
        http.getResponse<FastifyReply>(),
        params,
        query,
        body,
        caller,
        tenant,
      ) as AdminCall,
    );
    return true;
  }

  private async authenticate(request: FastifyRequest): Promise<Principal> {
    const bearer = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    const cookie = bearer === undefined ? cookieOf(request, COOKIE) : undefined;
    const principal = await this.logins.authenticate(bearer ?? cookie ?? '');
    if (!principal)
      throw new Refusal(
        'unauthenticated',
        'log in with POST /api/v1/session, or send an API token: Authorization: Bearer TOKEN',
      );
    // A page of somebody else sends the cookie along, but cannot read what must stand in this header.
    if (cookie !== undefined && !isRead(request.method)) {
      const sent = Buffer.from(String(request.headers['x-csrf-token'] ?? ''));
      const wanted = Buffer.from(csrfOf(cookie));
      if (sent.length !== wanted.length || !timingSafeEqual(sent, wanted))
        throw new Refusal(
          'permission_denied',
          'x-csrf-token is missing or wrong: it is `csrf` of GET /api/v1/session',
          [{ pointer: '/header/x-csrf-token', message: 'missing or wrong' }],
        );
    }
    return principal;
  }

  private async admit(
    caller: Principal,
    { access, params, serving }: RouteContract,
    request: FastifyRequest,
  ): Promise<TenantView | undefined> {
    if (!caller.active && access.scope !== 'self')
      throw new Refusal('permission_denied', `tenant ${caller.tenant} is suspended; ask whoever runs the appliance`);
    let tenant: TenantView | undefined;
    if (params?.shape.tenant) {
      const named = String((request.params as Record<string, unknown>).tenant);
      // Another tenant's is not there, whatever it is.
      const visible = (caller.appliance || named === caller.tenant) && tenantName.safeParse(named).success;
      if (visible) tenant = await this.tenants.find(named);
      if (!tenant) throw new Refusal('not_found', `there is no tenant ${named}`);
    }
    if (access.scope === 'appliance' && !caller.appliance)
      throw new Refusal('permission_denied', 'only administrators of the appliance may do this');
    if (access.role && ROLES.indexOf(caller.role) < ROLES.indexOf(access.role))
      throw new Refusal(
        'permission_denied',
        `${caller.username} is ${caller.role}; this takes the role ${access.role}`,
      );
    if (serving && tenant && tenant.state !== 'active')
      throw new Refusal(
        'failed_precondition',
        `tenant ${tenant.name} is ${tenant.state === 'suspended' ? 'suspended' : 'being removed'}: nothing is given to anybody there`,
      );
    return tenant;
  }
}

/** Of a login at the page: follows from the cookie, which no script can read, so it is kept nowhere. */
export const csrfOf = (token: string): string => createHash('sha256').update(`csrf:${token}`).digest('base64url');

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';

function checked(
  schema: z.ZodType | undefined,
  sent: unknown,
  where: string,
  errors: FieldError[],
  // biome-ignore lint/suspicious/noExplicitAny: the contract's types say what it is
): any {
  if (!schema) return undefined;
  const unusable = unfit(sent, where);
  errors.push(...unusable);
  if (unusable.length > 0) return undefined;
  const parsed = schema.safeParse(sent ?? (where === 'body' ? undefined : {}));
  if (parsed.success) return parsed.data;
  errors.push(...fieldErrors(parsed.error.issues, [where]));
  return undefined;
}

function refuseSurplus(sent: unknown, where: string, errors: FieldError[]): void {
  for (const key of Object.keys((sent as object | undefined) ?? {}))
    errors.push({ pointer: pointerOf([where, key]), message: 'there is no such parameter' });
}
