/** Says what was done and how long it took, and takes back what it can. */
export class Steps {
  readonly #undo: { what: string; work: () => Promise<unknown> }[] = [];

  constructor(private readonly say: (line: string) => void) {}

  readonly step = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const begin = performance.now();
    const result = await work();
    this.say(`${`${(performance.now() - begin).toFixed(0)} ms`.padStart(8)}  ${what}`);
    return result;
  };

  /** To be done at the end, last first: by `takeBack`, after a failure, or before by the returned function. */
  later(what: string, work: () => Promise<unknown>): () => Promise<void> {
    const entry = { what, work };
    this.#undo.push(entry);
    return async () => {
      await this.step(what, work);
      this.#undo.splice(this.#undo.indexOf(entry), 1);
    };
  }

  async takeBack(): Promise<void> {
    for (let next = this.#undo.at(-1); next; next = this.#undo.at(-1)) {
      await this.step(next.what, next.work);
      this.#undo.pop();
    }
  }

  /** After a failure: everything is tried. */
  async abandon(): Promise<void> {
    for (let next = this.#undo.pop(); next; next = this.#undo.pop())
      await next.work().catch((error: Error) => this.say(`left behind: ${error.message}`));
  }
}
