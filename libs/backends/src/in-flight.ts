/** Counts calls under way, so that what they use is released after the last one and not below it. */
export class InFlight {
  #count = 0;
  #release: (() => void) | undefined;

  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
      this.#releaseWhenIdle();
    }
  }

  /** Calls `release` once, now or after the last call. */
  close(release: () => void): void {
    this.#release ??= release;
    this.#releaseWhenIdle();
  }

  #releaseWhenIdle(): void {
    if (this.#count > 0 || !this.#release) return;
    const release = this.#release;
    this.#release = () => {};
    release();
  }
}
