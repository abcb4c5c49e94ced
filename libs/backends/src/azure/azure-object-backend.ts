/**
 * Azure Blob behind the object port: a bucket is a container of one storage account.
 *
 * A container is made together with the metadata that say whose it is, so there is no moment in which ours could be taken
 * for somebody else's, and one without them is never ours. There are no users: an access is a stored access policy of its
 * container, or two while its signature is changed, and what its holder gets is a signature bound to one. So principals are
 * nothing here, and the end of its policies is the end of the access (ADR 47 and 63).
 */
import type { ContainerClient } from '@azure/storage-blob';
import type { AzureConfig, AzureCredentials } from '#backends/azure/azure-config';
import { type BlobService, openBlobService } from '#backends/azure/blob-service';
import { bytesOf, emptyPortion, isEmpty } from '#backends/azure/container-contents';
import { holdsPolicies, putPolicies } from '#backends/azure/container-policies';
import { diagnoseAccount } from '#backends/azure/diagnose';
import { type CallContext, errorCode, httpStatus, translate } from '#backends/azure/errors';
import { isInForce } from '#backends/azure/in-force';
import { signatureUrl } from '#backends/azure/signature';
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
  StoreTraits,
} from '#backends/object-backend';
import type { BackendCheck } from '#backends/registration';
import { applianceTag } from '#backends/s3/bucket-tags';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

export const AZURE_TRAITS: StoreTraits = { signs: true, late: true };

const APPLIANCE = 'trivet_appliance';
const INCARNATION = 'trivet_incarnation';

interface Found {
  inspection: BucketInspection;
  metadata: Readonly<Record<string, string>>;
  lastModified?: Date;
}

export class AzureObjectBackend implements ObjectBackend {
  readonly #appliance: string;
  #opened: BlobService | undefined;

  constructor(
    private readonly config: AzureConfig,
    private readonly credentials: AzureCredentials,
    identity: ApplianceIdentity,
  ) {
    this.#appliance = applianceTag(identity);
  }

  async health(signal: AbortSignal): Promise<void> {
    const context = { doing: 'check the object store', resource: 'object store', readOnly: true, signal };
    await this.#call(context, () => this.#service.client.getProperties({ abortSignal: signal }));
  }

