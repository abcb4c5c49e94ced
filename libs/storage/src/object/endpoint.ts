import type { ObjectAccessPoint, ObjectProtocol } from '#backends/object-backend';
import type { Caller } from '#operations/accepting/caller';
import { StorageError } from '#platform/errors';

/** Where buckets and accesses are: a backend of a tenant. */
export interface ObjectPlace {
  tenantId: string;
  backendId: string;
  backendKind: string;
  /** Parsed config of the backend's registry row. */
  accessPoint: ObjectAccessPoint;
}

/** A door that calls come in by. Who is calling follows from it: a socket is bound to a tenant and a backend. */
export interface Endpoint extends ObjectPlace {
  id: string;
  /** As its tenant calls it. */
  name: string;
  /** What the backend's adapter offers; answered by GetInfo without asking anybody. At least one. */
  protocols: readonly ObjectProtocol[];
  driverName: string;
  /** What v1alpha1 Grant answers when the name exists with another request (invariant O8). */
  grantMismatch: 'already_exists' | 'invalid_argument';
  /** Numbering of v1alpha2 AccessMode when the request itself does not tell (docs/callers.md#revisions-of-v1alpha2). */
  accessModeNumbers: 'auto' | 'r1' | 'r3';
}

/** Who came in by a socket; tenant and backend are those of its endpoint. */
export interface EndpointCaller extends Caller {
  readonly endpoint: Endpoint;
}

/** Who came in by no endpoint, and may name any place of its tenant: a person. */
export interface PlacedCaller extends Caller {
  readonly place: ObjectPlace;
}

/** A suspended tenant or endpoint answers nothing, not even what is already true. */
export function requireServing(serves: boolean | undefined): void {
  if (serves !== true)
    throw new StorageError('permission_denied', 'this endpoint or its tenant is suspended; ask the operator');
}
