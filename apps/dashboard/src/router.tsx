import type { ComponentType } from 'react';
import { createBrowserRouter, type RouteObject } from 'react-router';
// Before the router, which reads the address when it is made.
import './api/provider';
import { NotFoundPage, RouteErrorPage } from './pages/not-found';
import { OverviewPage } from './pages/overview';
import { Loading } from './parts/page';
import { Shell } from './shell/shell';

/** A page whose script is loaded when somebody goes there. */
const later = <Module,>(
  path: string,
  load: () => Promise<Module>,
  name: keyof Module & `${string}Page`,
): RouteObject => ({
  path,
  lazy: async () => ({ Component: (await load())[name] as ComponentType }),
});

/** Paths are those of the API where it has one, so that one can be guessed from the other. */
export const router = createBrowserRouter([
  {
    path: '/',
    Component: Shell,
    HydrateFallback: Loading,
    children: [
      {
        ErrorBoundary: RouteErrorPage,
        children: [
          { index: true, Component: OverviewPage },
          { path: 'overview', Component: OverviewPage },
          later('operations', () => import('./pages/operations'), 'OperationsPage'),
          later('operations/:operation', () => import('./pages/operation'), 'OperationPage'),
          later('workers', () => import('./pages/workers'), 'WorkersPage'),
          later('queues', () => import('./pages/workers'), 'WorkersPage'),
          later('alerts', () => import('./pages/alerts'), 'AlertsPage'),
          later('alerts/:alert', () => import('./pages/alerts'), 'AlertPage'),
          later('receivers', () => import('./pages/receivers'), 'ReceiversPage'),
          later('silences', () => import('./pages/alerts'), 'SilencesPage'),
          later('audit', () => import('./pages/audit'), 'AuditPage'),
          later('account', () => import('./pages/account'), 'AccountPage'),
          later('all/volumes', () => import('./pages/volumes'), 'AllVolumesPage'),
          later('all/snapshots', () => import('./pages/snapshots'), 'AllSnapshotsPage'),
          later('all/hosts', () => import('./pages/hosts'), 'AllHostsPage'),
          later('all/buckets', () => import('./pages/buckets'), 'AllBucketsPage'),
          later('tenants', () => import('./pages/tenants'), 'TenantsPage'),
          later('tenants/:tenant', () => import('./pages/tenant'), 'TenantPage'),
          later('tenants/:tenant/volumes', () => import('./pages/volumes'), 'VolumesPage'),
          later('tenants/:tenant/recycle-bin', () => import('./pages/recycle-bin'), 'RecycleBinPage'),
          later('tenants/:tenant/volumes/:volume', () => import('./pages/volume'), 'VolumePage'),
          later('tenants/:tenant/snapshots', () => import('./pages/snapshots'), 'SnapshotsPage'),
          later('tenants/:tenant/snapshots/:snapshot', () => import('./pages/snapshot'), 'SnapshotPage'),
          later('tenants/:tenant/snapshot-sessions', () => import('./pages/snapshot-sessions'), 'SnapshotSessionsPage'),
          later('tenants/:tenant/publications', () => import('./pages/publications'), 'PublicationsPage'),
          later('tenants/:tenant/hosts', () => import('./pages/hosts'), 'HostsPage'),
          later('tenants/:tenant/hosts/:host', () => import('./pages/hosts'), 'HostPage'),
          later('tenants/:tenant/buckets', () => import('./pages/buckets'), 'BucketsPage'),
          later('tenants/:tenant/buckets/:bucket', () => import('./pages/buckets'), 'BucketPage'),
          later('tenants/:tenant/accesses', () => import('./pages/accesses'), 'AccessesPage'),
          later('tenants/:tenant/accesses/:access', () => import('./pages/accesses'), 'AccessPage'),
          later('tenants/:tenant/backends', () => import('./pages/backends'), 'BackendsPage'),
          later('tenants/:tenant/backends/:backend', () => import('./pages/backend'), 'BackendPage'),
          later('tenants/:tenant/endpoints', () => import('./pages/endpoints'), 'EndpointsPage'),
          later('tenants/:tenant/clusters', () => import('./pages/clusters'), 'ClustersPage'),
          later('tenants/:tenant/protection-templates', () => import('./pages/protection'), 'ProtectionPage'),
          later('tenants/:tenant/performance-policies', () => import('./pages/policies'), 'PoliciesPage'),
          later('tenants/:tenant/users', () => import('./pages/users'), 'UsersPage'),
          later('tenants/:tenant/tokens', () => import('./pages/tokens'), 'TokensPage'),
          { path: '*', Component: NotFoundPage },
        ],
      },
    ],
  },
]);
