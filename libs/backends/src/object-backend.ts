import type { BackendCheck, Registration } from '#backends/registration';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/**
 * The port for object stores. Desired state lives in Postgres; an adapter makes the store match it and remembers
 * nothing. Rules that hold for every method:
 *  - `signal` ends the call; the adapter rejects with StorageError `timeout` then, and the effect counts as unknown.
 *  - Each request that changes something is made only if the signal's lease still covers it (`mayChange`).
 *  - It makes no retries of its own: the engine retries, and must know of each attempt.
 *  - It throws StorageError only: the store's own errors are translated here, where their cause is known.
 *    Unreachable: `unavailable`. Our credentials refused: `unauthenticated`; known but not allowed: `permission_denied`.
 *  - It never adopts, changes or deletes what Trivet did not make, except our statements in the policy of a
 *    registered bucket.
 */
export interface ObjectBackend {
  /** Cheap and without effect; rejects when the store cannot be used right now. */
  health(signal: AbortSignal): Promise<void>;

  /** A connection test: whether it answers, accepts our credentials, and lets us do what we need. Without effect; never rejects. */
  diagnose(signal: AbortSignal): Promise<BackendCheck[]>;

  /**
   * Where a right that is missing shows only when it is needed: tries each, at what it makes for that and takes away again, and
   * names those that are missing. Nothing elsewhere. Never rejects.
   */
  tryRights(signal: LeaseSignal): Promise<BackendCheck[]>;

  /** Who holds this name now? A missing bucket is an answer, not an error. */
  inspectBucket(name: string, signal: AbortSignal): Promise<BucketInspection>;

  /**
   * Makes the bucket as Trivet's own user. Call it only after `inspectBucket` said absent and that was committed:
   * RGW answers 200 to the owner of an existing bucket. Held by somebody else: `already_exists`.
   */
  createBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void>;

  /** Writes ownership and user tags, versioning, quota and public-access block. A repeat is harmless. */
  configureBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void>;

  /**
   * Removes one bounded portion of what the bucket holds (versions, markers, uploads), as its owner, without reading
   * an object. `done` once nothing was left. A locked object: `failed_precondition` that names it.
   */
  emptyBucket(bucket: BucketRef, signal: LeaseSignal): Promise<{ done: boolean; removed: number }>;

  /** Whether this bucket holds nothing: no version, marker or upload. One that is gone, or not this one, does not. */
  isBucketEmpty(bucket: BucketRef, signal: AbortSignal): Promise<boolean>;

  /** Deletes an empty bucket of ours after checking its incarnation tag once more. */
  deleteBucket(bucket: BucketRef, signal: LeaseSignal): Promise<'deleted' | 'absent' | 'not_empty' | 'foreign'>;

  /** What is special about it; the same as its kind's. */
  traits(): StoreTraits;

  /**
   * Makes the principal exist with its key and those beside it, exactly as given. A repeat is harmless. A store that issues
   * keys makes the principal alone, and takes away what other keys it has, if one is given.
   */
  putPrincipal(principal: Principal, signal: LeaseSignal): Promise<void>;

  /**
   * Whether the principal exists with its keys exactly as given. Of an issued one its id counts, and one beside it that is gone
   * is nothing that could be put right. Without effect.
   */
  holdsPrincipal(principal: Principal, signal: AbortSignal): Promise<boolean>;

  /**
   * Where keys are issued: takes away what keys the principal has but the one that is to stay, and has one made. Nobody hears
   * its secret a second time, so one that was not kept goes with the repeat. Elsewhere `unimplemented`.
   */
  issueKey(uid: string, signal: LeaseSignal, staying?: string): Promise<IssuedKey>;

  /**
   * Where changes of rights are seen late: asks as the holder of the key, or signature, whether the store goes by what was written of it. Who
   * is `revoked` at a bucket may do nothing there, also because the bucket or the key is gone. What is asked has no effect.
   * Elsewhere true, and nobody is asked.
   */
  isInForce(key: IssuedKey, expected: Expected, signal: LeaseSignal): Promise<boolean>;

  /**
   * Takes the key away, so that nothing new can be signed with it; where keys are issued, all that the principal has. A
   * missing key or principal is not an error.
   */
  removeKey(principal: PrincipalRef, signal: LeaseSignal): Promise<void>;

  /** A missing principal is not an error. */
  removePrincipal(uid: string, signal: LeaseSignal): Promise<void>;

