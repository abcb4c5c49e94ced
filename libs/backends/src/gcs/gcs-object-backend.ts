/**
 * Google Cloud Storage behind the object port (ADR 59).
 *
 * A bucket has its labels, which say whose it is, from its first moment. An access is a service account with an HMAC key, which
 * Google makes and shows once, or that a service account of a cluster comes in as; its rights are bindings of ours in the bucket's
 * IAM policy. Google answers a change before it holds everywhere, so grant and revocation ask as the holder of a key, over the XML
 * API, until it does.
 */

import { z } from 'zod';
import { bytesOf, emptyPortion, isEmpty } from '#backends/gcs/bucket-contents';
import {
  bucketDocument,
  type GcsBucket,
  identityOf,
  inspectionOf,
  isUnlabelled,
  mendingOf,
  newBucket,
  ownerDigest,
} from '#backends/gcs/bucket-document';
import { type Ours, POLICY_VERSION, policyDocument, policyWith, titleOf } from '#backends/gcs/bucket-policy';
import { diagnoseGcs, listOf } from '#backends/gcs/diagnose';
import { GcsApi, isConflict, isMissing, pathOf } from '#backends/gcs/gcs-api';
import type { GcsConfig, GcsCredentials } from '#backends/gcs/gcs-config';
import { GCS_WORDS } from '#backends/gcs/gcs-words';
import { GoogleAuth } from '#backends/gcs/google-auth';
import { ServiceAccounts } from '#backends/gcs/service-accounts';
import {
  type ApplianceIdentity,
  type BucketInspection,
  type BucketRef,
  type BucketSpec,
  type Expected,
  type Grant,
  type GrantTarget,
  type IssuedKey,
  type ObjectBackend,
  type Principal,
  type PrincipalRef,
  ReplacedBucket,
  type StoreTraits,
} from '#backends/object-backend';
import type { BackendCheck } from '#backends/registration';
import { errorCode, httpStatus } from '#backends/s3/errors';
import { isInForce, type KeyProbe } from '#backends/s3/in-force';
import { estranged, missing, notThisOne } from '#backends/s3/ownership';
import { StoreCalls } from '#backends/s3/store-calls';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

export const GCS_TRAITS: StoreTraits = { issuesKeys: true, late: true };

const anything = z.looseObject({});

export class GcsObjectBackend implements ObjectBackend {
  readonly #api: GcsApi;
  readonly #accounts: ServiceAccounts;
  readonly #digest: string;
  readonly #probe: KeyProbe;
  readonly #calls = new StoreCalls(GCS_WORDS);

