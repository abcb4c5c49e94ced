/**
 * What Google keeps of a project: buckets, objects, policies, service accounts, HMAC keys. Behaviour from its public description
 * (https://cloud.google.com/storage/docs/json_api/v1, https://cloud.google.com/iam/docs/reference/rest), read in November 2026.
 */
import { randomBytes } from 'node:crypto';

export interface Binding {
  role: string;
  members: string[];
  condition?: { title: string; expression: string };
}

interface Policy {
  etag: string;
  version: number;
  bindings: Binding[];
}

export interface Generation {
  generation: string;
  body: Buffer;
  isLive: boolean;
  isHeld: boolean;
}

export interface Bucket {
  name: string;
  /** Another one than that of the stand-in: it answers nobody of this one. */
  isElsewhere: boolean;
  timeCreated: string;
  metageneration: number;
  location: string;
  labels: Record<string, string>;
  versioning: { enabled: boolean };
  iamConfiguration: object;
  softDeletePolicy: object;
  encryption: object | undefined;
  policy: Policy;
  objects: Map<string, Generation[]>;
  uploads: Map<string, string>;
}

export interface Account {
  email: string;
  displayName: string;
  description: string;
  policy: Policy;
}

export interface HmacKey {
  accessId: string;
  secret: string;
  email: string;
  state: 'ACTIVE' | 'INACTIVE' | 'DELETED';
}

export class Refusal extends Error {
  constructor(
    readonly status: number,
    /** Of Cloud Storage's JSON, or of its XML. */
    readonly reason: string,
    message: string = reason,
  ) {
    super(message);
  }
}

const NAME = /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/;
const LABEL = /^[a-z0-9_-]{0,63}$/;
/** Of who may act as an account: of a pool, of GKE, or anybody with an address. */
const MEMBER =
  /^(principal:\/\/iam\.googleapis\.com\/projects\/\d+\/locations\/global\/workloadIdentityPools\/[a-z0-9-]+\/subject\/[^/]{1,127}|serviceAccount:[a-z0-9-]+\.svc\.id\.goog\[[a-z0-9-]+\/[a-z0-9.-]+\]|(user|serviceAccount):[^@]+@.+)$/;
const MOST_KEYS = 10;
const MOST_ACCOUNTS = 100;

/** What a role lets its members do, as far as it is asked (https://cloud.google.com/storage/docs/access-control/iam-roles). */
const ROLES: Readonly<Record<string, readonly string[]>> = {
  'roles/storage.objectViewer': ['storage.objects.get', 'storage.objects.list'],
  'roles/storage.objectCreator': [
    'storage.objects.create',
    'storage.multipartUploads.create',
    'storage.multipartUploads.abort',
  ],
  'roles/storage.objectUser': [
    'storage.objects.get',
    'storage.objects.list',
    'storage.objects.create',
    'storage.objects.delete',
    'storage.multipartUploads.create',
    'storage.multipartUploads.abort',
    'storage.multipartUploads.list',
  ],
};

export class GcsProject {
  readonly buckets = new Map<string, Bucket>();
  readonly accounts = new Map<string, Account>();
  readonly keys = new Map<string, HmacKey>();
  /** Rights in the project that Trivet's account has not. */
  readonly withheld = new Set<string>();
  /** So many requests of holders are still judged by the rights and keys of before. */
  lag = 0;
  #before: { policies: Map<string, Binding[]>; keys: Map<string, HmacKey> } | undefined;
  #generation = 1_000;
  #created = 0;

  constructor(readonly id: string) {}

  bucket(name: string): Bucket {
    const bucket = this.buckets.get(name);
    if (!bucket) throw new Refusal(404, 'notFound', 'The specified bucket does not exist.');
    if (bucket.isElsewhere)
      throw new Refusal(403, 'forbidden', `trivet does not have storage.buckets.get access to ${name}.`);
    return bucket;
  }

