/**
 * What the store's clock says, as far as its answers prove that it differs from ours. A request that is refused after some
 * seconds must be dated by the clock that refuses it.
 */
export class StoreClock {
  #offsetMs = 0;

  /** An answer's Date, in whole seconds, of a moment between the two. */
  hear(date: string | undefined, sentAt: number, receivedAt: number): void {
    const told = Date.parse(date ?? '');
    if (Number.isNaN(told)) return;
    const [least, most] = [told - receivedAt, told + 999 - sentAt];
    this.#offsetMs = Math.min(Math.max(this.#offsetMs, least), most);
  }

  now(): number {
    return Date.now() + this.#offsetMs;
  }
}
