import type { Endpoint, EndpointCaller } from '#storage/object/endpoint';

/** Who comes in by this endpoint, and waits as long as any call may. */
export const callerAt = (endpoint: Endpoint): EndpointCaller => ({
  endpoint,
  tenantId: endpoint.tenantId,
  backendId: endpoint.backendId,
  get deadline() {
    return Date.now() + 25_000;
  },
});
