/**
 * S3 with the IAM API behind the object port (ADR 55).
 *
 * Buckets are made by whoever Trivet is in the account, and known by their tags. An access is an IAM user with one key, which IAM
 * makes and shows once, or a role that a service account of a cluster assumes, and its rights are inline policies of that. So they
 * do not end with a bucket, and are taken away when it goes. IAM answers a change before all of S3 goes by it, so grant and
 * revocation ask as the holder until it does; of a role there is nobody to ask as.
 */
import {
  DeleteBucketCommand,
  HeadBucketCommand,
  ListBucketsCommand,
  ListObjectVersionsCommand,
} from '@aws-sdk/client-s3';
import type {
  ApplianceIdentity,
  BucketInspection,
  BucketRef,
  BucketSpec,
  Expected,
  Grant,
  GrantTarget,
  IssuedKey,
  ObjectBackend,
  Principal,
  PrincipalRef,
  StoreTraits,
} from '#backends/object-backend';
import type { BackendCheck } from '#backends/registration';
import { makeBucket, setUpBucket } from '#backends/s3/bucket-making';
import { emptyPortion, isBucketEmpty as isEmpty } from '#backends/s3/bucket-purge';
import { APPLIANCE_TAG, applianceTag, INCARNATION_TAG } from '#backends/s3/bucket-tags';
import { errorCode, httpStatus } from '#backends/s3/errors';
import { HttpTransport } from '#backends/s3/http-transport';
import { Iam } from '#backends/s3/iam';
import { holdsRole, putRole, removeRole } from '#backends/s3/iam-roles';
import { holdsKey, issueKey, putUser, removeKeys, removeUser } from '#backends/s3/iam-users';
import { isInForce } from '#backends/s3/in-force';
import { estranged, missing, notThisOne, readTags } from '#backends/s3/ownership';
import { placesOf, type S3Config, type S3Credentials } from '#backends/s3/s3-config';
import { diagnoseS3 } from '#backends/s3/s3-diagnose';
import { tryRights } from '#backends/s3/s3-rights';
import { S3User } from '#backends/s3/s3-user';
import { S3_WORDS } from '#backends/s3/s3-words';
import { StoreCalls } from '#backends/s3/store-calls';
import { dropRights, isRole, partedRights, saysRights, writeRights } from '#backends/s3/user-rights';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

export const S3_TRAITS: StoreTraits = { issuesKeys: true, rightsOfPrincipals: true, late: true };
const IAM_DELAY_SECONDS = 10;

/** Nobody publishes what is in a bucket of ours, by whatever means. */
const PUBLIC_ACCESS = {
  BlockPublicAcls: true,
  IgnorePublicAcls: true,
  BlockPublicPolicy: true,
  RestrictPublicBuckets: true,
};
/** Where buckets have no location, and making one's own again is no error. */
const CLASSIC_REGION = 'us-east-1';

export class S3ObjectBackend implements ObjectBackend {
  readonly #transport: HttpTransport;
  readonly #appliance: string;
  readonly #calls = new StoreCalls(S3_WORDS);
  #opened: { iam: Iam; admin: S3User } | undefined;

  constructor(
    private readonly config: S3Config,
    private readonly credentials: S3Credentials,
    identity: ApplianceIdentity,
  ) {
    const { region } = config;
    this.#transport = new HttpTransport({ endpoint: placesOf(config).s3, region, name: 's3', expiring: false });
    this.#appliance = applianceTag(identity);
  }

  traits(): StoreTraits {
    const { iamDelaySeconds = IAM_DELAY_SECONDS } = this.config;
    return { ...S3_TRAITS, keylessLateMs: iamDelaySeconds * 1_000 };
  }

  async health(signal: AbortSignal): Promise<void> {
    const context = { doing: 'check the object store', resource: 'object store', readOnly: true, signal };
    await this.#calls.run(context, () => this.#admin.read(new ListBucketsCommand({ MaxBuckets: 1 }), signal));
  }

  diagnose(signal: AbortSignal): Promise<BackendCheck[]> {
    return this.#calls.count(() => diagnoseS3(this.#admin, this.#iam, this.config, signal));
  }

