import type { ClusterExports } from '#backends/cluster-exports';
import type { Exporter } from '#backends/exporter';
import type { ExtentSource } from '#backends/extent-source';
import type { ImageRef } from '#backends/image-ref';
import type { ImageShare } from '#backends/image-share';
import type { ApplianceIdentity, BackendCredentials } from '#backends/object-backend';
import type { Registration } from '#backends/registration';
import type { LeaseSignal } from '#platform/lease-signal';

export type { ImageRef };

/** The field of an error about one image alone: it is there, and cannot be opened. */
export const UNOPENED = 'opening';

/**
 * The port for block volumes. Desired state lives in Postgres; an adapter makes the pool match it. Rules for every method:
 *  - `signal` ends the call; the adapter rejects with StorageError `timeout` then, and the effect counts as unknown.
 *  - It makes no retries of its own, and throws StorageError only. A pool that is not mounted, or whose marker or file
 *    system is another one: `unavailable`, never "empty" (invariant F2). No room: `resource_exhausted` with the words
 *    `insufficient storage space`, nothing left behind.
 *  - Names at the backend carry the incarnation, never the user's name.
 *  - It never adopts, changes or deletes what Trivet did not make; no call makes a missing volume anew, except `commit`.
 *  - `fence` is the operation's `hostFence`; an adapter on this host keeps the highest for each image and refuses a lower
 *    one with `aborted` (invariant E5).
 */
export interface BlockBackend {
  /** Cheap and without effect; rejects when no pool can be used right now. */
  health(signal: AbortSignal): Promise<void>;

  /** Every pool of the registry's row; a pool that is down is an answer, not an error. */
  inspectPools(signal: AbortSignal): Promise<PoolStatus[]>;

  /** Adopts an empty folder as the pool: writes its marker. For the administrator's set-up; a repeat is harmless. */
  preparePool(pool: string, signal: LeaseSignal): Promise<PoolStatus>;

  /** Whether a pool that nobody has registered yet could be taken into use, as far as reading tells: nothing is changed there. */
  surveyPool(pool: string, signal: AbortSignal): Promise<PoolSurvey>;

  /** What is there now. A missing image is an answer, not an error. */
  inspectImage(image: ImageRef, signal: AbortSignal): Promise<ImageInspection>;

  /**
   * How many extents a clone of it would touch (counted up to `limit`), and how long that stalls its writers by the
   * pool's measured speed, in milliseconds. Copying pools: the time of the copy.
   */
  predictCut(image: ImageRef, limit: number, signal: AbortSignal): Promise<CutPrediction>;

  /**
   * Makes the content under a temporary name that carries operation and fence; durable when it resolves. Unbounded: it
   * may take minutes, and nothing but temporaries is touched, so it may be repeated, abandoned or killed at any point.
   * A source that shrinks, moves or is missing: `failed_precondition`; so is one that is written while a pool that cannot
   * clone copies it (retried later): its writers have to pause, by `stageTogether`.
   */
  stage(stage: StageRef, content: StageContent, signal: LeaseSignal): Promise<void>;

  /**
   * Stages several images as of one instant: `pause` says which processes must not write meanwhile, and for how long they
   * may be stopped. They go on whatever happens to this process. Longer than the deadline: `unavailable` that is not to be
   * retried (each attempt stops them anew), nothing kept.
   */
  stageTogether(
    cuts: readonly { stage: StageRef; source: ImageRef }[],
    pause: { pids: readonly number[]; deadlineMs: number },
    signal: LeaseSignal,
  ): Promise<{ pausedMs: number }>;

  /**
   * Gives the staged content its name, atomically and without replacing, then drops the temporary. Already there and no
   * temporary left: a repeat, fine. There already by an earlier attempt: that one stays, and the temporary goes. `readOnly`: nobody may write it any more, and it refuses to be changed.
   */
  commit(stage: StageRef, image: ImageRef, options: { readOnly: boolean }, signal: LeaseSignal): Promise<void>;

  /** Removes all temporaries of this image, of whatever operation. Nothing there: fine. */
  discardStages(image: ImageRef, fence: string, signal: LeaseSignal): Promise<void>;

  /** Grows to exactly so many bytes, never shrinks; `thick` allocates the new part. Unbounded. A repeat is harmless. */
  growImage(
    image: ImageRef,
    size: { sizeBytes: bigint; thick: boolean },
    fence: string,
    signal: LeaseSignal,
  ): Promise<void>;

  /** Unbounded for images of many extents. A missing image is not an error. */
  removeImage(image: ImageRef, fence: string, signal: LeaseSignal): Promise<void>;

