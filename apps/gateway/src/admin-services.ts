import type { AdminOptions } from '#admin/admin-options';
import { BackendRegistrations } from '#storage/backends/backend-registrations';
import { ApiTokens } from '#tenancy/api-tokens';
import { EndpointRegistrations } from '#tenancy/endpoint-registrations';
import { StoredIdempotencyKeys } from '#tenancy/idempotency-keys';
import { TenantEnding } from '#tenancy/tenant-ending';
import { TenantQuotas } from '#tenancy/tenant-quotas';
import { Tenants } from '#tenancy/tenants';
import { Users } from '#tenancy/users';
import { adminResources } from './admin-resources.js';
import type { GatewayParts } from './gateway-parts.js';
import { operationServices } from './operation-services.js';

/** What the controllers of the admin API call, made of what stands behind all doors. */
export function adminServices(parts: GatewayParts): AdminOptions {
  const { database, logins, sessions, passwords, streams } = parts;
  const tenants = new Tenants(database);
  return {
    logins,
    provider: parts.provider,
    tenants,
    tenantEnding: new TenantEnding(database, tenants),
    keys: new StoredIdempotencyKeys(database, parts.secrets),
    quotas: new TenantQuotas(database, id => streams.countOf(id)),
    users: new Users(database, {
      passwords,
      issuer: parts.oidc?.issuer,
      onChange: userId => {
        logins.forget(principal => principal.userId === userId);
        sessions.forget(session => session.userId === userId);
      },
    }),
    resources: adminResources(parts),
    ...operationServices(parts),
    backends: new BackendRegistrations(parts),
    endpoints: new EndpointRegistrations(database, kind => parts.objectKinds.some(known => known.kind === kind)),
    doors: parts.doors,
    tokens: new ApiTokens(database, tokenId => logins.forget(({ id }) => id === tokenId)),
  };
}
