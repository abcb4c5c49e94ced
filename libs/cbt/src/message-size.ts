/** Of the first message, so that it comes early: the next ones are ready before it is used. */
const FIRST_RANGES = 256;
const FEWEST_RANGES = 64;
const FACTOR = 4;
/** A reader that lets us wait for so long works on what it gets, and smaller pieces keep it and us informed. */
const SLOW_MS = 1_000;

/** How many ranges the next message of a stream holds: few at first and for slow readers, else as many as it may. */
export class MessageSize {
  ranges: number;

  constructor(private readonly most: number) {
    this.ranges = Math.min(FIRST_RANGES, most);
  }

  /** @param waitedMs until there was room for another one */
  sent(waitedMs: number): void {
    this.ranges =
      waitedMs > SLOW_MS
        ? Math.min(this.most, Math.max(FEWEST_RANGES, Math.floor(this.ranges / FACTOR)))
        : Math.min(this.most, this.ranges * FACTOR);
  }
}
