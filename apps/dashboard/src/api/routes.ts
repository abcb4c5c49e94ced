import type { z } from 'zod';
import type { alertRoutes, receiverRoutes, silenceRoutes } from '#admin/contract/alerts';
import type { allTenantsRoutes } from '#admin/contract/all-tenants';
import type { backendRoutes } from '#admin/contract/backends';
import type { accessRoutes, bucketRoutes } from '#admin/contract/buckets';
import type { bulkRoutes } from '#admin/contract/bulk';
import type { clusterRoutes } from '#admin/contract/clusters';
import type { endpointRoutes } from '#admin/contract/endpoints';
import type { factorRoutes } from '#admin/contract/factors';
import type { firstRunRoutes } from '#admin/contract/first-run';
import type { hostRoutes, publicationRoutes } from '#admin/contract/hosts';
import type { loginRoutes } from '#admin/contract/logins';
import type { operationRoutes, workerRoutes } from '#admin/contract/operations';
import type { auditRoutes, overviewRoutes } from '#admin/contract/overview';
import type { passkeyRoutes } from '#admin/contract/passkeys';
import type { poolRoutes } from '#admin/contract/pools';
import type { policyRoutes, protectionRoutes, snapshotSessionRoutes } from '#admin/contract/protection';
import type { searchRoutes } from '#admin/contract/search';
import type { sessionRoutes } from '#admin/contract/session';
import type { snapshotRoutes } from '#admin/contract/snapshots';
import type { storageHostRoutes } from '#admin/contract/storage-hosts';
import type { tenantRoutes } from '#admin/contract/tenants';
import type { totalsRoutes } from '#admin/contract/totals';
import type { usageRoutes } from '#admin/contract/usage';
import type { tokenRoutes, userRoutes } from '#admin/contract/users';
import type { viewRoutes } from '#admin/contract/views';
import type { volumeRoutes } from '#admin/contract/volumes';

type ValuesOf<Group> = Group extends unknown ? Group[keyof Group] : never;

/** Of the API's contract: a call of a path, parameter or field that is not there does not compile. */
export type Route = ValuesOf<
  | typeof sessionRoutes
  | typeof viewRoutes
  | typeof loginRoutes
  | typeof factorRoutes
  | typeof passkeyRoutes
  | typeof overviewRoutes
  | typeof searchRoutes
  | typeof tenantRoutes
  | typeof firstRunRoutes
  | typeof userRoutes
  | typeof tokenRoutes
  | typeof backendRoutes
  | typeof endpointRoutes
  | typeof clusterRoutes
  | typeof bucketRoutes
  | typeof accessRoutes
  | typeof volumeRoutes
  | typeof snapshotRoutes
  | typeof publicationRoutes
  | typeof hostRoutes
  | typeof allTenantsRoutes
  | typeof protectionRoutes
  | typeof policyRoutes
  | typeof snapshotSessionRoutes
  | typeof operationRoutes
  | typeof bulkRoutes
  | typeof totalsRoutes
  | typeof workerRoutes
  | typeof storageHostRoutes
  | typeof alertRoutes
  | typeof receiverRoutes
  | typeof silenceRoutes
  | typeof poolRoutes
  | typeof usageRoutes
  | typeof auditRoutes
>;
export type Method = Route['method'];
export type PathOf<M extends Method> = Extract<Route, { method: M }>['path'];

export type Find<M extends Method, P extends string, R = Route> = R extends { method: M; path: infer Q }
  ? P extends Q
    ? R
    : never
  : never;

type In<R, K extends string> = R extends { [_ in K]: infer S }
  ? S extends z.ZodType
    ? z.input<S>
    : undefined
  : undefined;
type Part<R, K extends string> = In<R, K> extends undefined ? { [_ in K]?: undefined } : { [_ in K]: In<R, K> };

/** What a route is sent. Query parameters travel as text, so numbers may stand there too. */
export type Input<R> = Part<R, 'params'> &
  Part<R, 'body'> & {
    query?: { [K in keyof NonNullable<In<R, 'query'>>]?: NonNullable<In<R, 'query'>>[K] | string | number };
  };

export type Reply<R> = R extends { reply: infer S } ? (S extends z.ZodType ? z.output<S> : undefined) : undefined;

/** One item of the list at this path. */
export type ItemOf<P extends PathOf<'GET'>> = Reply<Find<'GET', P>> extends { items: (infer T)[] } ? T : never;
export type ReadOf<P extends PathOf<'GET'>> = Reply<Find<'GET', P>>;