  /**
   * Makes our statements in the bucket's policy say exactly `grants`, and leaves all other statements as they are.
   * The caller holds the bucket's lock; a principal may not exist yet. A missing bucket: `not_found`. Another bucket under
   * the name of a registered one: ReplacedBucket. A policy that cannot be parsed, or that changed while we wrote:
   * `failed_precondition`. Too large: `resource_exhausted`. Where rights are kept with principals, one that is not there:
   * MissingPrincipal.
   *
   * `whose`: those whose grants may be others than were written last; absent: nobody knows. A store that keeps rights with
   * its principals writes theirs alone, and needs to know them to take anything away. It looks at the bucket only to give
   * something: what is taken away, or denied, is so whatever has become of the bucket.
   */
  putGrants(
    bucket: GrantTarget,
    grants: readonly Grant[],
    signal: LeaseSignal,
    whose?: readonly string[],
  ): Promise<void>;

  /** Whether our statements in the bucket's policy say exactly `grants`. Without effect; a missing bucket: false. */
  holdsGrants(
    bucket: GrantTarget,
    grants: readonly Grant[],
    signal: AbortSignal,
    whose?: readonly string[],
  ): Promise<boolean>;

  /**
   * What opens this bucket where the store has no keys of principals, under a name that `putGrants` writes (`signedAs`, or the
   * principal's own) and without which it is worth nothing: the same whenever it is asked. Nobody is asked. Undefined: the
   * principal's key does.
   */
  signAccess(bucketName: string, signedAs: string): string | undefined;

  /**
   * Bytes of all that the bucket holds; undefined: there is none of this name. Without effect. A store that does not count
   * (capability `tenantQuota`): `unimplemented`.
   */
  measureBucket(name: string, signal: AbortSignal): Promise<bigint | undefined>;

  /**
   * Has the store refuse writes that would take the tenant's buckets together beyond so many bytes; undefined: no limit. A
   * repeat is harmless. A store that cannot: `unimplemented`, or nothing when there is no limit.
   */
  limitTenant(bytes: bigint | undefined, signal: LeaseSignal): Promise<void>;

  /**
   * Lets go of what was made for the tenant as such, such as the owner of its buckets. It has buckets still:
   * `failed_precondition`. A repeat is harmless.
   */
  forgetTenant(signal: LeaseSignal): Promise<void>;

  /** Lets go of connections; calls under way may still end. */
  close(): void;
}

/** A bucket of ours: its name at the store, and the incarnation that its ownership tag must carry. */
export interface BucketRef {
  name: string;
  incarnation: string;
}

/**
 * `identity` is what the store calls this very bucket: no other one of the same name ever has it, and nothing that is done
 * to the bucket (policy, owner, resharding) changes it.
 */
export type BucketInspection =
  | { state: 'absent' }
  | { state: 'ours'; incarnation: string }
  /** Owned by our user, without our tag: ours only if we know that we were about to create it. */
  | { state: 'untagged'; empty: boolean; identity: string | undefined }
  /** `byTrivet`: it carries the tag of another tenant or appliance. Undefined: the store has no such name for a bucket. */
  | { state: 'foreign'; byTrivet: boolean; identity: string | undefined };

/** What a bucket is asked to be, protocol-neutral and canonical: it is stored, and compared on every repeat. */
export interface BucketSpec {
  /** Where the store shall keep it (RGW: zone group); absent means the backend's own. */
  region?: string;
  placement?: string;
  versioning: boolean;
  objectLock: boolean;
  /** Decimal, bytes. */
  quotaMaxSize?: string;
  quotaMaxObjects?: string;
  tags: Record<string, string>;
  /** What Delete does with a bucket that holds objects; fixed at creation. */
  deletePolicy: 'retain' | 'purge';
  /** Absent: as the store does by itself. */
  encryption?: 'SSE-S3' | 'SSE-KMS';
  kmsKey?: string;
}

/**
 * incarnation is absent for a registered (brownfield) bucket, which carries no tag of ours: that is known by the identity
 * it had when it was registered, or by its name alone when nobody has seen that yet.
 */
export interface GrantTarget {
  name: string;
  incarnation?: string;
  identity?: string;
}

/** The registered bucket is gone, with all that was granted on it, and somebody else's has its name. */
export class ReplacedBucket extends StorageError {
  constructor(name: string) {
    super(
      'failed_precondition',
      `bucket ${name} is not the one that was registered, which is gone: the store has another bucket of this name; an administrator can delete it here, which ends the registration and leaves the bucket as it is, and import it again if it shall be used`,
      { resource: `bucket ${name}` },
    );
  }
}

/** The store does not know whom a right is to be given to: it is gone, or so new that not all of the store knows it. */
export class MissingPrincipal extends StorageError {
  constructor(uid: string, cause?: unknown) {
    super('not_found', `the object store does not know principal ${uid}`, { resource: `principal ${uid}`, cause });
  }
}

export type AccessMode = 'read_write' | 'read_only' | 'write_only';

