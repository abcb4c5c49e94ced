import { ROUTES } from '#admin/contract/index';
import { ROLES, type Role, type RouteContract } from '#admin/contract/route';
import type { AdminHouse, CallOptions, HouseTenant, Person, Reply } from '#test/admin/admin-house';
import { fill, pathWith, type Things } from '#test/admin/tenant-things';

/** Calls of any route of the contract, made from its first example. */
export const guarded = ROUTES.filter(({ access }) => access.scope !== 'public');
export const named = (routes: readonly RouteContract[]) => routes.map(route => [route.id, route] as const);

export const suffices = (role: Role, { access }: RouteContract): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(access.role ?? 'viewer');
export const people = (tenant: HouseTenant): Person[] => [tenant.viewer, tenant.operator, tenant.admin];
export const inPath = (route: RouteContract): string[] => Object.keys(route.params?.shape ?? {});
/** Answers for ever. */
export const isEvents = ({ streams }: RouteContract): boolean => streams === 'text/event-stream';

/** For placeholders of examples that no table has. */
export const PLACEHOLDERS = {
  username: 'no-one',
  password: 'horse of tests',
  code: '000000',
  answer: 'code=guess&state=guess',
  sharedBackend: 'no-such',
  emptyTenant: 'no-such',
  storageHost: 'no-such',
  alert: '00000000-0000-7000-8000-000000000000',
  receiver: 'no-such',
  silence: '00000000-0000-7000-8000-000000000000',
  poolBackend: 'no-such',
  movedPool: 'no-such',
};

/** One right call of the route, about these things; nobody waits for an operation. */
export async function callRoute(
  house: AdminHouse,
  route: RouteContract,
  who: Person | string | undefined,
  things: Things,
  { headers = {}, ...options }: CallOptions = {},
): Promise<Reply> {
  const body = fill(route.examples[0].body, things);
  const match: Record<string, string> = route.etag === 'needs' ? { 'if-match': '*' } : {};
  return house.call(who, route.method, pathWith(route, things), {
    ...(body === undefined ? {} : { body }),
    ...options,
    headers: { prefer: 'wait=0', ...match, ...headers },
  });
}
