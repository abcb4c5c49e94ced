import { alertRoutes, receiverRoutes, silenceRoutes } from '#admin/contract/alerts';
import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { backendRoutes } from '#admin/contract/backends';
import { accessRoutes, bucketRoutes } from '#admin/contract/buckets';
import { bulkRoutes } from '#admin/contract/bulk';
import { clusterRoutes } from '#admin/contract/clusters';
import { endpointRoutes } from '#admin/contract/endpoints';
import { factorRoutes } from '#admin/contract/factors';
import { firstRunRoutes } from '#admin/contract/first-run';
import { hostRoutes, publicationRoutes } from '#admin/contract/hosts';
import { loginRoutes } from '#admin/contract/logins';
import { metaRoutes } from '#admin/contract/meta';
import { operationRoutes, workerRoutes } from '#admin/contract/operations';
import { auditRoutes, eventRoutes, overviewRoutes } from '#admin/contract/overview';
import { passkeyRoutes } from '#admin/contract/passkeys';
import { poolRoutes } from '#admin/contract/pools';
import { policyRoutes, protectionRoutes, snapshotSessionRoutes } from '#admin/contract/protection';
import type { RouteContract } from '#admin/contract/route';
import { searchRoutes } from '#admin/contract/search';
import { sessionRoutes } from '#admin/contract/session';
import { snapshotRoutes } from '#admin/contract/snapshots';
import { storageHostRoutes } from '#admin/contract/storage-hosts';
import { tenantRoutes } from '#admin/contract/tenants';
import { totalsRoutes } from '#admin/contract/totals';
import { usageRoutes } from '#admin/contract/usage';
import { tokenRoutes, userRoutes } from '#admin/contract/users';
import { viewRoutes } from '#admin/contract/views';
import { volumeRoutes } from '#admin/contract/volumes';

/** Every route of /api/v1. What is not here is not served, and what is here is. */
export const ROUTES: readonly RouteContract[] = [
  sessionRoutes,
  viewRoutes,
  loginRoutes,
  factorRoutes,
  passkeyRoutes,
  overviewRoutes,
  searchRoutes,
  tenantRoutes,
  firstRunRoutes,
  userRoutes,
  tokenRoutes,
  backendRoutes,
  endpointRoutes,
  clusterRoutes,
  bucketRoutes,
  accessRoutes,
  volumeRoutes,
  snapshotRoutes,
  publicationRoutes,
  hostRoutes,
  allTenantsRoutes,
  totalsRoutes,
  poolRoutes,
  usageRoutes,
  protectionRoutes,
  policyRoutes,
  snapshotSessionRoutes,
  operationRoutes,
  bulkRoutes,
  workerRoutes,
  storageHostRoutes,
  alertRoutes,
  receiverRoutes,
  silenceRoutes,
  auditRoutes,
  eventRoutes,
  metaRoutes,
].flatMap(group => Object.values<RouteContract>(group));
