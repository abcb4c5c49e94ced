import type { PoolConfig } from '#backends/block-backend';
import { timedOut } from '#backends/reflink/file-errors';
import { StorageError } from '#platform/errors';

/** The file system of a dead disk or server may never answer, and its calls cannot be called back. */
const ANSWER_MS = 3_000;

/** Shares of a pool lie in its file system. */
const fileSystemOf = ({ path, within }: PoolConfig): string => within?.path ?? path;

/**
 * Which pools answer. Each call to one that does not keeps a thread of the process for good, and there are few: after the
 * first no other is made until that one has come back.
 */
export class PoolAnswers {
  /** By path. */
  readonly #looks = new Map<string, Promise<unknown>>();
  readonly #silentFileSystems = new Set<string>();

  constructor(private readonly answerMs = ANSWER_MS) {}

  /** Rejects with `unavailable` when the pool does not answer in time, or has not answered yet since. */
  async look<T>(pool: PoolConfig, work: () => Promise<T>): Promise<T> {
    this.require(pool);
    const look = (this.#looks.get(pool.path) as Promise<T> | undefined) ?? this.#begin(pool, work);
    try {
      return await this.within(`look at pool ${pool.name}`, look);
    } catch (error) {
      if (this.#looks.get(pool.path) !== look) throw error;
      this.#silentFileSystems.add(fileSystemOf(pool));
      throw this.#silence(pool, error);
    }
  }

  /** Throws `unavailable` for one that is known not to answer. */
  require(pool: PoolConfig): void {
    if (this.#silentFileSystems.has(fileSystemOf(pool))) throw this.#silence(pool);
  }

  /** Rejects with `timeout` when that does not come in time; it goes on by itself then. */
  async within<T>(doing: string, work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      // After a pause of the whole process timers come before answers that are there already: those go first.
      timer = setTimeout(() => setImmediate(() => reject(timedOut(doing))), this.answerMs);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #begin<T>(pool: PoolConfig, work: () => Promise<T>): Promise<T> {
    const look = work().finally(() => {
      this.#looks.delete(pool.path);
      this.#silentFileSystems.delete(fileSystemOf(pool));
    });
    look.catch(() => {});
    this.#looks.set(pool.path, look);
    return look;
  }

  #silence({ name }: PoolConfig, cause?: unknown): StorageError {
    const why = `its file system does not answer within ${this.answerMs / 1000} s`;
    return new StorageError('unavailable', `pool ${name} is down: ${why}`, { resource: `pool ${name}`, cause });
  }
}

/** One for the process, as its threads are. */
export const poolAnswers = new PoolAnswers();