/** `revoked` keeps a Deny for a principal that lives on with other buckets (invariant O4). */
export interface Grant {
  uid: string;
  mode: AccessMode | 'revoked';
  /** Where the store signs: the names under which signatures open the bucket for the principal. Absent: its own alone. */
  signedAs?: readonly string[];
  /** And when they end by themselves: ISO 8601, a whole second. Absent: never. */
  endsAt?: string;
}

export interface PrincipalRef {
  uid: string;
  accessKeyId: string;
}

export interface IssuedKey {
  accessKeyId: string;
  secretAccessKey: string;
  /** In its place, where the store signs. */
  token?: string;
}

/** What a principal may do at one bucket. */
export interface Right {
  bucket: string;
  mode: Grant['mode'];
}

/** What is written of a key: what it opens and does not; or that there is no such key. */
export type Expected = readonly Right[] | 'no key';

/** In what stores differ so much that who calls them must know it. */
export interface StoreTraits {
  /** Keys cannot be chosen, and are shown once: `issueKey`. */
  issuesKeys?: true;
  /** Rights belong to principals, and stay when a bucket goes. */
  rightsOfPrincipals?: true;
  /** A change of rights or keys is answered before it holds everywhere: `isInForce`. */
  late?: true;
  /** So long after a change a principal without a key, as whom nobody can ask, counts as one that the store treats by it. */
  keylessLateMs?: number;
  /** No keys: what opens a bucket is signed (`signAccess`), under names that are written at the bucket. */
  signs?: true;
  /** Keys are chosen, of hexadecimal digits alone: an id is GK and 24 of them, a secret 64. */
  hexKeys?: true;
  /** Who may write may delete as well: there is no `write_only`. */
  noWriteOnly?: true;
}

export interface Principal extends PrincipalRef {
  secretAccessKey: string;
  /** What `signAccess` gave. */
  token?: string;
  /** For people who look at the store's own list of users. */
  displayName: string;
  /** It has no key: who is this account of a cluster is it. Its uid begins with `KEYLESS`. */
  trusts?: ServiceAccount;
  /** Keys that open the same for now: the one before it, or the one after it. One store has room for one of them. */
  beside?: readonly IssuedKey[];
}

/** Of Kubernetes. */
export interface ServiceAccount {
  namespace: string;
  name: string;
}

/** What the uids of principals without a key begin with, so that whoever has one alone can tell. */
export const KEYLESS = 'trivet-sa-';

/** How a client reaches a bucket; goes into credentials. */
export interface ObjectAccessPoint {
  endpoint: string;
  region: string;
  addressing: 'path' | 'virtual';
  /** Of Azure alone. */
  storageAccount?: string;
  /** Of Google alone. */
  project?: string;
  /** Absent: nobody comes in without a key. */
  serviceAccounts?: KeylessDoor;
}

/** How workloads come in as service accounts of their cluster (`Principal.trusts`). */
export interface KeylessDoor {
  /** The one that needs no key. */
  protocol: ObjectProtocol;
  /** What the store calls the principal in full: as that a workload comes in. */
  nameOf(uid: string): string;
}

/**
 * The part of an adapter that needs no connection: the gateway uses it to refuse bad input before anything is accepted.
 */
export interface ObjectBackendKind<Config = unknown> {
  readonly kind: string;
  readonly protocols: readonly ObjectProtocol[];
  /** Throws `invalid_argument` with `field` as given. */
  checkBucketName(name: string, field: string): void;
  /** Strict: an unknown key is `invalid_argument` with field `parameters[key]`; absent means default. */
  parseBucketParameters(parameters: Readonly<Record<string, string>>): BucketSpec;
  /** Bytes of the policy that `putGrants` would write for so many principals of each mode. */
  policyBytes(bucketName: string, counts: Readonly<Record<Grant['mode'], number>>): number;
  readonly maxPolicyBytes: number;
  /** What both of these count, where it is not bytes. */
  readonly policyUnit?: string;
  /** How many buckets one credential can open at most; absent: as many as are asked for. */
  readonly bucketsPerAccess?: number;
  readonly traits?: StoreTraits;
  /** Bytes of what one principal's rights take, where they belong to it, and how many there may be. */
  readonly rightsBytes?: (rights: readonly Right[]) => number;
  readonly maxRightsBytes?: number;
  /** Reads the registry's row; throws `internal` when it does not fit. */
  parseConfig(config: unknown): Config;
  accessPoint(config: Config): ObjectAccessPoint;
  readonly registration: Registration<Config>;
  open(config: Config, credentials: BackendCredentials, owner: ApplianceIdentity): ObjectBackend;
}

export type ObjectProtocol = 's3' | 'azure' | 'gcs';

/** Sealed in the registry's row, by name. */
export type BackendCredentials = Readonly<Record<string, string>>;

/** Goes into ownership tags. */
export interface ApplianceIdentity {
  applianceId: string;
  tenantId: string;
}