  create(given: Partial<Bucket> & { name: string }, isElsewhere = false): Bucket {
    const { name, labels = {}, location = 'US' } = given;
    if (!NAME.test(name)) throw new Refusal(400, 'invalid', `Invalid bucket name: '${name}'`);
    if (Object.entries(labels).some(pair => pair.some(part => !LABEL.test(part))))
      throw new Refusal(400, 'invalid', 'Invalid label');
    const other = this.buckets.get(name);
    if (other)
      throw new Refusal(
        409,
        'conflict',
        other.isElsewhere
          ? 'The requested bucket name is not available.'
          : 'Your previous request to create the named bucket succeeded and you already own it.',
      );
    if (!/^[A-Z0-9-]+$/.test(location) || location === 'NOWHERE')
      throw new Refusal(400, 'invalid', `The specified location constraint is not valid.`);
    const bucket: Bucket = {
      name,
      isElsewhere,
      timeCreated: new Date(1_795_000_000_000 + ++this.#created).toISOString(),
      metageneration: 1,
      location,
      labels: { ...labels },
      versioning: given.versioning ?? { enabled: false },
      iamConfiguration: given.iamConfiguration ?? {},
      softDeletePolicy: given.softDeletePolicy ?? { retentionDurationSeconds: '604800' },
      encryption: given.encryption,
      policy: {
        etag: this.#newEtag(),
        version: 1,
        bindings: [{ role: 'roles/storage.legacyBucketOwner', members: [`projectOwner:${this.id}`] }],
      },
      objects: new Map(),
      uploads: new Map(),
    };
    this.buckets.set(name, bucket);
    return bucket;
  }

  delete(bucket: Bucket): void {
    if ([...bucket.objects.values()].flat().length > 0)
      throw new Refusal(409, 'conflict', 'The bucket you tried to delete is not empty.');
    this.buckets.delete(bucket.name);
  }

  setPolicy(bucket: Bucket, given: { etag?: string; version?: number; bindings: Binding[] }): void {
    if (given.etag !== undefined && given.etag !== bucket.policy.etag)
      throw new Refusal(412, 'conditionNotMet', 'At least one of the pre-conditions you specified did not hold.');
    for (const { members, condition } of given.bindings) {
      if (condition && given.version !== 3) throw new Refusal(400, 'invalid', 'Conditions need policy version 3.');
      for (const member of members) {
        const [kind, email = ''] = member.split(':');
        if (kind === 'serviceAccount' && !this.accounts.has(email))
          throw new Refusal(400, 'invalid', `Service account ${email} does not exist.`);
      }
    }
    if (given.bindings.flatMap(({ members }) => members).length > 1_500)
      throw new Refusal(400, 'invalid', 'The number of members in the policy is larger than the maximum allowed size.');
    this.#remember();
    bucket.policy = { etag: this.#newEtag(), version: given.version ?? 1, bindings: structuredClone(given.bindings) };
  }

  put(bucket: Bucket, key: string, body: Buffer): void {
    const generations = bucket.objects.get(key) ?? [];
    for (const one of generations) one.isLive = false;
    const made = { generation: String(++this.#generation), body, isLive: true, isHeld: false };
    bucket.objects.set(key, bucket.versioning.enabled ? [...generations, made] : [made]);
  }

  /** Without a generation: what is live, which stays as an older one where versions are kept. */
  remove(bucket: Bucket, key: string, generation?: string): void {
    const generations = bucket.objects.get(key) ?? [];
    const found = generations.find(one => (generation === undefined ? one.isLive : one.generation === generation));
    if (!found) throw new Refusal(404, 'notFound', `No such object: ${bucket.name}/${key}`);
    if (found.isHeld)
      throw new Refusal(
        403,
        'forbidden',
        `Object '${bucket.name}/${key}' is under active Temporary hold and cannot be deleted`,
      );
    if (generation === undefined && bucket.versioning.enabled) found.isLive = false;
    else
      bucket.objects.set(
        key,
        generations.filter(one => one !== found),
      );
    if (bucket.objects.get(key)!.length === 0) bucket.objects.delete(key);
  }

  createAccount(accountId: string, { displayName = '', description = '' }): Account {
    if (!/^[a-z][a-z0-9-]{4,28}[a-z0-9]$/.test(accountId)) throw new Refusal(400, 'INVALID_ARGUMENT', 'accountId');
    const email = `${accountId}@${this.id}.iam.gserviceaccount.com`;
    if (this.accounts.has(email))
      throw new Refusal(
        409,
        'ALREADY_EXISTS',
        `Service account ${accountId} already exists within project ${this.id}.`,
      );
    if (this.accounts.size >= MOST_ACCOUNTS)
      throw new Refusal(429, 'RESOURCE_EXHAUSTED', 'Maximum number of service accounts on project reached.');
    const policy = { etag: 'ACAB', version: 1, bindings: [] };
    const account = { email, displayName, description, policy };
    this.accounts.set(email, account);
    return account;
  }

  account(email: string): Account {
    const account = this.accounts.get(email);
    if (!account) throw new Refusal(404, 'NOT_FOUND', 'Unknown service account');
    return account;
  }

  /** Who may act as the account. */
  setAccountPolicy(account: Account, given: { etag?: string; version?: number; bindings?: Binding[] }): void {
    const { etag, version = 1, bindings = [] } = given;
    if (etag !== undefined && etag !== account.policy.etag)
      throw new Refusal(
        409,
        'ABORTED',
        'There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff.',
      );
    for (const { members, condition } of bindings) {
      if (condition && version !== 3) throw new Refusal(400, 'INVALID_ARGUMENT', 'Conditions need policy version 3.');
      const wrong = members.find(member => !MEMBER.test(member));
      if (wrong) throw new Refusal(400, 'INVALID_ARGUMENT', `Invalid principal ${wrong}`);
    }
    account.policy = { etag: this.#newEtag(), version, bindings: structuredClone(bindings) };
  }

  /** Bindings keep a deleted account, under a name that nobody has. */
  deleteAccount(email: string): void {
    if (!this.accounts.delete(email)) throw new Refusal(404, 'NOT_FOUND', `Unknown service account`);
    for (const key of this.keys.values()) if (key.email === email) key.state = 'DELETED';
    for (const { policy } of this.buckets.values())
      for (const binding of policy.bindings)
        binding.members = binding.members.map(one =>
          one === `serviceAccount:${email}` ? `deleted:${one}?uid=1` : one,
        );
  }

  createKey(email: string): HmacKey {
    if (!this.accounts.has(email)) throw new Refusal(404, 'notFound', `Service Account '${email}' not found.`);
    if (this.keysOf(email).length >= MOST_KEYS)
      throw new Refusal(429, 'RESOURCE_EXHAUSTED', 'Maximum number of HMAC keys for this service account reached.');
    const accessId = `GOOG1E${randomBytes(27).toString('hex').toUpperCase()}`;
    const key: HmacKey = { accessId, secret: randomBytes(30).toString('base64'), email, state: 'ACTIVE' };
    this.keys.set(accessId, key);
    return key;
  }

  keysOf(email: string): HmacKey[] {
    return [...this.keys.values()].filter(key => key.email === email && key.state !== 'DELETED');
  }

  key(accessId: string): HmacKey {
    const key = this.keys.get(accessId);
    if (!key || key.state === 'DELETED') throw new Refusal(404, 'notFound', 'Access ID not found in project.');
    return key;
  }

  setKeyState(accessId: string, state: HmacKey['state']): HmacKey {
    const key = this.key(accessId);
    if (state === 'DELETED' && key.state !== 'INACTIVE')
      throw new Refusal(400, 'invalid', 'Cannot delete keys in ACTIVE state.');
    this.#remember();
    key.state = state;
    return key;
  }

  /** The key by which a holder comes, as the store knows it by now. */
  knownKey(accessId: string): HmacKey | undefined {
    return this.#isLate() ? this.#before!.keys.get(accessId) : this.keys.get(accessId);
  }

  may(email: string, bucket: Bucket, permission: string): boolean {
    const bindings = this.#isLate() ? (this.#before!.policies.get(bucket.name) ?? []) : bucket.policy.bindings;
    return bindings.some(
      ({ role, members, condition }) =>
        members.includes(`serviceAccount:${email}`) &&
        (ROLES[role] ?? []).includes(permission) &&
        (condition === undefined || holds(condition.expression, bucket.name)),
    );
  }

  /** One request of a holder was judged. */
  asked(): void {
    if (this.lag > 0) this.lag--;
    if (this.lag === 0) this.#before = undefined;
  }

  #isLate(): boolean {
    return this.lag > 0 && this.#before !== undefined;
  }

  #remember(): void {
    if (this.#isLate()) return;
    this.#before = {
      policies: new Map([...this.buckets.values()].map(({ name, policy }) => [name, structuredClone(policy.bindings)])),
      keys: new Map([...this.keys].map(([id, key]) => [id, { ...key }])),
    };
  }

  #newEtag(): string {
    return randomBytes(6).toString('base64');
  }
}

/** Of CEL no more than `resource.name.startsWith("…")`. */
function holds(expression: string, bucketName: string): boolean {
  const [, begin] = /^resource\.name\.startsWith\("([^"]*)"\)$/.exec(expression) ?? [];
  if (begin === undefined) throw new Refusal(400, 'invalid', `condition: ${expression}`);
  return `projects/_/buckets/${bucketName}`.startsWith(begin);
}
