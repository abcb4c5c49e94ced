import type { AccessMode, ObjectAccessPoint, ObjectProtocol, ServiceAccount } from '#backends/object-backend';
import type { Caller } from '#operations/accepting/caller';
import type { Submitted } from '#operations/accepting/operations';
import type { EndpointCaller, ObjectPlace, PlacedCaller } from '#storage/object/endpoint';
import type { AccessPlace, Expiry, Rotation } from '#storage/shared/desired-state';

/**
 * What the object interfaces ask of the domain. Every method validates, answers a repeat from one read where it can, else
 * accepts a durable operation and waits for its end up to the caller's deadline (invariant E8). Throws StorageError.
 */
export interface ObjectStorage {
  readonly buckets: BucketCalls;
  readonly accesses: AccessCalls;
}

export interface BucketCalls {
  /** Finds or creates. Same name, other state: `already_exists`. Busy beyond the deadline: `aborted`. */
  create(caller: EndpointCaller, request: BucketRequest): Promise<Submitted<BucketView>>;
  /** As `create`, for who came in by no endpoint. */
  make(caller: PlacedCaller, request: BucketRequest): Promise<Submitted<BucketView>>;
  /** A bucket that Trivet made or that was registered; any other id: `not_found`. */
  get(caller: EndpointCaller, request: BucketRequest): Promise<BucketView>;
  /** Checks name and parameters as `create` does, without touching anything; returns the bucket id. */
  idFor(caller: EndpointCaller, request: BucketRequest): string;
  /** An unknown id is not an error. Holds objects and was made with `retain`: `failed_precondition`. */
  delete(caller: EndpointCaller, bucketId: string): Promise<Submitted<void>>;
  /**
   * As `delete`, for who came in by no endpoint. `incarnation`: only that one. `forget`: a registered one is not registered
   * any more afterwards; else only our grants leave it.
   */
  remove(caller: Caller, name: string, options: { incarnation: string; forget: boolean }): Promise<Submitted<void>>;
}

export interface AccessCalls {
  /** Finds or creates; the account and its key are the same on every repeat. */
  grant(caller: EndpointCaller, request: GrantRequest): Promise<Submitted<AccessView>>;
  /**
   * As `grant`, for who came in by no endpoint. Neither answers for what the other one granted, nor for a bucket that was
   * made anew since: `already_exists`.
   */
  issue(caller: PlacedCaller, request: GrantRequest): Promise<Submitted<AccessView>>;
  /** The key that an issued access has now. One that was granted to a driver: `failed_precondition`. */
  reveal(place: ObjectPlace, access: { id: string; name: string }): Promise<AccessView>;
  /** An unknown account is not an error, nor is one that was issued to a person: it keeps what it has. bucketIds absent: the whole account. */
  revoke(caller: EndpointCaller, accountId: string, bucketIds?: readonly string[]): Promise<Submitted<void>>;
  /** As `revoke` of the whole account, for who came in by no endpoint. */
  remove(caller: Caller, accountId: string): Promise<Submitted<void>>;
  /** Another key; the one that was is let in for so long after `grant` answers the new one. */
  rotate(caller: Caller, accountId: string, graceSeconds: number): Promise<Submitted<void>>;
}

export interface BucketRequest {
  name: string;
  /** Empty: the backend's defaults. */
  protocols: readonly ObjectProtocol[];
  parameters: Readonly<Record<string, string>>;
}

export interface BucketView {
  bucketId: string;
  protocols: readonly ObjectProtocol[];
  accessPoint: ObjectAccessPoint;
}

export interface GrantRequest {
  name: string;
  protocol: ObjectProtocol;
  /** By their names. `id`: only that one. */
  buckets: readonly { bucketId: string; mode: AccessMode; id?: string }[];
  rotation?: Rotation;
  expiry?: Expiry;
  /** Absent: it has a key. */
  serviceAccount?: ServiceAccount;
  /** What the caller's protocol calls them, for the message of a conflict. */
  fields: Readonly<Record<AccessPlace, string>>;
}

export interface AccessView {
  accountId: string;
  buckets: readonly BucketView[];
  /** Empty where a service account comes in without a key. */
  credentials: { accessKeyId: string; secretAccessKey: string; token?: string; expiresAt?: string };
  /** As what that comes in, in the store's words. */
  as?: string;
}