  constructor(
    private readonly config: GcsConfig,
    credentials: GcsCredentials,
    identity: ApplianceIdentity,
  ) {
    this.#digest = ownerDigest(identity);
    this.#api = new GcsApi(config, new GoogleAuth(credentials, config.project));
    this.#accounts = new ServiceAccounts(this.#api, config, this.#digest);
    // Who asks for all buckets must name a project. Of a key that is none, several codes are known.
    this.#probe = {
      unknown: new Set(['InvalidAccessKeyId', 'InvalidSecurity', 'SignatureDoesNotMatch']),
      bucket: `trivet-probe-${this.#digest}`,
    };
  }

  traits(): StoreTraits {
    return GCS_TRAITS;
  }

  async health(signal: AbortSignal): Promise<void> {
    const context = { doing: 'check the object store', resource: 'object store', readOnly: true, signal };
    await this.#calls.run(context, () => this.#api.read(anything, listOf(this.config.project), signal));
  }

  diagnose(signal: AbortSignal): Promise<BackendCheck[]> {
    return this.#calls.count(() => diagnoseGcs(this.#api, this.config, signal));
  }

  /** Google tells which there are: `diagnose` asks. */
  async tryRights(): Promise<BackendCheck[]> {
    return [];
  }

  inspectBucket(name: string, signal: AbortSignal): Promise<BucketInspection> {
    return this.#calls.onBucket('inspect', name, signal, async () => {
      try {
        const found = await this.#find(name, signal);
        return found ? inspectionOf(found, this.#digest) : { state: 'absent' };
      } catch (error) {
        // Of another project: it answers nobody of this one.
        if (httpStatus(error) !== 403 || !(await this.#mayLook(signal))) throw error;
        return { state: 'foreign', byTrivet: false, identity: undefined };
      }
    });
  }

  createBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    const { name } = bucket;
    return this.#calls.onBucket('create', name, signal, async () => {
      const body = newBucket(this.config, this.#digest, bucket, spec);
      try {
        const query = { project: this.config.project };
        await this.#api.change('POST', 'buckets.create', { place: 'storage', path: pathOf('b'), query, body }, signal);
      } catch (error) {
        if (!isConflict(error)) throw error;
        // Ours, of an attempt whose answer was lost: its labels say so.
        const found = await this.#find(name, signal).catch(unlessElsewhere);
        if (found && this.#isThis(found, bucket)) return;
        throw new StorageError('already_exists', `bucket ${name} exists already, in this project or another`, {
          resource: `bucket ${name}`,
        });
      }
    });
  }

  configureBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#calls.onBucket('configure', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (!found) throw missing(bucket.name);
      if (!this.#isThis(found, bucket)) throw notThisOne(bucket.name);
      const body = mendingOf(found, this.#digest, bucket, spec);
      if (body) await this.#api.change('PATCH', 'buckets.patch', { ...this.#asFound(found), body }, signal);
    });
  }

  emptyBucket(bucket: BucketRef, signal: LeaseSignal): Promise<{ done: boolean; removed: number }> {
    return this.#calls.onBucket('empty', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (!found) return { done: true, removed: 0 };
      if (!this.#isThis(found, bucket)) throw notThisOne(bucket.name);
      return emptyPortion(this.#api, bucket.name, signal);
    });
  }

  isBucketEmpty(bucket: BucketRef, signal: AbortSignal): Promise<boolean> {
    return this.#calls.onBucket('inspect', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      return !found || !this.#isThis(found, bucket) || isEmpty(this.#api, bucket.name, signal);
    });
  }

  /** Uploads that were begun are not asked for by the store, so they are here. */
  deleteBucket(bucket: BucketRef, signal: LeaseSignal): Promise<'deleted' | 'absent' | 'not_empty' | 'foreign'> {
    return this.#calls.onBucket('delete', bucket.name, signal, async () => {
      const found = await this.#find(bucket.name, signal);
      if (!found) return 'absent';
      if (!this.#isThis(found, bucket)) return 'foreign';
      if (!(await isEmpty(this.#api, bucket.name, signal))) return 'not_empty';
      try {
        await this.#api.change('DELETE', 'buckets.delete', this.#asFound(found), signal);
        return 'deleted';
      } catch (error) {
        if (isMissing(error)) return 'absent';
        if (errorCode(error) === 'BucketNotEmpty') return 'not_empty';
        throw error;
      }
    });
  }

  putPrincipal(principal: Principal, signal: LeaseSignal): Promise<void> {
    return this.#calls.onPrincipal('make', principal.uid, signal, () => this.#accounts.put(principal, signal));
  }

  holdsPrincipal(principal: Principal, signal: AbortSignal): Promise<boolean> {
    return this.#calls.onPrincipal('inspect', principal.uid, signal, () => this.#accounts.holds(principal, signal));
  }

  issueKey(uid: string, signal: LeaseSignal, staying?: string): Promise<IssuedKey> {
    return this.#calls.onPrincipal('issue a key of', uid, signal, () => this.#accounts.issueKey(uid, signal, staying));
  }

  isInForce(key: IssuedKey, expected: Expected, signal: LeaseSignal): Promise<boolean> {
    const context = { doing: 'ask as a grantee', resource: 'object store', readOnly: true, signal };
    return this.#calls.run(context, () => isInForce(this.#api.transport, key, expected, signal, this.#probe));
  }

  removeKey({ uid }: PrincipalRef, signal: LeaseSignal): Promise<void> {
    return this.#calls.onPrincipal('remove the key of', uid, signal, () => this.#accounts.removeKeys(uid, signal));
  }

  removePrincipal(uid: string, signal: LeaseSignal): Promise<void> {
    return this.#calls.onPrincipal('remove', uid, signal, () => this.#accounts.remove(uid, signal));
  }

  putGrants(target: GrantTarget, grants: readonly Grant[], signal: LeaseSignal): Promise<void> {
    const { name } = target;
    return this.#calls.onBucket('write the rights on', name, signal, async () => {
      const found = await this.#find(name, signal);
      if (!found) throw missing(name);
      if (isReplaced(found, target)) throw new ReplacedBucket(name);
      if (target.incarnation !== undefined && !this.#isThis(found, { incarnation: target.incarnation })) {
        if (isUnlabelled(found)) throw estranged(name, 'has lost its labels');
        throw missing(name);
      }
      const next = policyWith(await this.#policyOf(name, signal), this.#oursAt(name), grants);
      if (next)
        await this.#api.change(
          'PUT',
          'buckets.setIamPolicy',
          { place: 'storage', path: pathOf('b', name, 'iam'), body: next },
          signal,
        );
    });
  }

  holdsGrants(target: GrantTarget, grants: readonly Grant[], signal: AbortSignal): Promise<boolean> {
    const { name, incarnation } = target;
    return this.#calls.onBucket('inspect', name, signal, async () => {
      const found = await this.#find(name, signal);
      if (!found || isReplaced(found, target)) return false;
      if (incarnation !== undefined && !this.#isThis(found, { incarnation })) return false;
      return policyWith(await this.#policyOf(name, signal), this.#oursAt(name), grants) === undefined;
    });
  }

  signAccess(): undefined {}

  measureBucket(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#calls.onBucket('inspect', name, signal, async () => {
      try {
        return await bytesOf(this.#api, name, signal);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    });
  }

  async limitTenant(bytes: bigint | undefined): Promise<void> {
    if (bytes !== undefined)
      throw new StorageError('unimplemented', 'Google Cloud Storage has no limit for the buckets of a tenant');
  }

  async forgetTenant(): Promise<void> {}

  close(): void {
    this.#calls.close(() => this.#api.close());
  }

  #find(name: string, signal: AbortSignal): Promise<GcsBucket | undefined> {
    return this.#api.find(bucketDocument, { place: 'storage', path: pathOf('b', name) }, signal);
  }

  /** Whether it is the bucket that refuses us, and not the project. */
  async #mayLook(signal: AbortSignal): Promise<boolean> {
    await this.#api.read(anything, listOf(this.config.project), signal);
    return true;
  }

  #policyOf(name: string, signal: AbortSignal) {
    const query = { optionsRequestedPolicyVersion: String(POLICY_VERSION) };
    return this.#api.read(policyDocument, { place: 'storage', path: pathOf('b', name, 'iam'), query }, signal);
  }

  #oursAt(bucketName: string): Ours {
    return { bucketName, title: titleOf(this.#digest), emailOf: this.#accounts.emailOf };
  }

  #isThis(found: GcsBucket, { incarnation }: Pick<BucketRef, 'incarnation'>): boolean {
    const inspection = inspectionOf(found, this.#digest);
    return inspection.state === 'ours' && inspection.incarnation === incarnation;
  }

  /** Nobody changed it since. */
  #asFound({ name, metageneration }: GcsBucket) {
    return { place: 'storage', path: pathOf('b', name), query: { ifMetagenerationMatch: metageneration } } as const;
  }
}

/** Of another project it says nothing. */
function unlessElsewhere(error: unknown): undefined {
  if (httpStatus(error) !== 403) throw error;
}

const isReplaced = (found: GcsBucket, { identity }: GrantTarget): boolean =>
  identity !== undefined && identity !== identityOf(found);
