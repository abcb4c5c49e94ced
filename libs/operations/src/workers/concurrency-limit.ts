/** So many run at once; the next one waits until one of them has ended. */
export class ConcurrencyLimit {
  private inside = 0;
  private opened = false;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly most: number) {}

  get full(): boolean {
    return !this.opened && this.inside >= this.most;
  }

  /** Resolves when there is a place: whoever awaits it takes it at once, by `during`. */
  async free(): Promise<void> {
    while (this.full) await new Promise<void>(resolve => this.waiting.push(resolve));
  }

  /** @param work never rejects */
  during(work: Promise<void>): void {
    this.inside++;
    void work.finally(() => {
      this.inside--;
      this.waiting.shift()?.();
    });
  }

  /** From now on nobody waits: what comes is turned away further on. */
  open(): void {
    this.opened = true;
    for (const go of this.waiting.splice(0)) go();
  }
}
