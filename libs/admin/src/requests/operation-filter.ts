import type { OperationFilter } from '#operations/administration/operation-list';
import type { Names } from '#tenancy/names';

/** The filters of operations, as a query or a body has them. */
export interface AskedOperations {
  state?: OperationFilter['states'] | undefined;
  kind?: string | undefined;
  backend?: string | undefined;
  resource?: string | undefined;
  error?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  stuck?: 'true' | 'false' | undefined;
}

/** As the engine takes them. */
export async function operationFilter(
  { state, kind, backend, resource, error, since, until, stuck }: AskedOperations,
  names: Names,
  tenantId: string | undefined,
): Promise<OperationFilter> {
  const filter: OperationFilter = {};
  if (kind !== undefined) filter.kind = kind;
  if (resource !== undefined) filter.resource = resource;
  if (error !== undefined) filter.error = error;
  if (state) filter.states = state;
  if (since) filter.since = new Date(since);
  if (until) filter.until = new Date(until);
  if (stuck) filter.stuck = stuck === 'true';
  if (backend !== undefined) filter.backendIds = await names.backendsNamed(backend, tenantId);
  return filter;
}
