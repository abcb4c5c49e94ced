import { setTimeout as delay } from 'node:timers/promises';

const CALL_MS = 90_000;
/** A gateway that is started again is back long before. */
const PATIENCE_MS = 120_000;
/** Whoever sends a signal waits for the end: systemd kills after 90 s. */
const LAST_MS = 10_000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 3_000;

export interface Waiting {
  /** Ends the work. Calls that are made afterwards clean up. */
  signal?: AbortSignal;
  /** Told once when a gateway that does not answer is waited for. */
  say?(line: string): void;
}

/** How long the calls of a tool wait for a gateway: long while it may be started again, shortly once a signal has come. */
export class Patience {
  readonly #signal: AbortSignal | undefined;
  readonly #say: (line: string) => void;
  /** Of what a signal leaves to be done. */
  #endsAt = Number.POSITIVE_INFINITY;
  /** Ends the calls that the signal found under way. */
  readonly #hurry = new AbortController();
  /** What cleans up has waited in vain: nothing waits again. */
  #isOver = false;
  #isTold = false;

  constructor(
    { signal, say = () => {} }: Waiting,
    private readonly lastMs = LAST_MS,
  ) {
    this.#signal = signal;
    this.#say = say;
    signal?.addEventListener('abort', () => {
      this.#endsAt = Date.now() + lastMs;
      setTimeout(() => this.#hurry.abort(), lastMs).unref();
    });
  }

  /** Of one attempt. */
  limit(): AbortSignal {
    if (this.#isOver) return AbortSignal.abort();
    if (this.#signal?.aborted) return AbortSignal.timeout(this.lastMs);
    return AbortSignal.any([AbortSignal.timeout(CALL_MS), this.#hurry.signal]);
  }

  /** The next gateway that does not answer is worth a line again. */
  answered(): void {
    this.#isTold = false;
  }

  /** Of one call: resolves when it is time to try it once more, else throws the signal's reason, or what the attempt threw. */
  ofCall(): (failure: Error) => Promise<void> {
    const signal = this.#signal;
    const cleansUp = signal?.aborted ?? false;
    const giveUpAt = Date.now() + PATIENCE_MS;
    let pause = FIRST_PAUSE_MS;
    return async failure => {
      if (!cleansUp) signal?.throwIfAborted();
      const left = Math.min(giveUpAt, this.#endsAt) - Date.now();
      if (left <= 0) {
        this.#isOver = cleansUp;
        throw failure;
      }
      if (!this.#isTold) this.#say(`${failure.message}; waiting for it up to ${Math.ceil(left / 1_000)} s`);
      this.#isTold = true;
      if (cleansUp) await delay(Math.min(pause, left));
      else await delay(pause, undefined, { signal }).catch(() => signal!.throwIfAborted());
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    };
  }
}
