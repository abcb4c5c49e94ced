/**
 * Garage behind the object port, over its admin API of version 2 (ADR 58).
 *
 * A bucket is made together with its name and the mark that says whose it is, a local alias of Trivet's own key, which owns it. An
 * access is a key, imported as it was chosen and committed; what it may do is written at bucket and key by AllowBucketKey and
 * DenyBucketKey. An id that was deleted never comes back.
 */
import { AdminApi, type GarageBucket } from '#backends/garage/admin-api';
import { emptyPortion, isEmpty } from '#backends/garage/bucket-contents';
import { inspectionOf, markOf, ownerDigest } from '#backends/garage/bucket-mark';
import { diagnoseGarage, unavailable } from '#backends/garage/diagnose';
import type { GarageConfig, GarageCredentials } from '#backends/garage/garage-config';
import { GARAGE_WORDS } from '#backends/garage/garage-words';
import { differences, type KeyNames, writeRights } from '#backends/garage/key-rights';
import { holdsKeys, putKeys, removeKeys } from '#backends/garage/keys';
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
import { errorCode } from '#backends/s3/errors';
import { HttpTransport } from '#backends/s3/http-transport';
import { estranged, missing, notThisOne } from '#backends/s3/ownership';
import { S3User } from '#backends/s3/s3-user';
import { StoreCalls } from '#backends/s3/store-calls';
import { invalid, StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

export const GARAGE_TRAITS: StoreTraits = { hexKeys: true, noWriteOnly: true };

const OWNER = { read: true, write: true, owner: true };

export class GarageObjectBackend implements ObjectBackend {
  readonly #admin: AdminApi;
  readonly #s3: HttpTransport;
  readonly #digest: string;
  readonly #names: KeyNames;
  readonly #calls = new StoreCalls(GARAGE_WORDS);
  #owner: S3User | undefined;

  constructor(
    private readonly config: GarageConfig,
    private readonly credentials: GarageCredentials,
    identity: ApplianceIdentity,
  ) {
    const { adminEndpoint, endpoint, region } = config;
    this.#admin = new AdminApi(adminEndpoint, credentials.adminToken);
    this.#s3 = new HttpTransport({ endpoint, region, name: 'garage', expiring: false });
    this.#digest = ownerDigest(identity);
    const end = ` of ${this.#digest}`;
    this.#names = { nameOf: uid => `${uid}${end}`, isOurs: name => name.endsWith(end) };
  }

  traits(): StoreTraits {
    return GARAGE_TRAITS;
  }

  async health(signal: AbortSignal): Promise<void> {
    const context = { doing: 'check the object store', resource: 'object store', readOnly: true, signal };
    await this.#calls.run(context, async () => {
      if ((await this.#admin.clusterStatus(signal)) === 'unavailable') throw unavailable();
    });
  }

  diagnose(signal: AbortSignal): Promise<BackendCheck[]> {
    return this.#calls.count(() => diagnoseGarage(this.#admin, this.#user, this.config, this.credentials, signal));
  }

  async tryRights(): Promise<BackendCheck[]> {
    return [];
  }

  inspectBucket(name: string, signal: AbortSignal): Promise<BucketInspection> {
    return this.#calls.onBucket('inspect', name, signal, async () => (await this.#find(name, signal)).inspection);
  }

  createBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    const { name, incarnation } = bucket;
    return this.#calls.onBucket('create', name, signal, async () => {
      const { region } = this.config;
      if (spec.region !== undefined && spec.region !== region)
        throw invalid('parameters[region]', `this backend is of region ${region}`);
      const { accessKeyId } = this.credentials;
      const localAlias = { accessKeyId, alias: markOf(this.#digest, incarnation), allow: OWNER };
      try {
        await this.#admin.change('CreateBucket', { globalAlias: name, localAlias }, signal);
      } catch (error) {
        // Ours, of an attempt whose answer was lost: the mark says so.
        if (!isThis(await this.#find(name, signal), bucket)) throw error;
      }
      // Two nodes of Garage may take the same name at once; one of them keeps it.
      if (!isThis(await this.#find(name, signal), bucket))
        throw new StorageError('already_exists', `bucket ${name} exists already`, { resource: `bucket ${name}` });
    });
  }

  configureBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    const { name, incarnation } = bucket;
    return this.#calls.onBucket('configure', name, signal, async () => {
      const found = await this.#find(name, signal);
      if (!found.bucket) throw missing(name);
      const { id } = found.bucket;
      const { accessKeyId } = this.credentials;
      if (found.inspection.state === 'untagged' && found.inspection.empty) {
        const localAlias = markOf(this.#digest, incarnation);
        await this.#admin.change('AddBucketAlias', { bucketId: id, accessKeyId, localAlias }, signal);
      } else if (!isThis(found, bucket)) throw notThisOne(name);
      const own = found.bucket.keys.find(key => key.accessKeyId === accessKeyId);
      if (!own?.permissions.owner)
        await this.#admin.change('AllowBucketKey', { bucketId: id, accessKeyId, permissions: OWNER }, signal);
      const quotas = {
        maxSize: spec.quotaMaxSize === undefined ? null : Number(spec.quotaMaxSize),
        maxObjects: spec.quotaMaxObjects === undefined ? null : Number(spec.quotaMaxObjects),
      };
      const now = found.bucket.quotas;
      const isSame = (now.maxSize ?? null) === quotas.maxSize && (now.maxObjects ?? null) === quotas.maxObjects;
      if (!isSame || found.bucket.websiteAccess)
        await this.#admin.change('UpdateBucket', { quotas, websiteAccess: { enabled: false } }, signal, { id });
    });
  }

  emptyBucket(bucket: BucketRef, signal: LeaseSignal): Promise<{ done: boolean; removed: number }> {
    const { name } = bucket;
    return this.#calls.onBucket('empty', name, signal, async () => {
      const found = await this.#find(name, signal);
      if (!found.bucket) return { done: true, removed: 0 };
      if (!isThis(found, bucket)) throw notThisOne(name);
      return emptyPortion(this.#user, this.#admin, { id: found.bucket.id, name }, signal);
    });
  }

  isBucketEmpty(bucket: BucketRef, signal: AbortSignal): Promise<boolean> {
    return this.#calls.onBucket('inspect', bucket.name, signal, async () => {
      return !isThis(await this.#find(bucket.name, signal), bucket) || isEmpty(this.#user, bucket.name, signal);
    });
  }

  deleteBucket(bucket: BucketRef, signal: LeaseSignal): Promise<'deleted' | 'absent' | 'not_empty' | 'foreign'> {
    return this.#calls.onBucket('delete', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (!found.bucket) return 'absent';
      if (!isThis(found, bucket)) return 'foreign';
      try {
        await this.#admin.change('DeleteBucket', {}, signal, { id: found.bucket.id });
        return 'deleted';
      } catch (error) {
        if (errorCode(error) === 'NoSuchBucket') return 'absent';
        if (errorCode(error) === 'BucketNotEmpty') return 'not_empty';
        throw error;
      }
    });
  }

  putPrincipal(principal: Principal, signal: LeaseSignal): Promise<void> {
    const { uid } = principal;
    return this.#calls.onPrincipal('make', uid, signal, () =>
      putKeys(this.#admin, this.#names.nameOf(uid), principal, signal),
    );
  }

  holdsPrincipal(principal: Principal, signal: AbortSignal): Promise<boolean> {
    const { uid } = principal;
    return this.#calls.onPrincipal('inspect', uid, signal, () =>
      holdsKeys(this.#admin, this.#names.nameOf(uid), principal, signal),
    );
  }

  async issueKey(): Promise<never> {
    throw new StorageError('unimplemented', 'keys of this store are chosen');
  }

  async isInForce(): Promise<boolean> {
    return true;
  }

  removeKey({ uid, accessKeyId }: PrincipalRef, signal: LeaseSignal): Promise<void> {
    return this.#calls.onPrincipal('remove the key of', uid, signal, () =>
      removeKeys(this.#admin, this.#names.nameOf(uid), signal, accessKeyId),
    );
  }

  removePrincipal(uid: string, signal: LeaseSignal): Promise<void> {
    return this.#calls.onPrincipal('remove', uid, signal, () =>
      removeKeys(this.#admin, this.#names.nameOf(uid), signal),
    );
  }

  putGrants(target: GrantTarget, grants: readonly Grant[], signal: LeaseSignal): Promise<void> {
    return this.#calls.onBucket('write the rights on', target.name, signal, async () => {
      const found = await this.#find(target.name, signal);
      if (!found.bucket) throw missing(target.name);
      if (isReplaced(found.bucket, target)) throw new ReplacedBucket(target.name);
      if (target.incarnation !== undefined && !isThis(found, { incarnation: target.incarnation })) {
        if (found.inspection.state === 'ours') throw missing(target.name);
        throw estranged(
          target.name,
          `has lost the alias that says whose it is (${markOf(this.#digest, target.incarnation)})`,
        );
      }
      const { rows } = await differences(this.#admin, found.bucket, grants, this.#names, signal);
      await writeRights(this.#admin, found.bucket.id, rows, signal);
    });
  }

  holdsGrants(target: GrantTarget, grants: readonly Grant[], signal: AbortSignal): Promise<boolean> {
    return this.#calls.onBucket('inspect', target.name, signal, async () => {
      const found = await this.#find(target.name, signal);
      if (!found.bucket || isReplaced(found.bucket, target)) return false;
      if (target.incarnation !== undefined && !isThis(found, { incarnation: target.incarnation })) return false;
      const { missing: isMissing, rows } = await differences(this.#admin, found.bucket, grants, this.#names, signal);
      return !isMissing && rows.length === 0;
    });
  }

  signAccess(): undefined {}

  measureBucket(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#calls.onBucket('inspect', name, signal, async () => {
      const { bucket } = await this.#find(name, signal);
      return bucket && BigInt(bucket.bytes);
    });
  }

  async limitTenant(bytes: bigint | undefined): Promise<void> {
    if (bytes !== undefined) throw new StorageError('unimplemented', 'Garage has no limit for the buckets of a tenant');
  }

  async forgetTenant(): Promise<void> {}

  close(): void {
    this.#calls.close(() => {
      this.#admin.close();
      this.#s3.close();
    });
  }

  get #user(): S3User {
    this.#owner ??= new S3User(this.#s3, this.credentials);
    return this.#owner;
  }

  async #find(name: string, signal: AbortSignal): Promise<Found> {
    const bucket = await this.#admin.bucketNamed(name, signal);
    return { bucket, inspection: inspectionOf(bucket, this.#digest, this.credentials.accessKeyId) };
  }
}

interface Found {
  bucket: GarageBucket | undefined;
  inspection: BucketInspection;
}

const isThis = ({ inspection }: Found, { incarnation }: Pick<BucketRef, 'incarnation'>): boolean =>
  inspection.state === 'ours' && inspection.incarnation === incarnation;
const isReplaced = ({ id }: GarageBucket, { identity }: GrantTarget): boolean =>
  identity !== undefined && identity !== id;
