/** What waits to be done, once for each key: some at a time, a failed one again after a while. Bounded: who is told "full" looks again later. */
export class Backlog<T extends object> {
  private readonly waiting = new Map<string, T>();
  private readonly tries = new Map<string, { count: number; timer?: NodeJS.Timeout }>();
  private readonly running = new Set<string>();

  /** @param work gives whether it is done; rejects never */
  constructor(
    private readonly work: (item: T, tries: number) => Promise<boolean>,
    private readonly limits: { atOnce: number; most: number; firstMs: number; lastMs: number },
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => {
      for (const { timer } of this.tries.values()) clearTimeout(timer);
    });
  }

  /** The newest of a key counts, also when an older one is worked on. False: there is no place. */
  add(key: string, item: T): boolean {
    if (!this.waiting.has(key) && this.waiting.size >= this.limits.most) return false;
    this.waiting.set(key, item);
    this.start();
    return true;
  }

  drop(key: string): void {
    this.waiting.delete(key);
    this.forget(key);
  }

  get size(): number {
    return this.waiting.size;
  }

  private forget(key: string): void {
    clearTimeout(this.tries.get(key)?.timer);
    this.tries.delete(key);
  }

  private start(): void {
    for (const [key, item] of this.waiting) {
      if (this.running.size >= this.limits.atOnce || this.signal.aborted) return;
      if (!this.running.has(key) && !this.tries.get(key)?.timer) void this.run(key, item);
    }
  }

  private async run(key: string, item: T): Promise<void> {
    this.running.add(key);
    const count = (this.tries.get(key)?.count ?? 0) + 1;
    const isDone = await this.work(item, count);
    this.running.delete(key);
    if (isDone) {
      this.forget(key);
      if (this.waiting.get(key) === item) this.waiting.delete(key);
    } else if (this.waiting.has(key)) this.again(key, count);
    this.start();
  }

  private again(key: string, count: number): void {
    if (this.signal.aborted) return;
    const { firstMs, lastMs } = this.limits;
    const timer = setTimeout(
      () => {
        this.tries.set(key, { count });
        this.start();
      },
      Math.min(lastMs, firstMs * 2 ** (count - 1)),
    );
    this.tries.set(key, { count, timer });
  }
}
