/**
 * Ceph RGW behind the object port.
 *
 * Buckets belong to a user of ours, one for each tenant; everything about a bucket is done as its owner, through S3.
 * Principals, quotas and the question who owns a bucket go through Admin Ops with the administrator's key. CreateBucket
 * answers 200 to the owner of an existing bucket, and DeleteBucket has no condition, so ownership is read from the
 * store right before each change: the owner by Admin Ops, appliance and incarnation by the bucket's tags (invariant O1).
 */
import {
  type BucketLocationConstraint,
  CreateBucketCommand,
  DeleteBucketCommand,
  GetBucketTaggingCommand,
  PutBucketTaggingCommand,
  PutBucketVersioningCommand,
  PutPublicAccessBlockCommand,
} from '@aws-sdk/client-s3';
import { InFlight } from '#backends/in-flight';
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
} from '#backends/object-backend';
import type { BackendCheck } from '#backends/registration';
import { AdminOps, OP_MASK, type RgwBucket, type RgwUser } from '#backends/rgw/admin-ops';
import { readPolicy, writeGrants } from '#backends/rgw/bucket-grants';
import { BucketOwners } from '#backends/rgw/bucket-owners';
import { emptyPortion, isBucketEmpty } from '#backends/rgw/bucket-purge';
import { diagnoseRgw } from '#backends/rgw/diagnose';
import { type CallContext, errorCode, RgwError, translate } from '#backends/rgw/errors';
import { HttpTransport } from '#backends/rgw/http-transport';
import { ownerUid, qualifiedBucket, qualifiedUid, type RgwConfig, type RgwCredentials } from '#backends/rgw/rgw-config';
import type { S3User } from '#backends/rgw/s3-user';
import { mergePolicy, samePolicy } from '#backends/s3/bucket-policy';
import { APPLIANCE_TAG, applianceTag, INCARNATION_TAG } from '#backends/s3/bucket-tags';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

interface Found {
  inspection: BucketInspection;
  bucket?: RgwBucket;
}

export class RgwObjectBackend implements ObjectBackend {
  readonly #transport: HttpTransport;
  readonly #admin: AdminOps;
  readonly #owners: BucketOwners;
  readonly #owner: string;
  readonly #appliance: string;
  readonly #inFlight = new InFlight();

  constructor(
    private readonly config: RgwConfig,
    credentials: RgwCredentials,
    identity: ApplianceIdentity,
  ) {
    this.#transport = new HttpTransport(config.endpoint, config.region);
    this.#admin = new AdminOps(this.#transport, credentials);
    this.#owner = qualifiedUid(config.rgwTenant, ownerUid(config, identity));
    this.#owners = new BucketOwners(this.#transport, this.#admin, this.#owner);
    this.#appliance = applianceTag(identity);
  }

