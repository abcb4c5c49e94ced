import type { RouteContract } from '#admin/contract/route';
import type { Json } from '#admin/openapi/schema-book';
import { PROBLEMS } from '#admin/problems/problems';

/** By status. */
const CODES = Map.groupBy(Object.entries(PROBLEMS), ([, { status }]) => status as number);

/** What a route answers besides success: what follows from its form, and what it says itself. */
export function refusalStatuses({
  access,
  method,
  params,
  query,
  body,
  etag,
  streams,
  refusals = [],
}: RouteContract): number[] {
  const statuses = new Set<number>([400, 431, 500, 503, ...refusals]);
  const add = (when: boolean, ...added: number[]): void => {
    if (when) for (const status of added) statuses.add(status);
  };
  const checksPassword = body !== undefined && (access.scope === 'public' || access.scope === 'self');
  add(access.scope !== 'public' || checksPassword, 401, 403);
  add(checksPassword || streams === 'text/event-stream', 429);
  add(params !== undefined || query?.shape.tenant !== undefined, 404);
  add(method === 'POST' && access.scope !== 'public', 409);
  add(method !== 'GET', 413, 415);
  add(etag === 'needs', 412, 428);
  return [...statuses].sort((a, b) => a - b);
}

export const refusalsOf = (route: RouteContract): Json =>
  Object.fromEntries(
    refusalStatuses(route).map(status => [status, { $ref: `#/components/responses/Problem${status}` }]),
  );

/** Components for the statuses that some route answers. */
export function problemResponses(routes: readonly RouteContract[]): Json {
  const statuses = [...new Set(routes.flatMap(refusalStatuses))].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map(status => {
      const codes = CODES.get(status) ?? [];
      return [
        `Problem${status}`,
        {
          description: codes.map(([code, { title }]) => `${title} (\`${code}\`)`).join('; '),
          ...(HEADERS[status] ? { headers: HEADERS[status] } : {}),
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      ];
    }),
  );
}

const retryAfter = { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } };
const HEADERS: Readonly<Record<number, Json>> = {
  401: { 'WWW-Authenticate': { $ref: '#/components/headers/WwwAuthenticate' } },
  409: retryAfter,
  429: retryAfter,
  503: retryAfter,
};
