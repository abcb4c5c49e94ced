import { Lane } from '#backends/lane';
import { THREAD_POOL_SIZE, threadPoolSize } from '#platform/config/config';
import { aboutPool, StorageError } from '#platform/errors';

/**
 * What a file system has room for, by sort of call. short: a look at an image, its name, fences. read: the maps and data of
 * images. make: content that may take minutes (staging, growing). remove: so a thousand deletions do not stand before one
 * creation. look and canary: each has a place of its own, so they find out when all others are taken. In all it is less than a
 * third of the process's threads (THREAD_POOL_SIZE): of three file systems two may hang for good.
 */
export const LANES = { short: 4, read: 3, make: 4, remove: 2, look: 1, canary: 1 } as const;
export type LaneName = keyof typeof LANES;

/** Fewer where somebody has given the process fewer threads. */
const placesOf = (name: LaneName): number =>
  Math.max(1, Math.floor(LANES[name] * Math.min(1, threadPoolSize() / THREAD_POOL_SIZE)));

export interface FileCall {
  lane: LaneName;
  /** For people, e.g. `grow volume 0190…`. */
  doing: string;
  /** Those that it is about. */
  images: readonly string[];
  begunAt: number;
  /** Nobody waits for it any more; the kernel still has it. */
  left: boolean;
}

/** A call in flight, for people. */
export interface OldestCall {
  doing: string;
  ms: number;
}

/** One file system: its lanes, the calls in flight, and whether it is silent. All pools and shares that lie in it have this one. */
export class FileSystemCalls {
  readonly #lanes = new Map<LaneName, Lane>();
  readonly #calls = new Set<FileCall>();
  /** Calls by whose silence it is known to be silent. */
  readonly #proofs = new Map<object, string>();
  readonly #leaving = new Set<(error: Error) => void>();

  lane(name: LaneName): Lane {
    const known = this.#lanes.get(name) ?? new Lane(placesOf(name));
    this.#lanes.set(name, known);
    return known;
  }

  /** Throws `unavailable` while it is known not to answer. */
  require(pool: string): void {
    const [why] = this.#proofs.values();
    if (why !== undefined) throw silence(pool, why);
  }

  begin(call: FileCall): void {
    this.#calls.add(call);
  }

  /** Whoever waits in line has not begun. */
  end(call: FileCall): void {
    this.#calls.delete(call);
  }

  /** An earlier call about one of these images was left without an answer: what it does may still come. */
  earlierAbout(images: readonly string[]): FileCall | undefined {
    for (const call of this.#calls) if (call.left && call.images.some(image => images.includes(image))) return call;
    return undefined;
  }

  hasOlderThan(ms: number): boolean {
    const before = performance.now() - ms;
    for (const { lane, begunAt } of this.#calls)
      if (begunAt < before && lane !== 'look' && lane !== 'canary') return true;
    return false;
  }

  get oldest(): OldestCall | undefined {
    let oldest: FileCall | undefined;
    for (const call of this.#calls)
      if (call.lane !== 'look' && call.lane !== 'canary' && (oldest === undefined || call.begunAt < oldest.begunAt))
        oldest = call;
    return oldest && { doing: oldest.doing, ms: performance.now() - oldest.begunAt };
  }

  get inFlight(): number {
    return this.#calls.size;
  }

  get isSilent(): boolean {
    return this.#proofs.size > 0;
  }

  /** From now on nothing is begun; who waits, in line or for the kernel, leaves. */
  fallSilent(proof: object, why: string): void {
    this.#proofs.set(proof, why);
    for (const leave of [...this.#leaving]) leave(new StorageError('timeout', why));
  }

  /** The kernel has answered that call after all. */
  answered(proof: object): void {
    this.#proofs.delete(proof);
  }

  /** Is told when it falls silent. Gives how to end that. */
  onSilence(leave: (error: Error) => void): () => void {
    this.#leaving.add(leave);
    return () => this.#leaving.delete(leave);
  }
}

export const silence = (pool: string, why: string, cause?: unknown): StorageError =>
  new StorageError('unavailable', `pool ${pool} is down: ${why}`, { ...aboutPool(pool), cause });
