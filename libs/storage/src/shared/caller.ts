import type { ObjectAccessPoint, ObjectProtocol } from '#backends/object-backend';
import { StorageError } from '#platform/errors';
import type { ChangeObserver } from '#storage/shared/change-observer';

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

/** Who asks, for whom, and how long they wait. Nobody writes into it: what came of the call is returned. */
export interface Caller {
  readonly tenantId: string;
  readonly backendId: string;
  /** Wait no longer than this for the operation; the work goes on. Milliseconds since the epoch. */
  readonly deadline: number;
  /** The caller left: stop waiting. The work goes on. */
  readonly signal?: AbortSignal;
  readonly traceparent?: string;
  /** Who it is, for people who look at the operation. */
  readonly actor?: string;
  readonly observer?: ChangeObserver;
}

/** Who came in by a socket; tenant and backend are those of its endpoint. */
export interface EndpointCaller extends Caller {
  readonly endpoint: Endpoint;
}

/** A suspended tenant or endpoint answers nothing, not even what is already true. */
export function requireServing(serves: boolean | undefined): void {
  if (serves !== true)
    throw new StorageError('permission_denied', 'this endpoint or its tenant is suspended; ask the operator');
}
