import type { ObjectBackendKind } from '#backends/object-backend';
import type { Handler } from '#operations/handler';
import type { Operations } from '#operations/operations';
import type { Database } from '#platform/database';
import type { SecretBox } from '#platform/secrets';
import { AccessHandlers } from '#storage/accesses/access-handlers';
import { Accesses } from '#storage/accesses/accesses';
import type { BackendDirectory } from '#storage/backend-directory';
import { createBucketHandler, deleteBucketHandler, releaseBucketHandler } from '#storage/buckets/bucket-handlers';
import { Buckets } from '#storage/buckets/buckets';
import type { Caller, Endpoint, ObjectCaller } from '#storage/caller';
import type {
  AccessView,
  BucketRequest,
  BucketView,
  GrantRequest,
  ObjectAdministration,
  ObjectStorage,
} from '#storage/object-storage';

/** The gateway's half of the domain. */
export class ObjectStorageService implements ObjectStorage, ObjectAdministration {
  private readonly buckets: Buckets;
  private readonly accesses: Accesses;

  constructor(options: {
    database: Database;
    operations: Operations;
    secrets: SecretBox;
    kindOf: (endpoint: Endpoint) => ObjectBackendKind;
    waitMs: number;
  }) {
    const { database, operations, secrets, kindOf, waitMs } = options;
    this.buckets = new Buckets(database, operations, kindOf, waitMs);
    this.accesses = new Accesses(database, operations, secrets, kindOf, waitMs);
  }

  createBucket(caller: Caller, request: BucketRequest): Promise<BucketView> {
    return this.buckets.create(caller, request);
  }

  getBucket(caller: Caller, request: BucketRequest): Promise<BucketView> {
    return this.buckets.get(caller, request);
  }

  bucketIdFor(caller: Caller, request: BucketRequest): string {
    return this.buckets.idFor(caller, request);
  }

  deleteBucket(caller: Caller, bucketId: string): Promise<void> {
    return this.buckets.delete(caller, bucketId);
  }

  grantAccess(caller: Caller, request: GrantRequest): Promise<AccessView> {
    return this.accesses.grant(caller, request);
  }

  revokeAccess(caller: Caller, accountId: string, bucketIds?: readonly string[]): Promise<void> {
    return this.accesses.revoke(caller, accountId, bucketIds);
  }

  removeBucket(caller: ObjectCaller, name: string, incarnation: string): Promise<void> {
    return this.buckets.remove(caller, name, { incarnation, forget: true });
  }

  removeAccess(caller: ObjectCaller, accountId: string): Promise<void> {
    return this.accesses.remove(caller, accountId);
  }
}

/** The worker's half: one handler a kind of operation. Crash tests enumerate their failpoints from it. */
export function storageHandlers(backends: BackendDirectory, secrets: SecretBox): Handler[] {
  return [
    createBucketHandler(backends),
    deleteBucketHandler(backends),
    releaseBucketHandler(backends),
    ...new AccessHandlers(backends, secrets).all(),
  ];
}