  tryRights(signal: LeaseSignal): Promise<BackendCheck[]> {
    const { config } = this;
    const store = { admin: this.#admin, iam: this.#iam, config, appliance: this.#appliance, location: this.#location };
    return this.#calls.count(() => tryRights(store, signal));
  }

  inspectBucket(name: string, signal: AbortSignal): Promise<BucketInspection> {
    return this.#calls.onBucket('inspect', name, signal, () => this.#find(name, signal));
  }

  createBucket({ name, incarnation }: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#calls.onBucket('create', name, signal, async () => {
      const { region } = this.config;
      if (spec.region !== undefined && spec.region !== region)
        throw new StorageError('invalid_argument', `parameters[region]: this backend is of region ${region}`, {
          field: 'parameters[region]',
        });
      try {
        await makeBucket(this.#admin, name, spec, this.#location, signal);
        if (this.#location !== undefined) return;
      } catch (error) {
        // Some stores say so of a name that another account has.
        const isForeign = errorCode(error) === 'AccessDenied' && (await this.#find(name, signal)).state === 'foreign';
        if (!isForeign && errorCode(error) !== 'BucketAlreadyOwnedByYou') throw error;
      }
      // Somebody else in the account may have had it before: only what is new, or this very one, is ours to take.
      const found = await this.#find(name, signal);
      if ((found.state === 'untagged' && found.empty) || isThis(found, incarnation)) return;
      throw new StorageError('already_exists', `bucket ${name} exists already, in this account or another`, {
        resource: `bucket ${name}`,
      });
    });
  }

  configureBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#calls.onBucket('configure', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (found.state === 'absent') throw missing(bucket.name);
      if (found.state !== 'untagged' && !isThis(found, bucket.incarnation)) throw notThisOne(bucket.name);
      await setUpBucket(this.#admin, this.#appliance, bucket, spec, PUBLIC_ACCESS, signal);
    });
  }

