/** What a Garage remembers: buckets, keys, aliases, rights, objects. Behaviour from its source, branch main-v2 of June 2025. */
import { randomBytes } from 'node:crypto';

export interface Rights {
  read: boolean;
  write: boolean;
  owner: boolean;
}

export interface Bucket {
  id: string;
  globalAliases: Set<string>;
  /** `key id/alias`. */
  localAliases: Set<string>;
  rights: Map<string, Rights>;
  quotas: { maxSize: number | null; maxObjects: number | null };
  website: boolean;
  objects: Map<string, Buffer>;
  uploads: Map<string, string>;
}

export interface Key {
  id: string;
  secret: string;
  name: string;
}

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message = code,
  ) {
    super(message);
  }
}

const NAME = /^(?!xn--)(?!.*\.\.)(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

export class GarageCluster {
  readonly buckets = new Map<string, Bucket>();
  readonly keys = new Map<string, Key>();
  /** Ids of deleted keys: none comes back. */
  readonly buried = new Set<string>();
  /** Local aliases that a key ever had. */
  readonly everHad = new Set<string>();
  /** Ends the next CreateBucket after its name, before its local alias, as if the node had died there. */
  diesInCreation = false;

  bucketNamed(alias: string): Bucket | undefined {
    return [...this.buckets.values()].find(({ globalAliases }) => globalAliases.has(alias));
  }

  /** As S3 resolves a name: the key's own aliases come first. */
  bucketFor(keyId: string, alias: string): Bucket | undefined {
    const own = [...this.buckets.values()].find(({ localAliases }) => localAliases.has(`${keyId}/${alias}`));
    return own ?? this.bucketNamed(alias);
  }

  bucket(id: string): Bucket {
    const bucket = this.buckets.get(id);
    if (!bucket) throw new Refusal(404, 'NoSuchBucket', `Bucket not found: ${id}`);
    return bucket;
  }

  key(id: string): Key {
    const key = this.keys.get(id);
    if (!key) throw new Refusal(404, 'NoSuchAccessKey', `Access key not found: ${id}`);
    return key;
  }

  create(globalAlias?: string, local?: { accessKeyId: string; alias: string; allow?: Partial<Rights> }): Bucket {
    for (const alias of [globalAlias, local?.alias])
      if (alias !== undefined && !NAME.test(alias)) throw new Refusal(400, 'InvalidRequest', `${alias}: invalid name`);
    if (globalAlias !== undefined && this.bucketNamed(globalAlias)) throw new Refusal(409, 'BucketAlreadyExists');
    if (local) this.key(local.accessKeyId);
    if (local && this.everHad.has(`${local.accessKeyId}/${local.alias}`))
      throw new Refusal(400, 'InvalidRequest', 'Local alias already exists');
    const bucket: Bucket = {
      id: randomBytes(32).toString('hex'),
      globalAliases: new Set(),
      localAliases: new Set(),
      rights: new Map(),
      quotas: { maxSize: null, maxObjects: null },
      website: false,
      objects: new Map(),
      uploads: new Map(),
    };
    this.buckets.set(bucket.id, bucket);
    if (globalAlias !== undefined) bucket.globalAliases.add(globalAlias);
    if (this.diesInCreation) {
      this.diesInCreation = false;
      throw new Refusal(503, 'ServiceUnavailable', 'the node dies');
    }
    if (local) {
      this.addLocalAlias(bucket, local.accessKeyId, local.alias);
      this.allow(bucket, local.accessKeyId, local.allow ?? {}, true);
    }
    return bucket;
  }

  addGlobalAlias(bucket: Bucket, alias: string): void {
    const holder = this.bucketNamed(alias);
    if (holder && holder !== bucket) throw new Refusal(400, 'InvalidRequest', `Alias ${alias} already exists`);
    bucket.globalAliases.add(alias);
  }

  addLocalAlias(bucket: Bucket, keyId: string, alias: string): void {
    this.key(keyId);
    this.everHad.add(`${keyId}/${alias}`);
    bucket.localAliases.add(`${keyId}/${alias}`);
  }

  allow(bucket: Bucket, keyId: string, rights: Partial<Rights>, value: boolean): void {
    this.key(keyId);
    const now = { ...(bucket.rights.get(keyId) ?? { read: false, write: false, owner: false }) };
    for (const right of ['read', 'write', 'owner'] as const) if (rights[right]) now[right] = value;
    bucket.rights.set(keyId, now);
  }

  delete(id: string): void {
    const bucket = this.bucket(id);
    if (bucket.objects.size + bucket.uploads.size > 0) throw new Refusal(409, 'BucketNotEmpty');
    this.buckets.delete(id);
  }

  importKey(id: string, secret: string, name: string): Key {
    if (this.keys.has(id) || this.buried.has(id))
      throw new Refusal(409, 'KeyAlreadyExists', `Key ${id} already exists in data store. Even if it is deleted, …`);
    if (!/^GK[0-9a-fA-F]{24}$/.test(id) || !/^[0-9a-fA-F]{64}$/.test(secret))
      throw new Refusal(400, 'InvalidRequest', 'Invalid key format');
    const key = { id, secret, name };
    this.keys.set(id, key);
    return key;
  }

  createKey(name: string): Key {
    return this.importKey(`GK${randomBytes(12).toString('hex')}`, randomBytes(32).toString('hex'), name);
  }

  deleteKey(id: string): void {
    this.key(id);
    this.keys.delete(id);
    this.buried.add(id);
    for (const bucket of this.buckets.values()) {
      bucket.rights.delete(id);
      for (const alias of bucket.localAliases) if (alias.startsWith(`${id}/`)) bucket.localAliases.delete(alias);
    }
  }
}