  health(signal: AbortSignal): Promise<void> {
    return this.#call(
      { doing: 'check the object store', resource: 'object store', readOnly: true, signal },
      async () => {
        await this.#admin.getUser(this.#owner, signal);
      },
    );
  }

  diagnose(signal: AbortSignal): Promise<BackendCheck[]> {
    return this.#inFlight.run(() => diagnoseRgw(this.#admin, this.#owner, signal));
  }

  inspectBucket(name: string, signal: AbortSignal): Promise<BucketInspection> {
    return this.#onBucket('inspect', name, signal, async () => {
      const { inspection } = await this.#find(name, signal);
      return inspection;
    });
  }

  createBucket({ name }: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#onBucket('create', name, signal, async () => {
      await this.#owners.ensureOurs(`Trivet ${this.#appliance}`, signal);
      const location = locationOf(spec, this.config.placement);
      const command = new CreateBucketCommand({
        Bucket: name,
        ObjectLockEnabledForBucket: spec.objectLock ? true : undefined,
        ...(location === undefined ? {} : { CreateBucketConfiguration: { LocationConstraint: location } }),
      });
      try {
        await this.#asOwner(signal, owner => owner.change(command, signal));
      } catch (error) {
        if (errorCode(error) === 'BucketAlreadyOwnedByYou') return;
        if (errorCode(error) !== 'InvalidLocationConstraint') throw error;
        throw noLocation(name, spec, this.config.placement, error);
      }
    });
  }

  configureBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#onBucket('configure', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (found.inspection.state === 'absent') throw missing(bucket.name);
      if (found.inspection.state !== 'untagged' && !isThis(found, bucket)) throw notThisOne(bucket.name);
      await this.#asOwner(signal, owner => this.#configure(owner, bucket, spec, signal));
      await this.#setQuota(bucket.name, spec, found.bucket!, signal);
    });
  }

  emptyBucket(bucket: BucketRef, signal: LeaseSignal): Promise<{ done: boolean; removed: number }> {
    return this.#onBucket('empty', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (found.inspection.state === 'absent') return { done: true, removed: 0 };
      if (!isThis(found, bucket)) throw notThisOne(bucket.name);
      return this.#asOwner(signal, owner => emptyPortion(owner, bucket.name, signal));
    });
  }

  deleteBucket(bucket: BucketRef, signal: LeaseSignal): Promise<'deleted' | 'absent' | 'not_empty' | 'foreign'> {
    return this.#onBucket('delete', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
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

  putPrincipal(principal: Principal, signal: LeaseSignal): Promise<void> {
    return this.#onPrincipal('make', principal.uid, signal, async uid => {
      if (isAsGiven(await this.#admin.getUser(uid, signal), principal)) return;
      try {
        await this.#admin.putUser(uid, principal, signal);
      } catch (error) {
        // 16.2 says BucketAlreadyExists for a key id that another user holds.
        if (!(error instanceof RgwError && error.status === 409)) throw error;
        const message = `the access key of ${principal.uid} belongs to another user of the object store`;
        throw new StorageError('already_exists', message, { resource: `principal ${principal.uid}`, cause: error });
      }
    });
  }

  async holdsPrincipal(principal: Principal, signal: AbortSignal): Promise<boolean> {
    let holds = false;
    await this.#onPrincipal('inspect', principal.uid, signal, async uid => {
      holds = isAsGiven(await this.#admin.getUser(uid, signal), principal);
    });
    return holds;
  }

  removeKey(principal: PrincipalRef, signal: LeaseSignal): Promise<void> {
    return this.#onPrincipal('remove the key of', principal.uid, signal, async uid => {
      const user = await this.#admin.getUser(uid, signal);
      if (!user?.keys.some(key => key.access_key === principal.accessKeyId)) return;
      try {
        await this.#admin.deleteKey(uid, principal.accessKeyId, signal);
      } catch (error) {
        // Of a missing key RGW says 403 InvalidAccessKeyId; our own was good a moment ago.
        const code = errorCode(error);
        if (code !== 'InvalidAccessKeyId' && code !== 'NoSuchUser') throw error;
      }
    });
  }

  removePrincipal(principalUid: string, signal: LeaseSignal): Promise<void> {
    return this.#onPrincipal('remove', principalUid, signal, async uid => {
      const refusal = `RGW user ${uid} owns buckets and cannot be removed; move them to another user first`;
      await this.#deleteUser(uid, `principal ${principalUid}`, refusal, signal);
    });
  }

  putGrants(
    { name, incarnation, identity }: GrantTarget,
    grants: readonly Grant[],
    signal: LeaseSignal,
  ): Promise<void> {
    return this.#onBucket('write the policy of', name, signal, async () => {
      const qualified = qualifiedBucket(this.config.rgwTenant, name);
      const bucket =
        incarnation === undefined
          ? await this.#admin.getBucket(qualified, signal)
          : await this.#ownForGrants({ name, incarnation }, signal);
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
    return this.#onBucket('inspect', name, signal, async () => {
      const found = await this.#find(name, signal);
      const { bucket } = found;
      if (!bucket || (incarnation !== undefined && !isThis(found, { name, incarnation }))) return false;
      if (identity !== undefined && bucket.marker !== identity) return false;
      const policy = await this.#owners.as(bucket.owner, signal, owner => readPolicy(owner, name, signal));
      return samePolicy(policy, mergePolicy(policy, { bucket: name, tenant: this.config.rgwTenant }, grants));
    });
  }

  measureBucket(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#onBucket('inspect', name, signal, () =>
      this.#admin.bucketBytes(qualifiedBucket(this.config.rgwTenant, name), signal),
    );
  }

  /** By the quota of the user that owns the tenant's buckets: it counts what their grantees write, too. */
  limitTenant(bytes: bigint | undefined, signal: LeaseSignal): Promise<void> {
    return this.#call({ doing: 'limit the tenant', resource: 'object store', readOnly: false, signal }, async () => {
      const wanted = String(bytes ?? -1);
      if (bytes !== undefined) await this.#owners.ensureOurs(`Trivet ${this.#appliance}`, signal);
      const now = await this.#admin.userMaxBytes(this.#owner, signal);
      if (now === undefined || String(now) === wanted) return;
      await this.#admin.setUserMaxBytes(this.#owner, wanted, signal);
    });
  }

  /** One that an administrator named is not ours to delete. */
  forgetTenant(signal: LeaseSignal): Promise<void> {
    return this.#call({ doing: 'forget the tenant', resource: 'object store', readOnly: false, signal }, async () => {
      if (this.config.ownerUid !== undefined) {
        await this.limitTenant(undefined, signal);
        return;
      }
      const refusal = `RGW user ${this.#owner} still owns buckets that Trivet does not know; delete them or move them to another user first`;
      await this.#deleteUser(this.#owner, 'object store', refusal, signal);
    });
  }

  close(): void {
    this.#inFlight.close(() => this.#transport.close());
  }

  /** One that is gone is no error; RGW keeps one that owns buckets. */
  async #deleteUser(uid: string, resource: string, refusal: string, signal: LeaseSignal): Promise<void> {
    try {
      await this.#admin.deleteUser(uid, signal);
    } catch (error) {
      if (errorCode(error) === 'NoSuchUser') return;
      if (!(error instanceof RgwError && error.status === 409)) throw error;
      throw new StorageError('failed_precondition', refusal, { resource, cause: error });
    }
  }

  async #configure(owner: S3User, bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    const Bucket = bucket.name;
    // Ownership first: what follows may be interrupted, and is repeated then.
    const tags = { ...spec.tags, [APPLIANCE_TAG]: this.#appliance, [INCARNATION_TAG]: bucket.incarnation };
    const TagSet = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    await owner.change(new PutBucketTaggingCommand({ Bucket, Tagging: { TagSet } }), signal);
    // Alone: BlockPublicAcls would refuse ordinary uploads that carry an ACL (invariant O3).
    const PublicAccessBlockConfiguration = { IgnorePublicAcls: true };
    await owner.change(new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration }), signal);
    if (!spec.versioning) return;
    const VersioningConfiguration = { Status: 'Enabled' } as const;
    await owner.change(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }), signal);
  }

  async #setQuota(name: string, spec: BucketSpec, { bucket_quota }: RgwBucket, signal: LeaseSignal): Promise<void> {
    const quota = { maxSize: spec.quotaMaxSize, maxObjects: spec.quotaMaxObjects };
    if (quota.maxSize === undefined && quota.maxObjects === undefined && !bucket_quota.enabled) return;
    await this.#admin.setBucketQuota(this.#owner, qualifiedBucket(this.config.rgwTenant, name), quota, signal);
  }

  async #find(name: string, signal: AbortSignal): Promise<Found> {
    const bucket = await this.#admin.getBucket(qualifiedBucket(this.config.rgwTenant, name), signal);
    if (!bucket) return { inspection: { state: 'absent' } };
    const { marker: identity } = bucket;
    const foreign = (byTrivet: boolean): Found => ({ inspection: { state: 'foreign', byTrivet, identity }, bucket });
    // By Admin Ops: its owner may have no key that we could ask with.
    if (bucket.owner !== this.#owner) return foreign(bucket.tagset?.[APPLIANCE_TAG] !== undefined);
    return this.#asOwner(signal, async owner => {
      const tags = await readTags(owner, name, signal);
      const appliance = tags.get(APPLIANCE_TAG);
      const incarnation = tags.get(INCARNATION_TAG);
      if (appliance === undefined || incarnation === undefined)
        return {
          inspection: { state: 'untagged', empty: await isBucketEmpty(owner, name, signal), identity },
          bucket,
        };
      if (appliance !== this.#appliance) return foreign(true);
      return { inspection: { state: 'ours', incarnation }, bucket };
    });
  }

  /**
   * Undefined when this bucket is gone, whatever has its name now. A bucket that is still there, but was given away or
   * lost its tags, must not pass for gone: a revocation would leave its statements in force.
   */
  async #ownForGrants(ref: BucketRef, signal: AbortSignal): Promise<RgwBucket | undefined> {
    const found = await this.#find(ref.name, signal);
    if (isThis(found, ref)) return found.bucket;
    if (found.inspection.state === 'untagged') throw estranged(ref.name, 'lost the tags that say so');
    if (found.inspection.state !== 'foreign') return undefined;
    const { owner } = found.bucket!;
    const tags = await this.#owners.as(owner, signal, owner => readTags(owner, ref.name, signal));
    if (tags.get(APPLIANCE_TAG) === this.#appliance && tags.get(INCARNATION_TAG) === ref.incarnation)
      throw estranged(ref.name, `was given to user ${owner}`);
    return undefined;
  }

  #asOwner<T>(signal: AbortSignal, work: (owner: S3User) => Promise<T>): Promise<T> {
    return this.#owners.as(this.#owner, signal, work);
  }

  #onBucket<T>(verb: string, name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const readOnly = verb === 'inspect';
    return this.#call({ doing: `${verb} bucket ${name}`, resource: `bucket ${name}`, readOnly, signal }, work);
  }

  #onPrincipal(
    verb: string,
    uid: string,
    signal: AbortSignal,
    work: (qualified: string) => Promise<void>,
  ): Promise<void> {
    const readOnly = verb === 'inspect';
    const context = { doing: `${verb} principal ${uid}`, resource: `principal ${uid}`, readOnly, signal };
    return this.#call(context, () => work(qualifiedUid(this.config.rgwTenant, uid)));
  }

  #call<T>(context: CallContext, work: () => Promise<T>): Promise<T> {
    return this.#inFlight.run(async () => {
      try {
        return await work();
      } catch (error) {
        throw translate(error, context);
      }
    });
  }
}

