/**
 * Ceph RGW behind the object port.
 *
 * Buckets belong to a user of ours, one for each tenant; everything about a bucket is done as its owner, through S3.
 * Principals, quotas and the question who owns a bucket go through Admin Ops with the administrator's key. CreateBucket
 * answers 200 to the owner of an existing bucket, and DeleteBucket has no condition, so ownership is read from the
 * store right before each change: the owner by Admin Ops, appliance and incarnation by the bucket's tags (invariant O1).
 */
import { DeleteBucketCommand } from '@aws-sdk/client-s3';
import {
  type ApplianceIdentity,
  type BucketInspection,
  type BucketRef,
  type BucketSpec,
  type Grant,
  type GrantTarget,
  type ObjectBackend,
  type Principal,
  type PrincipalRef,
  ReplacedBucket,
  type StoreTraits,
} from '#backends/object-backend';
import type { BackendCheck } from '#backends/registration';
import { AdminOps, type RgwBucket } from '#backends/rgw/admin-ops';
import { readPolicy, writeGrants } from '#backends/rgw/bucket-grants';
import { BucketIdentity, isThis } from '#backends/rgw/bucket-identity';
import { makePlacedBucket, PUBLIC_ACCESS } from '#backends/rgw/bucket-location';
import { BucketOwners } from '#backends/rgw/bucket-owners';
import { diagnoseRgw } from '#backends/rgw/diagnose';
import { isAsGiven, putPrincipal, removeKey, removeUser } from '#backends/rgw/principals';
import { ownerUid, qualifiedBucket, qualifiedUid, type RgwConfig, type RgwCredentials } from '#backends/rgw/rgw-config';
import { RGW_WORDS } from '#backends/rgw/rgw-words';
import { setUpBucket } from '#backends/s3/bucket-making';
import { mergePolicy, samePolicy } from '#backends/s3/bucket-policy';
import { emptyPortion, isBucketEmpty } from '#backends/s3/bucket-purge';
import { applianceTag } from '#backends/s3/bucket-tags';
import { errorCode } from '#backends/s3/errors';
import { HttpTransport } from '#backends/s3/http-transport';
import { missing, notThisOne } from '#backends/s3/ownership';
import type { S3User } from '#backends/s3/s3-user';
import { StoreCalls } from '#backends/s3/store-calls';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

export class RgwObjectBackend implements ObjectBackend {
  readonly #transport: HttpTransport;
  readonly #admin: AdminOps;
  readonly #owners: BucketOwners;
  readonly #buckets: BucketIdentity;
  readonly #owner: string;
  readonly #appliance: string;
  readonly #calls = new StoreCalls(RGW_WORDS);

  constructor(
    private readonly config: RgwConfig,
    credentials: RgwCredentials,
    identity: ApplianceIdentity,
  ) {
    const { endpoint, region } = config;
    this.#transport = new HttpTransport({ endpoint, region, name: 'rgw', expiring: true });
    this.#admin = new AdminOps(this.#transport, credentials);
    this.#owner = qualifiedUid(config.rgwTenant, ownerUid(config, identity));
    this.#owners = new BucketOwners(this.#transport, this.#admin, this.#owner);
    this.#appliance = applianceTag(identity);
    this.#buckets = new BucketIdentity(config.rgwTenant, this.#admin, this.#owners, this.#appliance);
  }