  /**
   * Every image and temporary under the pool, or of the share, that carries a name of ours; for the audit. After all, or the last
   * share, what nobody needs any more is cleared away.
   */
  listImages(pool: string, signal: AbortSignal, share?: ImageShare): AsyncIterable<ListedImage>;

  /** Where a process on this host opens it. For exporters and change tracking on the same host. */
  pathOf(image: ImageRef): string;

  close(): void;
}

/** Temporary content of one attempt for one image. */
export interface StageRef {
  pool: string;
  /** Of the image that it will become. */
  imageId: string;
  operationId: string;
  /** Decimal bigint: the operation's `hostFence`. */
  fence: string;
}

export type StageContent =
  /** All zero; `thick` reserves every block. */
  | { kind: 'empty'; sizeBytes: bigint; thick: boolean }
  /** What the source holds at one instant; grown to `sizeBytes` when that is larger. */
  | { kind: 'copy'; source: ImageRef; sizeBytes?: bigint; thick: boolean };

export type ImageInspection =
  | { state: 'absent' }
  | { state: 'present'; sizeBytes: bigint; allocatedBytes: bigint; readOnly: boolean };

export interface CutPrediction {
  extents: number;
  /** The count stopped at the limit. */
  more: boolean;
  stallMs: number;
}

export interface PoolStatus {
  name: string;
  state: 'up' | 'down';
  /** Why it is down; for people. */
  reason?: string;
  /** It is down because its place was looked at and its file system is not there; one that does not answer may be. */
  isAbsent?: true;
  /** It is up, and nothing new fits: why; for people. */
  noRoom?: string;
  /** From its marker. */
  uuid?: string;
  totalBytes: bigint;
  usedBytes: bigint;
  /** How a clone is made here: sharing blocks, or by copying the data. */
  clone: 'reflink' | 'copy';
}

/** Of a place that is to become a pool: for people, what is there, or what to do. */
export interface PoolSurvey {
  ok: boolean;
  detail: string;
}

export interface ListedImage {
  kind: 'volume' | 'snapshot' | 'temporary';
  /** uuid of the image, for a temporary of what it would have become. */
  id: string;
  folder: string;
  /** For people and `trivet doctor`. */
  path: string;
  sizeBytes: bigint;
  modifiedAt: Date;
}

/** A pool of the registry's row. */
export interface PoolConfig {
  name: string;
  path: string;
  /** `address:port` at which its targets are served; empty: nothing is exported. */
  portals: readonly string[];
  /** The same by daemon, where the pool has several; absent: it has one. */
  portalSets?: readonly (readonly string[])[];
  /** Hosts without CHAP are served at portals beyond loopback (invariant I4). */
  withoutChap: boolean;
  /** Which storage host takes it into use, where there are several; absent: the first one that finds its marker. */
  host?: string;
  /**
   * Of a share: the pool that it lies in, and whose that is. Without the marker of that one nothing is opened or made: what
   * should be mounted there may be missing.
   */
  within?: { path: string; ownerId: string };
}

/** One opened backend: volumes, where their data lie, and who exports them. */
export interface BlockStore {
  readonly volumes: BlockBackend;
  readonly extents: ExtentSource;
  readonly exporter: Exporter;
  /** Of pools that any host may export, one at a time; absent: each is at the host that has its disk. */
  readonly cluster?: ClusterExports;
  health(signal: AbortSignal): Promise<void>;
  close(): void;
}

/** The part of an adapter that needs no connection: the gateway refuses bad input by it before anything is accepted. */
export interface BlockBackendKind<Config = unknown> {
  readonly kind: string;
  /** Every storage host reaches its pools, and one of them serves each; absent: a pool lies at the host that has its disk. */
  readonly isOfCluster?: true;
  readonly capabilities: BlockCapabilities;
  readonly registration: Registration<Config>;
  /** Reads the registry's row; throws `internal` when it does not fit. */
  parseConfig(config: unknown): Config;
  pools(config: Config): readonly PoolConfig[];
  /** Volumes of the pool that can be published at once; absent: no bound. */
  mostPublished?(config: Config, pool: string): number | undefined;
  /** Throws `invalid_argument` with `field` as given; '' is the root. */
  checkFolder(folder: string, field: string): void;
  open(config: Config, credentials: BackendCredentials, owner: ApplianceIdentity): BlockStore;
}

export interface BlockCapabilities {
  /** Sizes must be multiples of this; volumes are never rounded. */
  blockBytes: number;
  maxSizeBytes: bigint;
  thick: boolean;
  encryption: boolean;
  deduplication: boolean;
  limitIops: boolean;
  limitMbps: boolean;
  /** What its exporter speaks. */
  accessProtocols: readonly AccessProtocol[];
}

export type AccessProtocol = 'iscsi' | 'fc' | 'nvmetcp';
