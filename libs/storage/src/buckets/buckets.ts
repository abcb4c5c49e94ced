import type { ObjectBackendKind, ObjectProtocol } from '#backends/object-backend';
import { type Operations, type Submitted, throwUnlessSucceeded } from '#operations/operations';
import type { Database } from '#platform/database';
import { invalid, StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { hasLaterGrants, leaveBucket, lockHolders } from '#storage/accesses/access-store';
import { createBucket, deleteBucket, releaseBucket } from '#storage/buckets/bucket-operations';
import {
  BucketFinder,
  CLAIM_BUCKETS,
  lockBucket,
  newBucket,
  readDesired,
  setBucketState,
} from '#storage/buckets/bucket-store';
import { type Caller, type Endpoint, type ObjectCaller, objectCaller, patience, requireServing } from '#storage/caller';
import { desiredBucket, differences, fingerprint } from '#storage/desired-state';
import type { BucketRequest, BucketView } from '#storage/object-storage';
import { noted } from '#storage/witness';

/** The incarnation that is to be removed once more after what was joined. */
type Again = string | undefined;

export class Buckets {
  private readonly finder: BucketFinder;

  constructor(
    private readonly database: Database,
    private readonly operations: Operations,
    private readonly kindOf: (endpoint: Endpoint) => ObjectBackendKind,
    private readonly waitMs: number,
  ) {
    this.finder = new BucketFinder(database);
  }

  idFor(caller: Caller, request: BucketRequest): string {
    this.desired(caller, request);
    return request.name;
  }

  async create(caller: Caller, request: BucketRequest): Promise<BucketView> {
    const { endpoint } = caller;
    const desired = this.desired(caller, request);
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
      return view(endpoint, request.name, desired.protocols);

    const resource = `bucket ${request.name}`;
    const operationId = uuidv7();
    const id = uuidv7();
    const wait = patience(caller, this.waitMs);
    const subject = { resourceId: id, resourceName: request.name };
    const { tenantId, backendId } = endpoint;
    const { traceparent, actor, witness } = caller;
    const audit = noted(witness, { kind: createBucket.kind, ...subject, after: desired });
    const create = {
      claim: CLAIM_BUCKETS,
      row: newBucket(endpoint, { id, name: request.name, desired, fingerprint: print, operationId }),
      operation: createBucket.asked(
        { ...subject, request: { spec: { ...desired.spec } } },
        { id: operationId, tenantId, backendId, traceparent, actor, audit },
      ),
    };
    const join = () =>
      this.operations.submit(endpoint.tenantId, operationId, wait, async tx => {
        const row = await lockBucket(tx, endpoint, request.name);
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
    let submitted: Submitted<'gone' | undefined> | undefined = found?.id ? await join() : undefined;
    // Claimed by another call in between, and gone again before we looked at it: once more is enough, or somebody plays.
    for (let attempt = 0; attempt < 2 && (!submitted || submitted.value === 'gone'); attempt++)
      submitted = (await this.operations.submitNew(create, wait)) ?? (await join());
    if (!submitted || submitted.value === 'gone')
      throw new StorageError('aborted', `${resource} is made and deleted by others; try again`, { resource });
    caller.operationId = submitted.operationId;
    if (submitted.outcome) throwUnlessSucceeded(submitted.outcome, submitted.operationId!, resource);
    return view(endpoint, request.name, desired.protocols);
  }

  async get(caller: Caller, request: BucketRequest): Promise<BucketView> {
    const { endpoint } = caller;
    const kind = this.kindOf(endpoint);
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
      const desired = await readDesired(this.database, endpoint, found.id);
      throw otherParameters(resource, differences(desired, wanted));
    }
    return view(endpoint, request.name, protocols);
  }

  async delete(caller: Caller, bucketId: string): Promise<void> {
    const { endpoint } = caller;
    const found = await this.finder.find(endpoint, bucketId);
    requireServing(found?.serves);
    if (!found?.id) return;
    const remover = objectCaller(caller, this.waitMs);
    await this.remove(remover, bucketId).finally(() => {
      caller.operationId = remover.operationId;
    });
  }

  /**
   * By its name; `incarnation`: only that one. None: nothing to do. `forget`: a registered one is not registered any more
   * afterwards; else only our grants leave it.
   */
  async remove(
    caller: ObjectCaller,
    name: string,
    { incarnation, forget = false }: { incarnation?: string; forget?: boolean } = {},
  ): Promise<void> {
    const { tenantId, backendId, traceparent, actor, witness } = caller;
    const resource = `bucket ${name}`;
    const operationId = uuidv7();
    const wait = { until: caller.deadline, signal: caller.signal };
    const submitted = await this.operations.submit<Again>(tenantId, operationId, wait, async (tx, begin) => {
      await lockHolders(tx, caller, name);
      await witness?.before?.(tx);
      const row = await lockBucket(tx, caller, name);
      if (!row || (incarnation !== undefined && row.id !== incarnation)) return { value: undefined };
      if (row.state === 'deleting') return { value: undefined, join: row.activeOperation ?? undefined };
      const registered = row.origin === 'registered';
      if (registered && row.activeOperation) {
        // It takes what was there when it was accepted, and may have read already what stays.
        const again = forget || (await hasLaterGrants(tx, tenantId, row.id));
        return { value: again ? row.id : undefined, join: row.activeOperation };
      }
      const stays = registered && !forget;
      if (registered) await leaveBucket(tx, tenantId, row.id, 'all');
      await setBucketState(tx, caller, row.id, stays ? 'ready' : 'deleting', operationId);
      const { deletePolicy } = row.desired.spec;
      const subject = { resourceId: row.id, resourceName: name };
      const { kind } = registered ? releaseBucket : deleteBucket;
      const audit = noted(witness, { kind, ...subject, operationId });
      const origin = { id: operationId, tenantId, backendId, traceparent, actor, audit };
      const request = { deletePolicy, wasReady: row.state === 'ready' };
      await begin(
        registered
          ? releaseBucket.asked({ ...subject, request: { ...request, marked: true, forget } }, origin)
          : deleteBucket.asked({ ...subject, request, class: deletePolicy === 'purge' ? 'destroy' : 'fast' }, origin),
      );
      return { value: undefined };
    });
    caller.operationId = submitted.operationId;
    // What is not done with the joined one has not been accepted.
    caller.outcome = submitted.value ? undefined : submitted.outcome;
    if (submitted.outcome) throwUnlessSucceeded(submitted.outcome, submitted.operationId!, resource);
    if (submitted.value) await this.remove(caller, name, { incarnation: submitted.value, forget });
  }

  private desired({ endpoint }: Caller, request: BucketRequest) {
    const kind = this.kindOf(endpoint);
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

export const view = (endpoint: Endpoint, bucketId: string, protocols: readonly ObjectProtocol[]): BucketView => ({
  bucketId,
  protocols,
  accessPoint: endpoint.accessPoint,
});
