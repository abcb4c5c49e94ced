import { type DynamicModule, Global, Module } from '@nestjs/common';
import { oidcSettings } from '#platform/config/oidc-settings';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { CONFIG } from '#platform/process/platform.module';
import { key, provide, provideClass } from '#platform/process/providers';
import { AuditReader } from '#tenancy/audit-log/audit-reader';
import { Authority } from '#tenancy/clusters/authority';
import { ClusterEnrolment } from '#tenancy/clusters/cluster-enrolment';
import { Clusters } from '#tenancy/clusters/clusters';
import { Passwords } from '#tenancy/credentials/passwords';
import { EndpointRegistrations } from '#tenancy/endpoints/endpoint-registrations';
import { SecondFactors } from '#tenancy/factors/second-factors';
import { StoredIdempotencyKeys } from '#tenancy/idempotency-keys';
import { AdminLogins } from '#tenancy/logins/admin-logins';
import { FactorChanges } from '#tenancy/logins/factor-changes';
import { OpenLogins } from '#tenancy/logins/open-logins';
import { Passkeys } from '#tenancy/logins/passkeys';
import { Sessions } from '#tenancy/logins/sessions';
import { Names } from '#tenancy/names';
import { IdentityProvider } from '#tenancy/oidc/identity-provider';
import type { ProviderDirectory } from '#tenancy/oidc/provider-directory';
import { ProviderLogins } from '#tenancy/oidc/provider-logins';
import { StreamQuotas } from '#tenancy/quotas/quotas';
import { SuspendedTenants } from '#tenancy/tenants/suspended-tenants';
import { TenantEnding } from '#tenancy/tenants/tenant-ending';
import { Tenants } from '#tenancy/tenants/tenants';
import { ApiTokens } from '#tenancy/tokens/api-tokens';
import { SavedViews } from '#tenancy/users/saved-views';
import { Users } from '#tenancy/users/users';

/** undefined: people log in by passwords alone. */
export const PROVIDER = key<ProviderDirectory | undefined>('ProviderDirectory');

/** Which kinds of backend there are, which tenancy does not know. */
export interface BackendKindTests {
  isBlockKind(kind: string): boolean;
  isObjectKind(kind: string): boolean;
}

/** Who may come in, by which door, and how much of it: what every interface of a gateway asks first. */
@Global()
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class TenancyModule {
  static of({ isBlockKind, isObjectKind }: BackendKindTests): DynamicModule {
    const providers = [
      // One line for all interfaces: together they leave file work its threads.
      provide(Passwords, [], () => new Passwords()),
      provideClass(SuspendedTenants, Database),
      provideClass(SecondFactors, Database, SecretBox),
      provideClass(AdminLogins, Database, Passwords, SuspendedTenants, SecondFactors),
      provide(FactorChanges, [CONFIG, Database, AdminLogins, SecondFactors], (config, database, logins, factors) => {
        const { hostname } = new URL(config.TRIVET_PUBLIC_URL ?? 'https://localhost');
        const issuer = hostname === 'localhost' ? 'Trivet' : `Trivet ${hostname}`;
        return new FactorChanges({ database, logins, factors, issuer });
      }),
      provide(Sessions, [CONFIG, Database, Passwords, SuspendedTenants], (config, database, passwords, suspended) => {
        const ttlMs = config.TRIVET_CSP_TOKEN_TTL_MS;
        return new Sessions({ database, ttlMs, isBlockKind, passwords, suspended });
      }),
      provide(PROVIDER, [CONFIG, Database, SecretBox, AdminLogins], (config, database, secrets, logins) => {
        const oidc = oidcSettings(config);
        return oidc && new ProviderLogins({ database, secrets, logins, provider: new IdentityProvider(oidc) });
      }),
      provide(Passkeys, [CONFIG, Database, AdminLogins, FactorChanges], (config, database, logins, changes) => {
        return new Passkeys({ database, logins, changes, publicUrl: config.TRIVET_PUBLIC_URL });
      }),
      provideClass(Tenants, Database),
      provideClass(TenantEnding, Database, Tenants),
      provideClass(StoredIdempotencyKeys, Database, SecretBox),
      provideClass(SavedViews, Database),
      provide(
        Users,
        [CONFIG, Database, Passwords, AdminLogins, Sessions],
        (config, database, passwords, logins, sessions) =>
          new Users(database, {
            passwords,
            issuer: config.TRIVET_OIDC_ISSUER,
            onChange: userId => {
              logins.forget(principal => principal.userId === userId);
              sessions.forget(session => session.userId === userId);
            },
          }),
      ),
      provide(OpenLogins, [Database, AdminLogins], (database, logins) => {
        return new OpenLogins(database, loginId => logins.forget(({ id }) => id === loginId));
      }),
      provide(ApiTokens, [Database, AdminLogins], (database, logins) => {
        return new ApiTokens(database, tokenId => logins.forget(({ id }) => id === tokenId));
      }),
      provide(EndpointRegistrations, [Database], database => new EndpointRegistrations(database, isObjectKind)),
      provideClass(Authority, Database, SecretBox),
      provideClass(Clusters, Database, Authority),
      provideClass(ClusterEnrolment, Database, Authority),
      provideClass(StreamQuotas, Database),
      provideClass(Names, Database),
      provideClass(AuditReader, Database),
    ];
    return { module: TenancyModule, providers, exports: providers };
  }
}
