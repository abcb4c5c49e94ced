import type { ObjectBackendKind, ObjectProtocol } from '#backends/object-backend';
import type { Caller } from '#operations/accepting/caller';
import { requireSuccess, type Submitted } from '#operations/accepting/operations';
import { invalid, StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { BucketFinder, CLAIM_BUCKETS, lockBucket, newBucket, readDesired } from '#storage/object/buckets/bucket-store';
import { createBucket } from '#storage/object/buckets/create-bucket';
import { type Removal, removeBucket } from '#storage/object/buckets/remove-bucket';
import { type EndpointCaller, type ObjectPlace, type PlacedCaller, requireServing } from '#storage/object/endpoint';
import type { ObjectDependencies } from '#storage/object/object-dependencies';
import type { BucketCalls, BucketRequest, BucketView } from '#storage/object/object-storage';
import { type DesiredBucket, desiredBucket, differences, fingerprint } from '#storage/shared/desired-state';

export class Buckets implements BucketCalls {
  private readonly finder: BucketFinder;

  constructor(private readonly parts: ObjectDependencies) {
    this.finder = new BucketFinder(parts.database);
  }

  idFor(caller: EndpointCaller, request: BucketRequest): string {
    this.desired(caller.endpoint, request);
    return request.name;
  }

  async create(caller: EndpointCaller, request: BucketRequest): Promise<Submitted<BucketView>> {
    const { endpoint } = caller;
    const desired = this.desired(endpoint, request);
    const print = fingerprint(desired);
    const found = await this.finder.find(endpoint, request.name);
    requireServing(found?.serves);
    if (
      found?.id &&
      found.state === 'ready' &&
      found.origin === 'created' &&
      found.activeOperation === null &&
      found.condition === null &&
      found.fingerprint.equals(print)
    )
      return { value: view(endpoint, request.name, desired.protocols) };
    return this.accept(caller, endpoint, request.name, desired, found?.id != null);
  }

  make(caller: PlacedCaller, request: BucketRequest): Promise<Submitted<BucketView>> {
    const { place } = caller;
    // Looked for first: what is only joined must not be told as made.
    return this.accept(caller, place, request.name, this.desired(place, request), true);
  }

  /** @param known it may live */
  private async accept(
    caller: Caller,
    place: ObjectPlace,
    name: string,
    desired: DesiredBucket,
    known: boolean,
  ): Promise<Submitted<BucketView>> {
    const print = fingerprint(desired);
    const resource = `bucket ${name}`;
    const id = uuidv7();
    const subject = { resourceId: id, resourceName: name, after: desired, request: { spec: { ...desired.spec } } };
    const make = () =>
      this.parts.operations.submitNew(caller, createBucket, subject, {
        claim: CLAIM_BUCKETS,
        row: operationId => newBucket(place, { id, name, desired, fingerprint: print, operationId }),
      });
    const join = () =>
      this.parts.operations.submit(caller, async tx => {
        const row = await lockBucket(tx, place, name);
        if (!row) return { value: 'gone' as const };
        if (row.state === 'deleting')
          throw new StorageError('aborted', `${resource} is being deleted; try again when it is gone`, { resource });
        if (row.origin === 'registered')
          throw new StorageError('already_exists', `${resource} was registered as an existing bucket`, { resource });
        if (!row.fingerprint.equals(print)) throw otherParameters(resource, differences(row.desired, desired));
        if (row.condition)
          throw new StorageError('failed_precondition', `${resource}: ${row.condition.message}`, { resource });
        return { value: undefined, join: row.activeOperation ?? undefined };
      });
    let submitted: Submitted<'gone' | undefined> | undefined = known ? await join() : undefined;
    // Claimed by another call in between, and gone again before we looked at it: once more is enough, or somebody plays.
    for (let attempt = 0; attempt < 2 && (!submitted || submitted.value === 'gone'); attempt++)
      submitted = (await make()) ?? (await join());
    if (!submitted || submitted.value === 'gone')
      throw new StorageError('aborted', `${resource} is made and deleted by others; try again`, { resource });
    requireSuccess(submitted.operation, resource);
    return { value: view(place, name, desired.protocols), operation: submitted.operation };
  }

  async get(caller: EndpointCaller, request: BucketRequest): Promise<BucketView> {
    const { endpoint } = caller;
    const kind = this.parts.kindOf(endpoint.backendKind);
    const protocols = supported(kind, request.protocols);
    const asked = Object.keys(request.parameters);
    // Whatever there is: what can never be must not look as if it were waited for.
    const wanted = desiredBucket(protocols, kind.parseBucketParameters(request.parameters));
    const resource = `bucket ${request.name}`;
    const found = await this.finder.find(endpoint, request.name);
    requireServing(found?.serves);
    if (!found?.id || found.state === 'deleting')
      throw new StorageError(
        'not_found',
        `${resource} is not known here: an existing bucket must be registered with \`trivet bucket import\` first`,
        { resource },
      );
    if (found.condition) throw new StorageError('not_found', `${resource}: ${found.condition.message}`, { resource });
    if (found.state === 'creating')
      throw new StorageError('aborted', `${resource} is still being created`, { resource });
    if (asked.length > 0 && found.origin === 'registered')
      throw new StorageError(
        'already_exists',
        `${resource} was registered as an existing bucket, which has no parameters here: leave out ${asked.map(asParameter).join(', ')}`,
        { resource },
      );
    if (asked.length > 0 && !found.fingerprint.equals(fingerprint(wanted))) {
      const desired = await readDesired(this.parts.database, endpoint, found.id);
      throw otherParameters(resource, differences(desired, wanted));
    }
    return view(endpoint, request.name, protocols);
  }

  async delete(caller: EndpointCaller, bucketId: string): Promise<Submitted<void>> {
    const found = await this.finder.find(caller.endpoint, bucketId);
    requireServing(found?.serves);
    return found?.id ? this.remove(caller, bucketId) : { value: undefined };
  }

  remove(caller: Caller, name: string, options?: Removal): Promise<Submitted<void>> {
    return removeBucket(this.parts.operations, caller, name, options);
  }

  private desired({ backendKind }: ObjectPlace, request: BucketRequest) {
    const kind = this.parts.kindOf(backendKind);
    kind.checkBucketName(request.name, 'name');
    return desiredBucket(supported(kind, request.protocols), kind.parseBucketParameters(request.parameters));
  }
}

const asParameter = (key: string): string => `parameters[${key}]`;

/** `places` of the desired state, told by the names that callers know: `spec.quotaMaxSize` came as a parameter. */
function otherParameters(resource: string, places: readonly string[]): StorageError {
  const fields = places.map(place => place.replace(/^spec\.(\w+).*/, (_, key: string) => asParameter(key)));
  const message = `${resource} exists with other parameters: ${[...new Set(fields)].join(', ')}`;
  return new StorageError('already_exists', message, { resource });
}

/** Empty asks for what the backend offers. */
export function supported(kind: ObjectBackendKind, protocols: readonly ObjectProtocol[]): readonly ObjectProtocol[] {
  const missing = protocols.find(protocol => !kind.protocols.includes(protocol));
  if (missing)
    throw invalid('protocols', `${missing} is not offered by this backend, which offers ${kind.protocols.join(', ')}`);
  return protocols.length > 0 ? protocols : kind.protocols;
}

export const view = (
  { accessPoint }: ObjectPlace,
  bucketId: string,
  protocols: readonly ObjectProtocol[],
): BucketView => ({
  bucketId,
  protocols,
  accessPoint,
});