  emptyBucket(bucket: BucketRef, signal: LeaseSignal): Promise<{ done: boolean; removed: number }> {
    return this.#calls.onBucket('empty', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (found.state === 'absent') return { done: true, removed: 0 };
      if (!isThis(found, bucket.incarnation)) throw notThisOne(bucket.name);
      return emptyPortion(this.#admin, bucket.name, signal);
    });
  }

  isBucketEmpty(bucket: BucketRef, signal: AbortSignal): Promise<boolean> {
    return this.#calls.onBucket('inspect', bucket.name, signal, async () => {
      return (
        !isThis(await this.#find(bucket.name, signal), bucket.incarnation) || isEmpty(this.#admin, bucket.name, signal)
      );
    });
  }

  deleteBucket(bucket: BucketRef, signal: LeaseSignal): Promise<'deleted' | 'absent' | 'not_empty' | 'foreign'> {
    return this.#calls.onBucket('delete', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (found.state === 'absent') return 'absent';
      if (!isThis(found, bucket.incarnation)) return 'foreign';
      try {
        await this.#admin.change(new DeleteBucketCommand({ Bucket: bucket.name }), signal);
        return 'deleted';
      } catch (error) {
        if (errorCode(error) === 'NoSuchBucket') return 'absent';
        if (errorCode(error) === 'BucketNotEmpty') return 'not_empty';
        throw error;
      }
    });
  }

  putPrincipal(principal: Principal, signal: LeaseSignal): Promise<void> {
    const { uid, trusts } = principal;
    return this.#calls.onPrincipal('make', uid, signal, () =>
      trusts
        ? putRole(this.#iam, this.config, this.#appliance, { uid, trusts }, signal)
        : putUser(this.#iam, this.config, this.#appliance, principal, signal),
    );
  }

  holdsPrincipal(principal: Principal, signal: AbortSignal): Promise<boolean> {
    const { uid, trusts } = principal;
    return this.#calls.onPrincipal('inspect', uid, signal, () =>
      trusts ? holdsRole(this.#iam, this.config, { uid, trusts }, signal) : holdsKey(this.#iam, principal, signal),
    );
  }

  issueKey(uid: string, signal: LeaseSignal, staying?: string): Promise<IssuedKey> {
    return this.#calls.onPrincipal('issue a key of', uid, signal, () => issueKey(this.#iam, uid, signal, staying));
  }

  isInForce(key: IssuedKey, expected: Expected, signal: LeaseSignal): Promise<boolean> {
    const context = { doing: 'ask as a grantee', resource: 'object store', readOnly: true, signal };
    return this.#calls.run(context, () => isInForce(this.#transport, key, expected, signal));
  }

  removeKey({ uid }: PrincipalRef, signal: LeaseSignal): Promise<void> {
    return this.#calls.onPrincipal('remove the key of', uid, signal, async () => {
      if (!isRole(uid)) await removeKeys(this.#iam, uid, signal);
    });
  }

  removePrincipal(uid: string, signal: LeaseSignal): Promise<void> {
    return this.#calls.onPrincipal('remove', uid, signal, () =>
      isRole(uid) ? removeRole(this.#iam, uid, signal) : removeUser(this.#iam, uid, signal),
    );
  }

  putGrants(
    bucket: GrantTarget,
    grants: readonly Grant[],
    signal: LeaseSignal,
    whose: readonly string[] = grants.map(({ uid }) => uid),
  ): Promise<void> {
    return this.#calls.onBucket('write the rights on', bucket.name, signal, async () => {
      const { dropped, denied, allowed } = partedRights(grants, whose);
      for (const uid of dropped) await dropRights(this.#iam, bucket, uid, signal);
      for (const grant of denied) await writeRights(this.#iam, bucket, grant, signal);
      if (allowed.length === 0) return;
      await this.#requireFor(bucket, signal);
      for (const grant of allowed) await writeRights(this.#iam, bucket, grant, signal);
    });
  }

  holdsGrants(
    bucket: GrantTarget,
    grants: readonly Grant[],
    signal: AbortSignal,
    whose: readonly string[] = grants.map(({ uid }) => uid),
  ): Promise<boolean> {
    return this.#calls.onBucket('inspect', bucket.name, signal, async () => {
      const { dropped, denied, allowed } = partedRights(grants, whose);
      if (allowed.length > 0 && !(await this.#isThere(bucket, signal))) return false;
      for (const right of [...dropped.map(uid => ({ uid, mode: undefined })), ...denied, ...allowed])
        if (!(await saysRights(this.#iam, bucket, right, signal))) return false;
      return true;
    });
  }

  signAccess(): undefined {}

  /** By listing, as far as the time goes. */
  measureBucket(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#calls.onBucket('inspect', name, signal, async () => {
      let bytes = 0n;
      let markers: { KeyMarker?: string; VersionIdMarker?: string } = {};
      for (;;) {
        const page = await this.#listed(name, markers, signal);
        if (!page) return undefined;
        for (const { Size } of page.Versions ?? []) bytes += BigInt(Size ?? 0);
        if (!page.IsTruncated) return bytes;
        markers = { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker };
      }
    });
  }

  async limitTenant(bytes: bigint | undefined): Promise<void> {
    if (bytes !== undefined) throw new StorageError('unimplemented', 'S3 has no limit for the buckets of a tenant');
  }

  async forgetTenant(): Promise<void> {}

  close(): void {
    this.#calls.close(() => this.#transport.close());
  }

  get #location(): string | undefined {
    return this.config.region === CLASSIC_REGION ? undefined : this.config.region;
  }

  get #iam(): Iam {
    return this.#clients.iam;
  }

  get #admin(): S3User {
    return this.#clients.admin;
  }

  get #clients(): { iam: Iam; admin: S3User } {
    if (!this.#opened) {
      const iam = new Iam(this.#transport, this.config, this.credentials);
      this.#opened = { iam, admin: new S3User(this.#transport, iam.identity) };
    }
    return this.#opened;
  }

  async #find(name: string, signal: AbortSignal): Promise<BucketInspection> {
    try {
      const tags = await readTags(this.#admin, name, signal);
      const appliance = tags.get(APPLIANCE_TAG);
      const incarnation = tags.get(INCARNATION_TAG);
      if (appliance === this.#appliance && incarnation !== undefined) return { state: 'ours', incarnation };
      if (appliance !== undefined) return { state: 'foreign', byTrivet: true, identity: undefined };
      return { state: 'untagged', empty: await isEmpty(this.#admin, name, signal), identity: undefined };
    } catch (error) {
      if (errorCode(error) === 'NoSuchBucket') return { state: 'absent' };
      if (errorCode(error) !== 'AccessDenied' || (await this.#isOpen(name, signal))) throw error;
      return { state: 'foreign', byTrivet: false, identity: undefined };
    }
  }

  /** A bucket of another account refuses everything; of one that does not, some right is missing. */
  async #isOpen(Bucket: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#admin.read(new HeadBucketCommand({ Bucket }), signal);
      return true;
    } catch (error) {
      if (httpStatus(error) === 403) return false;
      throw error;
    }
  }

  async #isThere({ name, incarnation }: GrantTarget, signal: AbortSignal): Promise<boolean> {
    const found = await this.#find(name, signal);
    return incarnation === undefined ? found.state !== 'absent' : isThis(found, incarnation);
  }

  async #requireFor({ name, incarnation }: GrantTarget, signal: AbortSignal): Promise<void> {
    const found = await this.#find(name, signal);
    if (found.state === 'absent') throw missing(name);
    if (incarnation === undefined || isThis(found, incarnation)) return;
    if (found.state === 'untagged') throw estranged(name, 'has lost its tags');
    throw missing(name);
  }

  async #listed(Bucket: string, markers: { KeyMarker?: string; VersionIdMarker?: string }, signal: AbortSignal) {
    try {
      return await this.#admin.read(new ListObjectVersionsCommand({ Bucket, ...markers }), signal);
    } catch (error) {
      if (errorCode(error) === 'NoSuchBucket') return undefined;
      throw error;
    }
  }
}

const isThis = (found: BucketInspection, incarnation: string): boolean =>
  found.state === 'ours' && found.incarnation === incarnation;