  health(signal: AbortSignal): Promise<void> {
    return this.#calls.run(
      { doing: 'check the object store', resource: 'object store', readOnly: true, signal },
      async () => {
        await this.#admin.getUser(this.#owner, signal);
      },
    );
  }

  diagnose(signal: AbortSignal): Promise<BackendCheck[]> {
    return this.#calls.count(() => diagnoseRgw(this.#admin, this.#owner, signal));
  }

  /** `diagnose` asks for its caps. */
  async tryRights(): Promise<BackendCheck[]> {
    return [];
  }

  inspectBucket(name: string, signal: AbortSignal): Promise<BucketInspection> {
    return this.#calls.onBucket('inspect', name, signal, async () => {
      const { inspection } = await this.#buckets.find(name, signal);
      return inspection;
    });
  }

  createBucket({ name }: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#calls.onBucket('create', name, signal, async () => {
      await this.#owners.ensureOurs(`Trivet ${this.#appliance}`, signal);
      await this.#asOwner(signal, owner => makePlacedBucket(owner, name, spec, this.config.placement, signal));
    });
  }

  configureBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#calls.onBucket('configure', bucket.name, signal, async () => {
      const found = await this.#buckets.find(bucket.name, signal);
      if (found.inspection.state === 'absent') throw missing(bucket.name);
      if (found.inspection.state !== 'untagged' && !isThis(found, bucket)) throw notThisOne(bucket.name);
      await this.#asOwner(signal, owner => setUpBucket(owner, this.#appliance, bucket, spec, PUBLIC_ACCESS, signal));
      await this.#setQuota(bucket.name, spec, found.bucket!, signal);
    });
  }

  emptyBucket(bucket: BucketRef, signal: LeaseSignal): Promise<{ done: boolean; removed: number }> {
    return this.#calls.onBucket('empty', bucket.name, signal, async () => {
      const found = await this.#buckets.find(bucket.name, signal);
      if (found.inspection.state === 'absent') return { done: true, removed: 0 };
      if (!isThis(found, bucket)) throw notThisOne(bucket.name);
      return this.#asOwner(signal, owner => emptyPortion(owner, bucket.name, signal));
    });
  }

  isBucketEmpty(bucket: BucketRef, signal: AbortSignal): Promise<boolean> {
    return this.#calls.onBucket('inspect', bucket.name, signal, async () => {
      if (!isThis(await this.#buckets.find(bucket.name, signal), bucket)) return true;
      return this.#asOwner(signal, owner => isBucketEmpty(owner, bucket.name, signal));
    });
  }

  deleteBucket(bucket: BucketRef, signal: LeaseSignal): Promise<'deleted' | 'absent' | 'not_empty' | 'foreign'> {
    return this.#calls.onBucket('delete', bucket.name, signal, async () => {
      const found = await this.#buckets.find(bucket.name, signal);
      if (found.inspection.state === 'absent') return 'absent';
      if (!isThis(found, bucket)) return 'foreign';
      try {
        const command = new DeleteBucketCommand({ Bucket: bucket.name });
        await this.#asOwner(signal, owner => owner.change(command, signal));
        return 'deleted';
      } catch (error) {
        if (errorCode(error) === 'NoSuchBucket') return 'absent';
        if (errorCode(error) === 'BucketNotEmpty') return 'not_empty';
        throw error;
      }
    });
  }

  traits(): StoreTraits {
    return {};
  }

  async issueKey(): Promise<never> {
    throw new StorageError('unimplemented', 'keys of this store are chosen');
  }

  async isInForce(): Promise<boolean> {
    return true;
  }

  putPrincipal(principal: Principal, signal: LeaseSignal): Promise<void> {
    return this.#onPrincipal('make', principal.uid, signal, uid => putPrincipal(this.#admin, uid, principal, signal));
  }

  holdsPrincipal(principal: Principal, signal: AbortSignal): Promise<boolean> {
    return this.#onPrincipal('inspect', principal.uid, signal, uid => isAsGiven(this.#admin, uid, principal, signal));
  }

  removeKey(principal: PrincipalRef, signal: LeaseSignal): Promise<void> {
    return this.#onPrincipal('remove the key of', principal.uid, signal, uid =>
      removeKey(this.#admin, uid, principal, signal),
    );
  }

  removePrincipal(principalUid: string, signal: LeaseSignal): Promise<void> {
    return this.#onPrincipal('remove', principalUid, signal, uid => {
      const refusal = `RGW user ${uid} owns buckets and cannot be removed; move them to another user first`;
      return removeUser(this.#admin, uid, `principal ${principalUid}`, refusal, signal);
    });
  }

  putGrants(
    { name, incarnation, identity }: GrantTarget,
    grants: readonly Grant[],
    signal: LeaseSignal,
  ): Promise<void> {
    return this.#calls.onBucket('write the policy of', name, signal, async () => {
      const qualified = qualifiedBucket(this.config.rgwTenant, name);
      const bucket =
        incarnation === undefined
          ? await this.#admin.getBucket(qualified, signal)
          : await this.#buckets.findForGrants({ name, incarnation }, signal);
      if (!bucket) throw missing(name);
      if (identity !== undefined && bucket.marker !== identity) throw new ReplacedBucket(name);
      const readVersion = () => this.#admin.bucketVersion(qualified, bucket.id, signal);
      const scope = { bucket: name, tenant: this.config.rgwTenant };
      await this.#owners.as(bucket.owner, signal, owner => writeGrants(owner, scope, grants, readVersion, signal));
    });
  }

  holdsGrants(
    { name, incarnation, identity }: GrantTarget,
    grants: readonly Grant[],
    signal: AbortSignal,
  ): Promise<boolean> {
    return this.#calls.onBucket('inspect', name, signal, async () => {
      const found = await this.#buckets.find(name, signal);
      const { bucket } = found;
      if (!bucket || (incarnation !== undefined && !isThis(found, { name, incarnation }))) return false;
      if (identity !== undefined && bucket.marker !== identity) return false;
      const policy = await this.#owners.as(bucket.owner, signal, owner => readPolicy(owner, name, signal));
      return samePolicy(policy, mergePolicy(policy, { bucket: name, tenant: this.config.rgwTenant }, grants));
    });
  }

  signAccess(): undefined {}

  measureBucket(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#calls.onBucket('inspect', name, signal, () =>
      this.#admin.bucketBytes(qualifiedBucket(this.config.rgwTenant, name), signal),
    );
  }

  /** By the quota of the user that owns the tenant's buckets: it counts what their grantees write, too. */
  limitTenant(bytes: bigint | undefined, signal: LeaseSignal): Promise<void> {
    return this.#calls.run(
      { doing: 'limit the tenant', resource: 'object store', readOnly: false, signal },
      async () => {
        const wanted = String(bytes ?? -1);
        if (bytes !== undefined) await this.#owners.ensureOurs(`Trivet ${this.#appliance}`, signal);
        const now = await this.#admin.userMaxBytes(this.#owner, signal);
        if (now === undefined || String(now) === wanted) return;
        await this.#admin.setUserMaxBytes(this.#owner, wanted, signal);
      },
    );
  }

  /** One that an administrator named is not ours to delete. */
  forgetTenant(signal: LeaseSignal): Promise<void> {
    return this.#calls.run(
      { doing: 'forget the tenant', resource: 'object store', readOnly: false, signal },
      async () => {
        if (this.config.ownerUid !== undefined) {
          await this.limitTenant(undefined, signal);
          return;
        }
        const refusal = `RGW user ${this.#owner} still owns buckets that Trivet does not know; delete them or move them to another user first`;
        await removeUser(this.#admin, this.#owner, 'object store', refusal, signal);
      },
    );
  }

  close(): void {
    this.#calls.close(() => this.#transport.close());
  }

  async #setQuota(name: string, spec: BucketSpec, { bucket_quota }: RgwBucket, signal: LeaseSignal): Promise<void> {
    const quota = { maxSize: spec.quotaMaxSize, maxObjects: spec.quotaMaxObjects };
    if (quota.maxSize === undefined && quota.maxObjects === undefined && !bucket_quota.enabled) return;
    await this.#admin.setBucketQuota(this.#owner, qualifiedBucket(this.config.rgwTenant, name), quota, signal);
  }

  #asOwner<T>(signal: AbortSignal, work: (owner: S3User) => Promise<T>): Promise<T> {
    return this.#owners.as(this.#owner, signal, work);
  }

  #onPrincipal<T>(verb: string, uid: string, signal: AbortSignal, work: (qualified: string) => Promise<T>): Promise<T> {
    return this.#calls.onPrincipal(verb, uid, signal, () => work(qualifiedUid(this.config.rgwTenant, uid)));
  }
}
