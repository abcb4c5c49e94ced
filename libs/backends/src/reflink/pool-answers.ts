import type { PoolConfig } from '#backends/block-backend';
import type { Lane } from '#backends/lane';
import { Mounts } from '#backends/linux/mounts';
import { fileError, timedOut } from '#backends/reflink/file-errors';
import {
  type FileCall,
  FileSystemCalls,
  type LaneName,
  type OldestCall,
  silence,
} from '#backends/reflink/file-system-calls';
import { aboutPool, isStorageError, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';

const log = createLogger('pools');

export interface AnswerTimes {
  /** The file system of a dead disk or server may never answer, and its calls cannot be called back. */
  answerMs: number;
  /** Unanswered for longer a call is odd, and a small write asks whether anything is answered. */
  oddMs: number;
  /** That may wait for a large flush. */
  canaryMs: number;
  /** Whoever has not got a place by then gives way, and comes again later. */
  waitMs: number;
}

const TIMES: AnswerTimes = { answerMs: 3_000, oddMs: 3_000, canaryMs: 10_000, waitMs: 10_000 };

/** What a call is about. */
export interface PoolCall {
  pool: PoolConfig;
  lane: LaneName;
  /** For people. */
  doing: string;
  /** Nobody begins something about an image while an earlier call about it, which was given up, is still in the kernel. */
  images?: readonly string[];
}

/**
 * The file calls of this process, by file system: what one takes none of the others lacks (ADR 24). Which of them answer is found
 * by looks, and by a canary, a small write, as soon as a call takes long: a frozen one answers every look. After the first that
 * is not answered nothing more is begun there until it has come back, and whoever waits leaves: the engine has its operation again,
 * its place and its lease. The thread is lost until the kernel answers.
 */
export class PoolAnswers {
  readonly #fileSystems = new Map<string, FileSystemCalls>();
  readonly #looks = new Map<string, Promise<unknown>>();
  readonly #times: AnswerTimes;

  constructor(
    answerMs = TIMES.answerMs,
    times: Partial<AnswerTimes> = {},
    private readonly mounts: Pick<Mounts, 'deviceOf'> = new Mounts(),
  ) {
    this.#times = { ...TIMES, ...times, answerMs };
  }

  get answerMs(): number {
    return this.#times.answerMs;
  }

  /** Throws `unavailable` for one that is known not to answer. */
  require(pool: PoolConfig): void {
    this.#of(pool).require(pool.name);
  }

  /**
   * Rejects with `unavailable` where the file system is silent; with `aborted` when there was no place in time, or before `signal`
   * fired; with `timeout`, and the signal that `work` gets fires, when `signal` fires or the file system falls silent. What hangs in the kernel goes on by
   * itself, and keeps its place.
   */
  run<T>({ pool, ...call }: PoolCall, signal: AbortSignal, work: (left: AbortSignal) => Promise<T>): Promise<T> {
    return this.runTogether([pool], call, signal, work);
  }

  /**
   * As `run`, with one place in each file system that the pools lie in, however many lie in one. All calls take theirs in the
   * order of the devices: no two wait for each other.
   */
  async runTogether<T>(
    pools: readonly PoolConfig[],
    call: Omit<PoolCall, 'pool'>,
    signal: AbortSignal,
    work: (left: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { lane, doing, images = [] } = call;
    const involved = this.#fileSystemsOf(pools);
    const [{ name }] = pools as [PoolConfig];
    const requireFree = () => {
      for (const { fileSystem } of involved) requireNoneLeft(fileSystem, doing, images);
    };
    for (const { fileSystem, pool } of involved) fileSystem.require(pool.name);
    if (signal.aborted) throw timedOut(doing, name);
    requireFree();
    const begun: FileCall = { lane, doing, images, begunAt: 0, left: false };
    const left = new AbortController();
    const perform = async () => {
      clearTimeout(line);
      // Between its turn and now.
      left.signal.throwIfAborted();
      requireFree();
      begun.begunAt = performance.now();
      for (const { fileSystem } of involved) fileSystem.begin(begun);
      try {
        return await work(left.signal);
      } finally {
        for (const { fileSystem } of involved) fileSystem.end(begun);
      }
    };
    const places = involved.map(({ fileSystem }) => fileSystem.lane(lane));
    const enter = ([place, ...others]: readonly Lane[]): Promise<T> =>
      place
        ? place.run(
            () => enter(others),
            left.signal,
            () => left.signal.reason,
          )
        : perform();
    let line: NodeJS.Timeout | undefined;
    let leave!: (error: Error) => void;
    const gone = new Promise<never>((_, reject) => {
      leave = error => {
        begun.left = true;
        reject(error);
        left.abort(error);
      };
    });
    // Who has only waited knows that nothing took effect.
    const ended = () => (begun.begunAt === 0 ? busy(name, doing) : timedOut(doing, name));
    const late = () => leave(ended());
    signal.addEventListener('abort', late, { once: true });
    const heeds = involved.map(({ fileSystem, pool }) =>
      fileSystem.onSilence(why => leave(timedOut(`${doing}: ${why.message}`, pool.name))),
    );
    if (places.length > 1 || places.some(place => place.isFull))
      line = setTimeout(() => leave(busy(name, doing)), this.#times.waitMs);
    try {
      return await Promise.race([enter(places), gone]);
    } catch (error) {
      if (signal.aborted) throw ended();
      throw about(name, fileError(error, doing));
    } finally {
      clearTimeout(line);
      signal.removeEventListener('abort', late);
      for (const heed of heeds) heed();
    }
  }

  /**
   * One at a time of a pool. Rejects with `unavailable` when it does not answer in time after it began, or has not answered yet
   * since.
   * @param canary a small write, made when calls take long
   */
  async look<T>(pool: PoolConfig, work: () => Promise<T>, canary?: () => Promise<void>): Promise<T> {
    const fileSystem = this.#of(pool, { fresh: true });
    fileSystem.require(pool.name);
    if (canary && fileSystem.hasOlderThan(this.#times.oddMs)) this.#send(fileSystem, pool, canary);
    const look = (this.#looks.get(pool.path) as Promise<T> | undefined) ?? this.#begin(pool, fileSystem, work);
    try {
      return await look;
    } catch (error) {
      if (!isStorageError(error) || error.kind !== 'timeout') throw error;
      fileSystem.require(pool.name);
      throw silence(pool.name, error.message, error);
    }
  }

  /** Rejects with `timeout` when that does not come in time; it goes on by itself then. */
  async within<T>(doing: string, work: Promise<T>, ms = this.answerMs): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      // After a pause of the whole process timers come before answers that are there already: those go first.
      timer = setTimeout(() => setImmediate(() => reject(timedOut(doing))), ms);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** For metrics: calls in flight, file systems that are silent, and how long the oldest call has been in the kernel. */
  figures(): { inFlight: number; silent: number; oldest: OldestCall | undefined } {
    const all = [...this.#fileSystems.values()];
    const oldest = all.flatMap(({ oldest }) => oldest ?? []).sort((a, b) => b.ms - a.ms)[0];
    return {
      inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
      silent: all.filter(({ isSilent }) => isSilent).length,
      oldest,
    };
  }

  /** Each once, with the first of the pools that lie in it, in the order of the devices. */
  #fileSystemsOf(pools: readonly PoolConfig[]): { fileSystem: FileSystemCalls; pool: PoolConfig }[] {
    const found = new Map<string, PoolConfig>();
    for (const pool of pools) {
      const device = this.#deviceOf(pool);
      if (!found.has(device)) found.set(device, pool);
    }
    return [...found.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([device, pool]) => ({ fileSystem: this.#on(device), pool }));
  }

  #of(pool: PoolConfig, options?: { fresh: boolean }): FileSystemCalls {
    return this.#on(this.#deviceOf(pool, options));
  }

  /** Shares of a pool lie in its file system. */
  #deviceOf({ path, within }: PoolConfig, options?: { fresh: boolean }): string {
    return this.mounts.deviceOf(within?.path ?? path, options);
  }

  #on(device: string): FileSystemCalls {
    const known = this.#fileSystems.get(device) ?? new FileSystemCalls();
    this.#fileSystems.set(device, known);
    return known;
  }

  #begin<T>(pool: PoolConfig, fileSystem: FileSystemCalls, work: () => Promise<T>): Promise<T> {
    const stop = new AbortController();
    const heed = fileSystem.onSilence(() => stop.abort());
    const unsaid = () => new StorageError('timeout', 'its file system does not answer');
    const proof = {};
    let isAnswered = false;
    // In line it proves nothing: the one that has the place does. So its time begins with its place.
    const perform = async (): Promise<T> => {
      const answer = work().finally(() => {
        isAnswered = true;
        ended();
        this.#answered(fileSystem, pool, proof);
      });
      this.within(`look at pool ${pool.name}`, answer).then(resolve, error => {
        if (!isAnswered)
          this.#fellSilent(fileSystem, pool, proof, `its file system does not answer within ${this.answerMs / 1000} s`);
        reject(error);
      });
      return answer;
    };
    const { promise: look, resolve, reject } = Promise.withResolvers<T>();
    const ended = () => {
      heed();
      if (this.#looks.get(pool.path) === look) this.#looks.delete(pool.path);
    };
    this.#looks.set(pool.path, look);
    // What is heard here came before its turn, or was told above.
    fileSystem
      .lane('look')
      .run(perform, stop.signal, unsaid)
      .catch(error => {
        ended();
        reject(error);
      });
    return look;
  }

  /** Nobody waits for it. */
  #send(fileSystem: FileSystemCalls, pool: PoolConfig, canary: () => Promise<void>): void {
    const place = fileSystem.lane('canary');
    if (place.isFull) return;
    const proof = {};
    const { canaryMs } = this.#times;
    const timer = setTimeout(() => {
      const { oldest } = fileSystem;
      const since = oldest ? `, ${oldest.doing} not for ${Math.round(oldest.ms / 1000)} s` : '';
      this.#fellSilent(
        fileSystem,
        pool,
        proof,
        `its calls do not return: a small write not within ${canaryMs / 1000} s${since}`,
      );
    }, canaryMs);
    // Any answer is one: that there is no room, too.
    place
      .run(canary, new AbortController().signal, () => new Error())
      .catch(() => {})
      .finally(() => {
        clearTimeout(timer);
        this.#answered(fileSystem, pool, proof);
      });
  }

  #fellSilent(fileSystem: FileSystemCalls, { name }: PoolConfig, proof: object, why: string): void {
    if (!fileSystem.isSilent) log.error({ pool: name, inFlight: fileSystem.inFlight }, `pool given up for now: ${why}`);
    fileSystem.fallSilent(proof, why);
  }

  #answered(fileSystem: FileSystemCalls, { name }: PoolConfig, proof: object): void {
    const wasSilent = fileSystem.isSilent;
    fileSystem.answered(proof);
    if (wasSilent && !fileSystem.isSilent) log.info({ pool: name }, 'its file system answers again');
  }
}

const busy = (pool: string, doing: string): StorageError =>
  new StorageError('aborted', `${doing}: pool ${pool} is busy; it goes on when there is room`);

/** Invariant E5. */
function requireNoneLeft(fileSystem: FileSystemCalls, doing: string, images: readonly string[]): void {
  const earlier = fileSystem.earlierAbout(images);
  if (earlier) throw new StorageError('aborted', `${doing}: an earlier call has not returned yet (${earlier.doing})`);
}

/** So that it is not taken for one about the whole backend. */
function about(pool: string, error: StorageError): StorageError {
  if (error.resource !== undefined || (error.kind !== 'unavailable' && error.kind !== 'timeout')) return error;
  return new StorageError(error.kind, error.message, { ...error, ...aboutPool(pool), cause: error.cause });
}

/** One for the process, as its threads are. */
export const poolAnswers = new PoolAnswers();
