import { StreamEnd } from '#cbt/stream-end';
import { dropped } from '#platform/young-garbage';

/** What may be under way to a caller: enough that its connection never waits for us, and all that it can cost us. */
const MAX_BYTES = 256 * 1024;
const MAX_MESSAGES = 64;

/** A reader that takes nothing but is heard of has so many times longer: it may copy what a message told it of. */
const LIVING = 30;

/** Looks at the reader in the time after which it counts as gone. */
const LOOKS = 4;

/**
 * Messages on their way to one caller. A stream's own buffer counts messages, whatever their size, so what the caller has
 * not taken is counted here, by bytes. `write` hands a message over and calls back when the connection has taken it.
 */
export class Outflow {
  private bytes = 0;
  private messages = 0;
  private onTaken: (() => void) | undefined;

  /**
   * @param stallMs after so long without a sign of life while we wait, the stream ends with StreamEnd `stalled`; without a
   *   message taken, after LIVING times as long
   * @param heard grows with each sign of life: bytes that came by the caller's connection
   */
  constructor(
    private readonly write: (message: Buffer, taken: () => void) => void,
    private readonly stallMs: number,
    private readonly signal: AbortSignal,
    private readonly heard: () => number = () => 0,
  ) {}

  /**
   * Resolves when another message may come; undefined when that is now. Rejects with the signal's reason. `taken` is
   * called when the message is needed no more, unless the stream ends before.
   */
  send(message: Buffer, taken?: (message: Buffer) => void): Promise<void> | undefined {
    const { length } = message;
    this.bytes += length;
    this.messages++;
    this.write(message, () => {
      taken?.(message);
      dropped(length);
      this.bytes -= length;
      this.messages--;
      this.onTaken?.();
    });
    return this.hasRoom() ? undefined : this.until(() => this.hasRoom());
  }

  /** Resolves when all is taken. */
  async flushed(): Promise<void> {
    if (this.messages > 0) await this.until(() => this.messages === 0);
  }

  private hasRoom(): boolean {
    return this.bytes < MAX_BYTES && this.messages < MAX_MESSAGES;
  }

  private until(enough: () => boolean): Promise<void> {
    const { signal, stallMs, heard } = this;
    return new Promise((resolve, reject) => {
      let lastHeard = heard();
      let progressAt = performance.now();
      let heardAt = progressAt;
      const done = (settle: () => void): void => {
        clearInterval(watch);
        signal.removeEventListener('abort', aborted);
        this.onTaken = undefined;
        settle();
      };
      const stalled = (why: string): void => done(() => reject(new StreamEnd('stalled', why)));
      const watch = setInterval(() => {
        const now = performance.now();
        const takenMs = Math.round(now - progressAt);
        if (heard() !== lastHeard) {
          lastHeard = heard();
          heardAt = now;
        }
        if (now - heardAt >= stallMs) stalled(`nothing was read for ${takenMs} ms, nor heard of the reader`);
        else if (takenMs >= LIVING * stallMs) stalled(`nothing was read for ${takenMs} ms`);
      }, stallMs / LOOKS);
      const aborted = (): void => done(() => reject(signal.reason));
      signal.addEventListener('abort', aborted, { once: true });
      this.onTaken = () => {
        if (enough()) done(resolve);
        else {
          progressAt = performance.now();
          heardAt = progressAt;
        }
      };
      if (signal.aborted) aborted();
      else if (enough()) done(resolve);
    });
  }
}
