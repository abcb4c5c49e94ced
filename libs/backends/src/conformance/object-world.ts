/** What the conformance suite of object stores works with: the harness that an adapter brings, and what is made on the way. */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import {
  type BucketRef,
  type BucketSpec,
  type Grant,
  KEYLESS,
  type ObjectBackend,
  type Principal,
  type ServiceAccount,
} from '#backends/object-backend';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import type { ErrorKind } from '#platform/errors';
import { unleased } from '#platform/lease-signal';

export interface ObjectBackendHarness {
  backend: ObjectBackend;
  /** Another tenant of the same appliance on the same store. */
  otherTenant: ObjectBackend;
  /** Cannot reach its store, or does not get in. */
  unreachable: ObjectBackend;
  refused: ObjectBackend;
  /** Names begin with it; the harness removes what is left under it. */
  prefix: string;
  /** A bucket made by somebody else. */
  seedForeignBucket(name: string): Promise<void>;
  /** One that may be registered, where that is not any bucket of somebody else's. */
  seedRegistrable?(name: string): Promise<void>;
  /** Its owner deletes it, and somebody makes the name again. */
  replaceForeignBucket(name: string): Promise<void>;
  foreignBucketExists(name: string): Promise<boolean>;
  /** Puts objects into a bucket of ours, in several versions where it keeps versions. */
  seedObjects(name: string, count: number): Promise<void>;
  /** Leaves something that cannot be deleted now; returns its key. */
  seedLockedObject(name: string): Promise<string>;
  /** Takes all tags off a bucket of ours, behind Trivet's back. */
  dropTags(name: string): Promise<void>;
  bucketSpec(name: string): Promise<Pick<BucketSpec, 'versioning' | 'quotaMaxSize' | 'quotaMaxObjects' | 'tags'>>;
  /** The store's own view of keys; undefined when it has no such principal. */
  principalKeys(uid: string): Promise<{ accessKeyId: string; secretAccessKey: string }[] | undefined>;
  /** Another key of the principal, where keys are issued: made by somebody else. */
  seedKey?(uid: string): Promise<void>;
  /** Where service accounts come in: who may as the principal, by the store's own view; undefined: nobody, or there is none. */
  trustOf?(uid: string): Promise<ServiceAccount | undefined>;
  /** Somebody else lets another one in. */
  seedTrust?(uid: string, account: ServiceAccount): Promise<void>;
  /** The same store by a configuration that lets none in. */
  withKeysAlone?: ObjectBackend;
  /** By the store's own view. */
  grants(name: string): Promise<Grant[]>;
  close(): Promise<void>;
}

/** What a store has not, or has in another way; the port says for each what is done then. */
export interface SuiteTraits {
  /** No users and keys of its own: `signAccess` opens a bucket. */
  signs?: boolean;
  /** A bucket carries its marks from its first moment: none is ever `untagged`, and one that lost them is no more ours. */
  marksAtOnce?: boolean;
  /** Nothing tells a bucket from a later one of its name. */
  namesAlone?: boolean;
  /** No versioning, object lock, quotas and limit of a tenant. */
  plainBuckets?: boolean;
  /** Versioning and object lock, and no quotas nor limit of a tenant. */
  noQuotas?: boolean;
  /** Quotas of a bucket, and neither versioning, object lock, tags nor a limit of a tenant. */
  quotasAlone?: boolean;
  /**
   * Rights are rows of buckets and keys: there are no principals beside keys, no policy that could be too large, and no write
   * only. Keys are of hexadecimal digits, have the secret that they were made with, and never come back.
   */
  plainKeys?: boolean;
  /** Keys are issued, and rights belong to principals, unless `rightsAtBuckets`. */
  issuesKeys?: boolean;
  /** Keys are issued, and rights stand at buckets, where nobody is named who does not exist: who is revoked has none. */
  rightsAtBuckets?: boolean;
  /** Service accounts of a cluster come in without a key. */
  serviceAccounts?: boolean;
}

export const none = () => unleased(AbortSignal.timeout(60_000));
export const plain = (parameters: Record<string, string> = {}): BucketSpec => parseS3BucketParameters(parameters);
export const sorted = (grants: Grant[]) => grants.toSorted((a, b) => (a.uid < b.uid ? -1 : 1));
export const failsWith = (promise: Promise<unknown>, kind: ErrorKind) =>
  expect(promise).rejects.toMatchObject({ name: 'StorageError', kind });

/** Of one suite. Its methods may be taken out of it. */
export class ObjectWorld {
  harness!: ObjectBackendHarness;
  readonly #uids: string[] = [];
  #count = 0;

  constructor(readonly traits: SuiteTraits) {}

  /** Inside the suite's `describe`. */
  begin(setup: () => Promise<ObjectBackendHarness>): void {
    beforeAll(async () => {
      this.harness = await setup();
    });
    afterEach(async () => {
      for (const uid of this.#uids.splice(0)) await this.backend.removePrincipal(uid, none());
    });
    afterAll(() => this.harness?.close());
  }

  get backend(): ObjectBackend {
    return this.harness.backend;
  }

  /** What a bucket that is not ours is told apart by. */
  get identity() {
    return this.traits.namesAlone ? undefined : expect.any(String);
  }

  readonly newRef = (): BucketRef => ({ name: `${this.harness.prefix}${++this.#count}`, incarnation: randomUUID() });

  readonly newPrincipal = (): Principal => {
    const uid = `trivet-${randomUUID()}`;
    this.#uids.push(uid);
    if (this.traits.plainKeys) {
      const [accessKeyId, secretAccessKey] = [`GK${randomBytes(12).toString('hex')}`, randomBytes(32).toString('hex')];
      return { uid, accessKeyId, secretAccessKey, displayName: 'conformance' };
    }
    const id = randomUUID().replaceAll('-', '').toUpperCase();
    return { uid, accessKeyId: id.slice(0, 20), secretAccessKey: `${id}secret`, displayName: 'conformance' };
  };

  /** One that a service account comes in as. */
  readonly newKeyless = (trusts: ServiceAccount): Principal => {
    const uid = `${KEYLESS}${randomUUID()}`;
    this.#uids.push(uid);
    return { uid, accessKeyId: '', secretAccessKey: '', displayName: 'conformance', trusts };
  };

  readonly make = async (parameters: Record<string, string> = {}): Promise<BucketRef> => {
    const ref = this.newRef();
    await this.backend.createBucket(ref, plain(parameters), none());
    await this.backend.configureBucket(ref, plain(parameters), none());
    return ref;
  };

  readonly remove = async (ref: BucketRef): Promise<void> => {
    while (!(await this.backend.emptyBucket(ref, none())).done);
    await this.backend.deleteBucket(ref, none());
  };

  /** What a store must look at the bucket for: where rights belong to principals, only that something is allowed. */
  readonly givenTo = (): Grant[][] => {
    const allowed: Grant[] = [{ uid: this.newPrincipal().uid, mode: 'read_only' }];
    return this.traits.issuesKeys && !this.traits.rightsAtBuckets ? [allowed] : [allowed, []];
  };
}