/** One key, the given one; not suspended, and no right to make buckets. */
function isAsGiven(user: RgwUser | undefined, { accessKeyId, secretAccessKey }: Principal): boolean {
  const [key, ...others] = user?.keys ?? [];
  const usable = user?.max_buckets === -1 && Number(user.suspended) === 0 && user.op_mask === OP_MASK;
  return usable && others.length === 0 && key?.access_key === accessKeyId && key.secret_key === secretAccessKey;
}

function isThis({ inspection }: Found, { incarnation }: BucketRef): boolean {
  return inspection.state === 'ours' && inspection.incarnation === incarnation;
}

async function readTags(user: S3User, Bucket: string, signal: AbortSignal): Promise<Map<string, string>> {
  try {
    const { TagSet } = await user.read(new GetBucketTaggingCommand({ Bucket }), signal);
    return new Map((TagSet ?? []).map(({ Key, Value }) => [Key ?? '', Value ?? '']));
  } catch (error) {
    if (errorCode(error) === 'NoSuchTagSet') return new Map();
    throw error;
  }
}

/** RGW reads `zonegroup:placement`; either may be left out. */
function locationOf(spec: BucketSpec, placement: string | undefined): BucketLocationConstraint | undefined {
  const target = spec.placement ?? placement;
  if (spec.region === undefined && target === undefined) return undefined;
  const text = target === undefined ? spec.region! : `${spec.region ?? ''}:${target}`;
  return text as BucketLocationConstraint;
}

