import { randomBytes, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

/** An object of any kind. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  [field: string]: unknown;
}

export interface Metadata {
  name: string;
  namespace?: string;
  generateName?: string;
  uid: string;
  resourceVersion: string;
  generation: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: { uid: string; kind: string; name: string; apiVersion: string }[];
}

export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: unknown;
}

/** As an API server answers it. */
export class StatusError extends Error {
  constructor(
    readonly code: number,
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }

  get body() {
    const { code, reason, message } = this;
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
  }
}

export const gone = (): StatusError => new StatusError(410, 'Expired', 'too old resource version');

interface Change extends WatchEvent {
  version: number;
  object: KubeObject;
}

const UNVERSIONED = { resourceVersion: '', generation: 0 };
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
/** Of a name that the server makes. */
const MAX_PREFIX = 58;
/** As etcd keeps what was, for a while. */
const HISTORY = 2_000;

/** What etcd is to an API server: objects of all resources, each change with the next version, and a history that ends. */
export class StoredObjects {
  private readonly objects = new Map<string, Map<string, KubeObject>>();
  private readonly history = new Map<string, Change[]>();
  private readonly floors = new Map<string, number>();
  private readonly watchers = new Map<string, Set<(change: Change) => void>>();
  private last = 1_000;
  /** Of the API server's clock. */
  aheadMs = 0;

  now(): Date {
    return new Date(Date.now() + this.aheadMs);
  }

  get version(): number {
    return this.last;
  }

  of(resource: string): Map<string, KubeObject> {
    const found = this.objects.get(resource) ?? new Map<string, KubeObject>();
    this.objects.set(resource, found);
    return found;
  }

  get(resource: string, key: string): KubeObject {
    const found = this.of(resource).get(key);
    if (!found) throw new StatusError(404, 'NotFound', `${resource} "${key.split('/').pop()}" not found`);
    return structuredClone(found);
  }

  create(resource: string, namespace: string | undefined, given: KubeObject): KubeObject {
    const { generateName } = given.metadata;
    const random = () => Array.from(randomBytes(5), byte => LETTERS[byte % LETTERS.length]).join('');
    const name = given.metadata.name || (generateName ? `${generateName.slice(0, MAX_PREFIX)}${random()}` : '');
    // Of events the API server checks it as a name of its own.
    if (generateName && resource.startsWith('events.') && !NAME.test(generateName))
      throw new StatusError(422, 'Invalid', `metadata.generateName: Invalid value: "${generateName.slice(0, 300)}"`);
    if (!NAME.test(name) || name.length > 253)
      throw new StatusError(422, 'Invalid', `metadata.name: Invalid value: "${name.slice(0, 300)}"`);
    const key = keyOf(namespace, name);
    if (this.of(resource).has(key)) throw new StatusError(409, 'AlreadyExists', `${resource} "${name}" already exists`);
    const now = this.now()
      .toISOString()
      .replace(/\.\d+Z$/, 'Z');
    const metadata = { ...given.metadata, name, uid: randomUUID(), generation: 1, creationTimestamp: now };
    return this.write(resource, key, 'ADDED', {
      ...given,
      metadata: { ...metadata, ...(namespace ? { namespace } : {}), resourceVersion: '' },
    });
  }

  /** 409 when somebody else has changed it; without finalizers one that is being deleted goes. */
  replace(resource: string, key: string, given: KubeObject): KubeObject {
    const before = this.get(resource, key);
    const { resourceVersion, uid } = given.metadata;
    if (
      (resourceVersion && resourceVersion !== before.metadata.resourceVersion) ||
      (uid && uid !== before.metadata.uid)
    )
      throw new StatusError(
        409,
        'Conflict',
        'the object has been modified; please apply your changes to the latest version',
      );
    const { uid: ownUid, creationTimestamp, deletionTimestamp, namespace, name } = before.metadata;
    const kept = { uid: ownUid, creationTimestamp, name, ...(namespace ? { namespace } : {}) };
    const metadata = { ...given.metadata, ...kept, ...(deletionTimestamp ? { deletionTimestamp } : {}) };
    const next = { ...given, metadata };
    if (deletionTimestamp && !metadata.finalizers?.length) return this.remove(resource, key, next);
    // What changes nothing is no change, as an API server has it.
    const unversioned = (object: KubeObject) => ({ ...object, metadata: { ...object.metadata, ...UNVERSIONED } });
    if (isDeepStrictEqual(unversioned(next), unversioned(before))) return before;
    return this.write(resource, key, 'MODIFIED', next);
  }

  delete(resource: string, key: string, preconditions: { uid?: string; resourceVersion?: string } = {}): KubeObject {
    const found = this.get(resource, key);
    const { uid, resourceVersion, finalizers } = found.metadata;
    if ((preconditions.uid ?? uid) !== uid || (preconditions.resourceVersion ?? resourceVersion) !== resourceVersion)
      throw new StatusError(409, 'Conflict', 'Precondition failed');
    if (!finalizers?.length) return this.remove(resource, key, found);
    if (found.metadata.deletionTimestamp) return found;
    const deletionTimestamp = this.now().toISOString();
    return this.write(resource, key, 'MODIFIED', { ...found, metadata: { ...found.metadata, deletionTimestamp } });
  }

  /** From a version on; 410 when that is too long ago. Gives what ends it. */
  watch(resource: string, from: number, tell: (change: Change) => void): () => void {
    if (from < (this.floors.get(resource) ?? 0)) throw gone();
    for (const change of this.history.get(resource) ?? []) if (change.version > from) tell(change);
    const watchers = this.watchers.get(resource) ?? new Set();
    this.watchers.set(resource, watchers);
    watchers.add(tell);
    return () => watchers.delete(tell);
  }

  /** Nobody may begin a watch from before now. */
  compact(resource: string): void {
    this.floors.set(resource, this.last + 1);
    this.last++;
    this.history.delete(resource);
  }

  private remove(resource: string, key: string, found: KubeObject): KubeObject {
    this.of(resource).delete(key);
    const gone = this.note(resource, 'DELETED', found);
    this.collect(found.metadata);
    return gone;
  }

  /** What only this object owned, in its namespace, goes with it. */
  private collect({ uid, namespace }: Metadata): void {
    for (const [resource, objects] of this.objects)
      for (const [key, { metadata }] of objects)
        if (metadata.ownerReferences?.every(owner => owner.uid === uid) && metadata.ownerReferences.length > 0)
          if (namespace === undefined || metadata.namespace === namespace) this.delete(resource, key);
  }

  private write(resource: string, key: string, type: 'ADDED' | 'MODIFIED', object: KubeObject): KubeObject {
    const before = this.of(resource).get(key);
    const isSpecSame = before && JSON.stringify(before.spec) === JSON.stringify(object.spec);
    const generation = (before?.metadata.generation ?? 0) + (isSpecSame ? 0 : 1);
    const next = { ...object, metadata: { ...object.metadata, generation } };
    const noted = this.note(resource, type, next);
    this.of(resource).set(key, noted);
    return structuredClone(noted);
  }

  private note(resource: string, type: Change['type'], object: KubeObject): KubeObject {
    const version = ++this.last;
    const noted = structuredClone({ ...object, metadata: { ...object.metadata, resourceVersion: String(version) } });
    const history = this.history.get(resource) ?? [];
    this.history.set(resource, history);
    history.push({ version, type, object: noted });
    if (history.length > HISTORY) this.floors.set(resource, history.shift()!.version);
    for (const tell of this.watchers.get(resource) ?? []) tell({ version, type, object: noted });
    return noted;
  }
}

export const keyOf = (namespace: string | undefined, name: string): string =>
  namespace ? `${namespace}/${name}` : name;
