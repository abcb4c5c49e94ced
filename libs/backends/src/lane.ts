/**
 * So many calls of one sort run at once, and the others wait in line: file calls run in libuv's pool, which everything else of
 * the process uses too, and each of them keeps a thread until the kernel has answered it.
 */
export class Lane {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly limit: number) {}

  get isFull(): boolean {
    return this.#running >= this.limit;
  }

  /** Runs `work` when its turn has come. A signal that fires while it waits rejects with what `abandoned` gives. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal, abandoned: () => Error): Promise<T> {
    await this.#turn(signal, abandoned);
    try {
      return await work();
    } finally {
      this.#pass();
    }
  }

  #turn(signal: AbortSignal, abandoned: () => Error): Promise<void> {
    if (signal.aborted) return Promise.reject(abandoned());
    if (this.#running < this.limit) {
      this.#running += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(abandoned());
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(enter);
    });
  }

  /** The place goes to the next one, or is free. */
  #pass(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }
}
