import { randomBytes, randomUUID } from 'node:crypto';
import type { AccessMode, BucketSpec } from '#backends/object-backend';
import type { Waited } from '#operations/accepting/operations';
import { invalid, StorageError } from '#platform/errors';
import { otherRequest } from '#storage/object/accesses/access-refusals';
import type { EndpointCaller } from '#storage/object/endpoint';
import type {
  AccessView,
  BucketRequest,
  BucketView,
  GrantRequest,
  ObjectStorage,
} from '#storage/object/object-storage';
import { accessDifferences, type DesiredAccess, desiredAccess, fingerprint } from '#storage/shared/desired-state';

interface Bucket {
  made: 'ours' | 'foreign' | 'registered';
  spec: string;
  deletePolicy: BucketSpec['deletePolicy'];
  objects: number;
}

interface Access {
  id: string;
  desired: DesiredAccess;
  modes: Map<string, AccessMode>;
  credentials: AccessView['credentials'];
}

const FLAGS = ['versioning', 'objectLock'];
const NUMBERS = ['quotaMaxSize', 'quotaMaxObjects'];
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** The domain and its store in a few maps: the meaning of each method, with nothing durable and nothing running. */
export class MemoryObjectStorage {
  readonly storage: ObjectStorage = {
    buckets: {
      create: async (...given) => ({ value: await this.createBucket(...given), operation: this.operation }),
      make: () => Promise.reject(new Error('for administrators')),
      get: (...given) => this.getBucket(...given),
      idFor: (...given) => this.bucketIdFor(...given),
      delete: async (...given) => ({ value: await this.deleteBucket(...given), operation: this.operation }),
      remove: () => Promise.reject(new Error('for administrators')),
    },
    accesses: {
      grant: async (...given) => ({ value: await this.grantAccess(...given), operation: this.operation }),
      issue: () => Promise.reject(new Error('for administrators')),
      reveal: () => Promise.reject(new Error('for administrators')),
      revoke: async (...given) => ({ value: await this.revokeAccess(...given), operation: this.operation }),
      remove: () => Promise.reject(new Error('for administrators')),
      rotate: () => Promise.reject(new Error('for administrators')),
    },
  };
  readonly buckets = new Map<string, Bucket>();
  readonly accesses = new Map<string, Access>();
  down = false;
  /** What each change says that it waited for. */
  operation: Waited | undefined;
  /** Runs before each method, e.g. to hold it or to throw. */
  before: (method: string, caller: EndpointCaller) => Promise<void> | void = () => {};

  async createBucket(caller: EndpointCaller, request: BucketRequest): Promise<BucketView> {
    await this.before('createBucket', caller);
    const { spec, deletePolicy } = this.parse(request);
    const found = this.buckets.get(request.name);
    if (found && found.made !== 'ours')
      throw new StorageError('already_exists', `bucket ${request.name} has another owner`);
    if (found && found.spec !== spec) throw otherParameters(request.name, found.spec, spec);
    if (!found) {
      this.reach();
      this.buckets.set(request.name, { made: 'ours', spec, deletePolicy, objects: 0 });
    }
    return this.view(caller, request.name);
  }

  async getBucket(caller: EndpointCaller, request: BucketRequest): Promise<BucketView> {
    await this.before('getBucket', caller);
    const asked = Object.keys(request.parameters).length > 0;
    const wanted = asked ? this.parse(request).spec : '';
    const { spec } = this.known(request.name);
    if (asked && wanted !== spec) throw otherParameters(request.name, spec, wanted);
    return this.view(caller, request.name);
  }

  bucketIdFor(_caller: EndpointCaller, request: BucketRequest): string {
    this.parse(request);
    return request.name;
  }

