/** Loaded before a worker's program: the clock of its machine is off by CLOCK_OFFSET_MS. Timers and the monotonic clock are as they are. */
const offset = Number(process.env.CLOCK_OFFSET_MS);
const Real = Date;

class OtherDate extends Real {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(Real.now() + offset);
    else super(...(given as [number]));
  }
  static override now(): number {
    return Real.now() + offset;
  }
}
globalThis.Date = OtherDate as unknown as DateConstructor;
