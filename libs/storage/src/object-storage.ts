import type { AccessMode, ObjectAccessPoint, ObjectProtocol } from '#backends/object-backend';
import type { Caller, ObjectCaller } from '#storage/caller';
import type { AccessPlace } from '#storage/desired-state';

/**
 * What the object legs ask of the domain. Every method validates, answers a repeat from one read where it can, else
 * accepts a durable operation and waits for its end up to the caller's deadline (invariant E8). Throws StorageError.
 */
export interface ObjectStorage {
  /** Finds or creates. Same name, other state: `already_exists`. Busy beyond the deadline: `aborted`. */
  createBucket(caller: Caller, request: BucketRequest): Promise<BucketView>;
  /** A bucket that Trivet made or that was registered; any other id: `not_found`. */
  getBucket(caller: Caller, request: BucketRequest): Promise<BucketView>;
  /** Checks name and parameters as createBucket does, without touching anything; returns the bucket id. */
  bucketIdFor(caller: Caller, request: BucketRequest): string;
  /** An unknown id is not an error. Holds objects and was made with `retain`: `failed_precondition`. */
  deleteBucket(caller: Caller, bucketId: string): Promise<void>;
  /** Finds or creates; the account and its key are the same on every repeat. */
  grantAccess(caller: Caller, request: GrantRequest): Promise<AccessView>;
  /** An unknown account is not an error. bucketIds absent: the whole account. */
  revokeAccess(caller: Caller, accountId: string, bucketIds?: readonly string[]): Promise<void>;
}

/** The same for administrators, who come in by no endpoint. */
export interface ObjectAdministration {
  /** As deleteBucket, of that incarnation alone; the registration of a registered one ends. */
  removeBucket(caller: ObjectCaller, name: string, incarnation: string): Promise<void>;
  /** As revokeAccess of the whole account. */
  removeAccess(caller: ObjectCaller, accountId: string): Promise<void>;
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
  authentication: 'key' | 'service_account';
  serviceAccount: string;
  parameters: Readonly<Record<string, string>>;
  buckets: readonly { bucketId: string; mode: AccessMode }[];
  /** What the caller's protocol calls them, for the message of a conflict. */
  fields: Readonly<Record<AccessPlace, string>>;
}

export interface AccessView {
  accountId: string;
  buckets: readonly BucketView[];
  credentials: { accessKeyId: string; secretAccessKey: string };
}
