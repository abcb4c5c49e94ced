import type { ComponentType } from 'react';
import { BrowserRouter, type RouteObject, useRoutes } from 'react-router';
import { NotFoundPage } from './pages/not-found';
import { OverviewPage } from './pages/overview';
import { later } from './parts/later';
import { Shell } from './shell/shell';

/** A page whose script is loaded when somebody goes there. */
const page = <Module,>(
  path: string,
  load: () => Promise<Module>,
  name: keyof Module & `${string}Page`,
): RouteObject => ({
  path,
  Component: later(async () => (await load())[name] as ComponentType),
});

/** Paths are those of the API where it has one, so that one can be guessed from the other. */
const ROUTES: RouteObject[] = [
  {
    path: '/',
    Component: Shell,
    children: [
      { index: true, Component: OverviewPage },
      { path: 'overview', Component: OverviewPage },
      page('operations', () => import('./pages/operations'), 'OperationsPage'),
      page('operations/:operation', () => import('./pages/operation'), 'OperationPage'),
      page('workers', () => import('./pages/workers'), 'WorkersPage'),
      page('queues', () => import('./pages/workers'), 'WorkersPage'),
      page('alerts', () => import('./pages/alerts'), 'AlertsPage'),
      page('alerts/:alert', () => import('./pages/alerts'), 'AlertPage'),
      page('receivers', () => import('./pages/receivers'), 'ReceiversPage'),
      page('silences', () => import('./pages/alerts'), 'SilencesPage'),
      page('usage', () => import('./pages/usage'), 'AllUsagePage'),
      page('audit', () => import('./pages/audit'), 'AuditPage'),
      page('account', () => import('./pages/account'), 'AccountPage'),
      page('all/volumes', () => import('./pages/volumes'), 'AllVolumesPage'),
      page('all/snapshots', () => import('./pages/snapshots'), 'AllSnapshotsPage'),
      page('all/hosts', () => import('./pages/hosts'), 'AllHostsPage'),
      page('all/buckets', () => import('./pages/buckets'), 'AllBucketsPage'),
      page('tenants', () => import('./pages/tenants'), 'TenantsPage'),
      page('tenants/:tenant', () => import('./pages/tenant'), 'TenantPage'),
      page('tenants/:tenant/volumes', () => import('./pages/volumes'), 'VolumesPage'),
      page('tenants/:tenant/recycle-bin', () => import('./pages/recycle-bin'), 'RecycleBinPage'),
      page('tenants/:tenant/volumes/:volume', () => import('./pages/volume'), 'VolumePage'),
      page('tenants/:tenant/snapshots', () => import('./pages/snapshots'), 'SnapshotsPage'),
      page('tenants/:tenant/snapshots/:snapshot', () => import('./pages/snapshot'), 'SnapshotPage'),
      page('tenants/:tenant/snapshot-sessions', () => import('./pages/snapshot-sessions'), 'SnapshotSessionsPage'),
      page('tenants/:tenant/publications', () => import('./pages/publications'), 'PublicationsPage'),
      page('tenants/:tenant/hosts', () => import('./pages/hosts'), 'HostsPage'),
      page('tenants/:tenant/hosts/:host', () => import('./pages/hosts'), 'HostPage'),
      page('tenants/:tenant/buckets', () => import('./pages/buckets'), 'BucketsPage'),
      page('tenants/:tenant/buckets/:bucket', () => import('./pages/buckets'), 'BucketPage'),
      page('tenants/:tenant/accesses', () => import('./pages/accesses'), 'AccessesPage'),
      page('tenants/:tenant/accesses/:access', () => import('./pages/accesses'), 'AccessPage'),
      page('tenants/:tenant/backends', () => import('./pages/backends'), 'BackendsPage'),
      page('tenants/:tenant/backends/:backend', () => import('./pages/backend'), 'BackendPage'),
      page('tenants/:tenant/usage', () => import('./pages/usage'), 'UsagePage'),
      page('tenants/:tenant/endpoints', () => import('./pages/endpoints'), 'EndpointsPage'),
      page('tenants/:tenant/clusters', () => import('./pages/clusters'), 'ClustersPage'),
      page('tenants/:tenant/protection-templates', () => import('./pages/protection'), 'ProtectionPage'),
      page('tenants/:tenant/performance-policies', () => import('./pages/policies'), 'PoliciesPage'),
      page('tenants/:tenant/users', () => import('./pages/users'), 'UsersPage'),
      page('tenants/:tenant/tokens', () => import('./pages/tokens'), 'TokensPage'),
      { path: '*', Component: NotFoundPage },
    ],
  },
];

const Routes = () => useRoutes(ROUTES);

export const Router = () => (
  <BrowserRouter>
    <Routes />
  </BrowserRouter>
);
