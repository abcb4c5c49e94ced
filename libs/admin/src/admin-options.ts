import type { EventHub } from '#admin/events/event-hub';
import type { Overview } from '#admin/overview/overview';
import type { Resources } from '#admin/resources';
import type { OperationDesk } from '#operations/operation-desk';
import type { WorkerDirectory } from '#operations/worker-directory';
import type { BackendRegistrations } from '#storage/backends/backend-registrations';
import type { AdminDirectory } from '#tenancy/admin-directory';
import type { AuditReader } from '#tenancy/audit-reader';
import type { EndpointDoors } from '#tenancy/endpoint-doors';
import type { EndpointRegistrations } from '#tenancy/endpoint-registrations';
import type { IdempotencyKeys } from '#tenancy/idempotency-keys';
import type { Names } from '#tenancy/names';
import type { ProviderDirectory } from '#tenancy/provider-directory';
import type { TenantDirectory } from '#tenancy/tenant-directory';
import type { TenantEnding } from '#tenancy/tenant-ending';
import type { QuotaDirectory } from '#tenancy/tenant-quotas';
import type { TokenDirectory } from '#tenancy/token-directory';
import type { UserDirectory } from '#tenancy/user-directory';

export const ADMIN_OPTIONS = Symbol('AdminOptions');

/** What the controllers call. Each resource has its own service; helpers of the room have none. */
export interface AdminOptions {
  logins: AdminDirectory;
  /** undefined: people log in by passwords alone. */
  provider: ProviderDirectory | undefined;
  tenants: TenantDirectory;
  tenantEnding: TenantEnding;
  users: UserDirectory;
  tokens: TokenDirectory;
  quotas: QuotaDirectory;
  keys: IdempotencyKeys;
  resources: Resources;
  backends: BackendRegistrations;
  endpoints: EndpointRegistrations;
  doors: EndpointDoors;
  desk: OperationDesk;
  names: Names;
  workers: WorkerDirectory;
  audit: AuditReader;
  events: EventHub;
  overview: Overview;
}