function noLocation(name: string, spec: BucketSpec, configured: string | undefined, cause: unknown): StorageError {
  const resource = `bucket ${name}`;
  const { region, placement } = spec;
  // Sidecars give up on what the request cannot help.
  if (region === undefined && placement === undefined) {
    const message = `the object store has no placement target '${configured}', which this backend is configured with`;
    return new StorageError('failed_precondition', message, { resource, cause });
  }
  const field = placement === undefined ? 'parameters[region]' : 'parameters[placement]';
  const zoneGroup = region === undefined ? '' : `zone group '${region}'`;
  const target = placement === undefined ? '' : `placement target '${placement}'`;
  const what = [target, zoneGroup].filter(part => part !== '').join(' in ');
  return new StorageError('invalid_argument', `${field}: the object store has no ${what}`, { field, resource, cause });
}

const missing = (name: string): StorageError =>
  new StorageError('not_found', `bucket ${name} does not exist`, { resource: `bucket ${name}` });
const notThisOne = (name: string): StorageError =>
  new StorageError('failed_precondition', `bucket ${name} is not the one that Trivet made`, {
    resource: `bucket ${name}`,
  });
const estranged = (name: string, how: string): StorageError =>
  new StorageError('failed_precondition', `bucket ${name} was made by Trivet, but ${how}; restore that, then retry`, {
    resource: `bucket ${name}`,
  });