  async deleteBucket(caller: EndpointCaller, bucketId: string): Promise<void> {
    await this.before('deleteBucket', caller);
    const found = this.buckets.get(bucketId);
    if (found?.made !== 'ours') return;
    this.reach();
    if (found.objects > 0 && found.deletePolicy === 'retain') {
      throw new StorageError('failed_precondition', `bucket ${bucketId} holds objects; empty it first`);
    }
    this.buckets.delete(bucketId);
  }

  async grantAccess(caller: EndpointCaller, request: GrantRequest): Promise<AccessView> {
    await this.before('grantAccess', caller);
    const desired = desiredAccess(request.protocol, request.buckets);
    let access = this.accesses.get(request.name);
    if (access && !fingerprint(access.desired).equals(fingerprint(desired))) {
      throw otherRequest(`access ${request.name}`, accessDifferences(access.desired, desired), request.fields);
    }
    if (!access) {
      for (const { bucketId } of request.buckets) this.known(bucketId);
      this.reach();
      access = {
        id: `trivet-${randomUUID()}`,
        desired,
        modes: new Map(request.buckets.map(({ bucketId, mode }) => [bucketId, mode])),
        credentials: { accessKeyId: randomBytes(10).toString('hex'), secretAccessKey: randomBytes(20).toString('hex') },
      };
      this.accesses.set(request.name, access);
    }
    const buckets = request.buckets.map(({ bucketId }) => this.view(caller, bucketId));
    return { accountId: access.id, buckets, credentials: access.credentials };
  }

  async revokeAccess(caller: EndpointCaller, accountId: string, bucketIds?: readonly string[]): Promise<void> {
    await this.before('revokeAccess', caller);
    const entry = [...this.accesses].find(([, access]) => access.id === accountId);
    if (!entry) return;
    this.reach();
    const [name, access] = entry;
    for (const id of bucketIds ?? [...access.modes.keys()]) access.modes.delete(id);
    if (access.modes.size === 0) this.accesses.delete(name);
  }

  private reach(): void {
    if (this.down) throw new StorageError('unavailable', 'the store does not answer');
  }

  private known(bucketId: string): Bucket {
    const found = this.buckets.get(bucketId);
    if (!found || found.made === 'foreign') throw new StorageError('not_found', `there is no bucket ${bucketId}`);
    return found;
  }

  private view({ endpoint }: EndpointCaller, bucketId: string): BucketView {
    return { bucketId, protocols: endpoint.protocols, accessPoint: endpoint.accessPoint };
  }

  private parse({ name, parameters }: BucketRequest): { spec: string; deletePolicy: BucketSpec['deletePolicy'] } {
    if (name.length < 3 || name.length > 63 || !NAME.test(name)) throw invalid('name', 'no bucket of a store');
    for (const [key, value] of Object.entries(parameters)) {
      const field = `parameters[${key}]`;
      if (FLAGS.includes(key)) {
        if (value !== 'true' && value !== 'false') throw invalid(field, 'must be true or false');
      } else if (NUMBERS.includes(key)) {
        if (!/^[1-9]\d{0,15}$/.test(value)) throw invalid(field, 'must be a positive number');
      } else if (key === 'deletePolicy') {
        if (value !== 'retain' && value !== 'purge') throw invalid(field, 'must be retain or purge');
      } else {
        throw invalid(field, 'unknown parameter');
      }
    }
    const deletePolicy = parameters.deletePolicy === 'purge' ? 'purge' : 'retain';
    const given = { versioning: 'false', objectLock: 'false', ...parameters, deletePolicy };
    return { spec: JSON.stringify(Object.entries(given).sort()), deletePolicy };
  }
}

function otherParameters(name: string, spec: string, wanted: string): StorageError {
  const [is, asked] = [spec, wanted].map(text => new Map<string, string>(text === '' ? [] : JSON.parse(text)));
  const fields = [...asked!].filter(([key, value]) => is!.get(key) !== value).map(([key]) => `parameters[${key}]`);
  return new StorageError('already_exists', `bucket ${name} exists with other parameters: ${fields.join(', ')}`);
}
