import type { ObjectAccessPoint, ObjectProtocol } from '#backends/object-backend';
import type { Outcome } from '#operations/operation';
import { StorageError } from '#platform/errors';
import type { Witness } from '#storage/witness';

/** A door that calls come in by. Who is calling follows from it: a socket is bound to a tenant and a backend. */
export interface Endpoint {
  id: string;
  /** As its tenant calls it. */
  name: string;
  tenantId: string;
  backendId: string;
  backendKind: string;
  /** What the backend's adapter offers; answered by GetInfo without asking anybody. At least one. */
  protocols: readonly ObjectProtocol[];
  /** Parsed config of the backend's registry row. */
  accessPoint: ObjectAccessPoint;
  driverName: string;
  /** What v1alpha1 Grant answers when the name exists with another request (invariant O8). */
  grantMismatch: 'already_exists' | 'invalid_argument';
  /** Numbering of v1alpha2 AccessMode when the request itself does not tell (docs/callers.md#revisions-of-v1alpha2). */
  accessModeNumbers: 'auto' | 'r1' | 'r3';
}

export interface Caller {
  endpoint: Endpoint;
  /** Wait no longer than this for the operation; the work goes on. Milliseconds since the epoch. */
  deadline?: number;
  /** The caller left: stop waiting. The work goes on. */
  signal?: AbortSignal;
  traceparent?: string;
  /** Who it is, for people who look at the operation. */
  actor?: string;
  witness?: Witness;
  /** Written by storage when it accepted or joined an operation; goes into the call's log line. */
  operationId?: string;
}

/** Who changes buckets and accesses without having come in by a door: an administrator. */
export interface ObjectCaller {
  tenantId: string;
  backendId: string;
  deadline: number;
  signal?: AbortSignal;
  traceparent?: string;
  /** Who it is, for people who look at the operation. */
  actor?: string;
  witness?: Witness;
  /** Written by storage, as for callers of the block leg. */
  operationId?: string;
  outcome?: Outcome;
}

/** How long this call may wait: the caller's own deadline, and never longer than ours. */
export const patience = (caller: Caller, waitMs: number) => ({
  until: Math.min(caller.deadline ?? Number.POSITIVE_INFINITY, Date.now() + waitMs),
  signal: caller.signal,
});

/** The same caller, without its door. */
export const objectCaller = (caller: Caller, waitMs: number): ObjectCaller => {
  const { until, signal } = patience(caller, waitMs);
  const { endpoint, traceparent, actor, witness } = caller;
  const { tenantId, backendId } = endpoint;
  return { tenantId, backendId, deadline: until, signal, traceparent, actor, witness };
};

/** A suspended tenant or endpoint answers nothing, not even what is already true. */
export function requireServing(serves: boolean | undefined): void {
  if (serves !== true)
    throw new StorageError('permission_denied', 'this endpoint or its tenant is suspended; ask the operator');
}