  diagnose(signal: AbortSignal): Promise<BackendCheck[]> {
    return diagnoseAccount(this.#service.client, signal);
  }

  /** An account key opens all. */
  async tryRights(): Promise<BackendCheck[]> {
    return [];
  }

  inspectBucket(name: string, signal: AbortSignal): Promise<BucketInspection> {
    return this.#on('inspect', name, signal, async container => (await this.#find(container, signal)).inspection);
  }

  createBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#on('create', bucket.name, signal, async container => {
      try {
        await container.create({ metadata: this.#metadataOf(bucket, spec), abortSignal: signal });
      } catch (error) {
        if (errorCode(error) !== 'ContainerAlreadyExists') throw error;
        if (!isThis(await this.#find(container, signal), bucket)) throw error;
      }
    });
  }

  configureBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.#on('configure', bucket.name, signal, async container => {
      const found = await this.#find(container, signal);
      if (found.inspection.state === 'absent') throw missing(bucket.name);
      if (!isThis(found, bucket)) throw notThisOne(bucket.name);
      const wanted = this.#metadataOf(bucket, spec);
      if (!sameMetadata(found.metadata, wanted)) await container.setMetadata(wanted, { abortSignal: signal });
    });
  }

  emptyBucket(bucket: BucketRef, signal: LeaseSignal): Promise<{ done: boolean; removed: number }> {
    return this.#on('empty', bucket.name, signal, async container => {
      const found = await this.#find(container, signal);
      if (found.inspection.state === 'absent') return { done: true, removed: 0 };
      if (!isThis(found, bucket)) throw notThisOne(bucket.name);
      return emptyPortion(container, signal);
    });
  }

  isBucketEmpty(bucket: BucketRef, signal: AbortSignal): Promise<boolean> {
    return this.#on('inspect', bucket.name, signal, async container => {
      return !isThis(await this.#find(container, signal), bucket) || isEmpty(container, signal);
    });
  }

  /** The service deletes a container with all that it holds: whether that is nothing must be asked first. */
  deleteBucket(bucket: BucketRef, signal: LeaseSignal): Promise<'deleted' | 'absent' | 'not_empty' | 'foreign'> {
    return this.#on('delete', bucket.name, signal, async container => {
      const found = await this.#find(container, signal);
      if (found.inspection.state === 'absent') return 'absent';
      if (!isThis(found, bucket)) return 'foreign';
      if (!(await isEmpty(container, signal))) return 'not_empty';
      try {
        await container.delete({ abortSignal: signal, conditions: { ifUnmodifiedSince: found.lastModified } });
        return 'deleted';
      } catch (error) {
        if (isMissing(error)) return 'absent';
        if (errorCode(error) === 'ConditionNotMet')
          throw new StorageError('aborted', `bucket ${bucket.name} was changed while it was deleted; try again`, {
            resource: `bucket ${bucket.name}`,
          });
        throw error;
      }
    });
  }

  traits(): StoreTraits {
    return AZURE_TRAITS;
  }

  async issueKey(): Promise<never> {
    throw new StorageError('unimplemented', 'keys of this store are chosen');
  }

  /** A signature that was never told opens nothing. */
  isInForce({ token }: IssuedKey, expected: Expected, signal: LeaseSignal): Promise<boolean> {
    const context = { doing: 'ask as a grantee', resource: 'object store', readOnly: true, signal };
    return this.#call(context, async () => {
      if (token === undefined) return expected === 'no key' || expected.every(({ mode }) => mode === 'revoked');
      return isInForce(this.config.endpoint, token, expected, signal);
    });
  }

  async putPrincipal(): Promise<void> {}

  /** There is none, but what its holder was given must still be what this key signs. */
  async holdsPrincipal({ uid, token }: Principal): Promise<boolean> {
    if (token === undefined) return false;
    const { pathname, searchParams } = new URL(token);
    const signedAs = searchParams.get('si') ?? '';
    if (signedAs !== uid && !signedAs.startsWith(`${uid}-`)) return false;
    return this.signAccess(pathname.split('/').at(-1)!, signedAs) === token;
  }

  async removeKey(): Promise<void> {}

  async removePrincipal(): Promise<void> {}

  putGrants({ name, incarnation }: GrantTarget, grants: readonly Grant[], signal: LeaseSignal): Promise<void> {
    return this.#on('write the policies of', name, signal, async container => {
      if (incarnation !== undefined) {
        const found = await this.#find(container, signal);
        if (found.metadata[INCARNATION] === undefined && found.inspection.state !== 'absent') throw estranged(name);
        if (!isThis(found, { incarnation })) throw missing(name);
      }
      await putPolicies(container, grants, signal);
    });
  }

  holdsGrants({ name, incarnation }: GrantTarget, grants: readonly Grant[], signal: AbortSignal): Promise<boolean> {
    return this.#on('inspect', name, signal, async container => {
      if (incarnation !== undefined && !isThis(await this.#find(container, signal), { incarnation })) return false;
      try {
        return await holdsPolicies(container, grants, signal);
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    });
  }

  signAccess(name: string, signedAs: string): string {
    return signatureUrl(this.config, this.#service.key, name, signedAs);
  }

  measureBucket(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#on('inspect', name, signal, async container => {
      try {
        return await bytesOf(container, signal);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    });
  }

  async limitTenant(bytes: bigint | undefined): Promise<void> {
    if (bytes !== undefined)
      throw new StorageError('unimplemented', 'Azure Blob has no limit for the containers of a tenant');
  }

  async forgetTenant(): Promise<void> {}

  close(): void {
    // Its connections end by themselves when they are idle.
    this.#opened = undefined;
  }

  get #service(): BlobService {
    this.#opened ??= openBlobService(this.config, this.credentials);
    return this.#opened;
  }

  #metadataOf({ incarnation }: BucketRef, { tags }: BucketSpec): Record<string, string> {
    return { ...tags, [APPLIANCE]: this.#appliance, [INCARNATION]: incarnation };
  }

  async #find(container: ContainerClient, signal: AbortSignal): Promise<Found> {
    try {
      const { metadata = {}, lastModified } = await container.getProperties({ abortSignal: signal });
      const { [APPLIANCE]: appliance, [INCARNATION]: incarnation } = metadata;
      const inspection: BucketInspection =
        appliance === this.#appliance && incarnation !== undefined
          ? { state: 'ours', incarnation }
          : { state: 'foreign', byTrivet: appliance !== undefined, identity: undefined };
      return { inspection, metadata, lastModified };
    } catch (error) {
      if (isMissing(error)) return { inspection: { state: 'absent' }, metadata: {} };
      throw error;
    }
  }

  #on<T>(
    verb: string,
    name: string,
    signal: AbortSignal,
    work: (container: ContainerClient) => Promise<T>,
  ): Promise<T> {
    const context = {
      doing: `${verb} bucket ${name}`,
      resource: `bucket ${name}`,
      readOnly: verb === 'inspect',
      signal,
    };
    return this.#call(context, () => work(this.#service.client.getContainerClient(name)));
  }

  async #call<T>(context: CallContext, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw translate(error, context);
    }
  }
}

const isThis = ({ inspection }: Found, { incarnation }: Pick<BucketRef, 'incarnation'>): boolean =>
  inspection.state === 'ours' && inspection.incarnation === incarnation;

/** An answer to HEAD has no body that could say more. */
const isMissing = (error: unknown): boolean => errorCode(error) === 'ContainerNotFound' || httpStatus(error) === 404;

function sameMetadata(left: Readonly<Record<string, string>>, right: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(right);
  return Object.keys(left).length === keys.length && keys.every(key => left[key] === right[key]);
}

const missing = (name: string): StorageError =>
  new StorageError('not_found', `bucket ${name} does not exist`, { resource: `bucket ${name}` });
const notThisOne = (name: string): StorageError =>
  new StorageError('failed_precondition', `bucket ${name} is not the one that Trivet made`, {
    resource: `bucket ${name}`,
  });
/** It must not pass for gone: a revocation would leave its policies in force. */
const estranged = (name: string): StorageError =>
  new StorageError(
    'failed_precondition',
    `the container of bucket ${name} has no metadata that say whose it is; if it is the one that Trivet made, restore ${APPLIANCE} and ${INCARNATION}, then retry`,
    { resource: `bucket ${name}` },
  );
