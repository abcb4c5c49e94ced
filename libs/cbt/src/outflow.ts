import { StreamEnd } from '#cbt/stream-end';
import { dropped } from '#platform/process/young-garbage';

/** What may be under way to a caller: enough that its connection never waits for us, and all that it can cost us. */
const MAX_BYTES = 256 * 1024;
const MAX_MESSAGES = 64;

/** A reader that takes nothing but is heard of has so many times longer: it may copy what a message told it of. */
const LIVING = 30;

/** Looks at the reader in the time after which it counts as gone. */
const LOOKS = 4;

interface Wait {
  enough(): boolean;
  resolve(): void;
  reject(reason: unknown): void;
}

/**
 * Messages on their way to one caller. A stream's own buffer counts messages, whatever their size, so what the caller has
 * not taken is counted here, by bytes. `write` hands a message over and calls back when the connection has taken it.
 * There is a wait for most messages, so a wait itself costs neither a timer nor a listener.
 */
export class Outflow {
  private bytes = 0;
  private messages = 0;
  private wait: Wait | undefined;
  private watch: NodeJS.Timeout | undefined;
  private lastHeard = 0;
  private heardAt = 0;
  private progressAt = 0;

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
  ) {
    signal.addEventListener('abort', () => this.end(signal.reason), { once: true });
  }

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
      this.progressed();
    });
    return this.hasRoom() ? undefined : this.until(() => this.hasRoom());
  }

  /** Resolves when all is taken. */
  async flushed(): Promise<void> {
    if (this.messages > 0) await this.until(() => this.messages === 0);
  }

  /** Nothing is waited for any more. */
  close(): void {
    clearInterval(this.watch);
    this.watch = undefined;
  }

  private hasRoom(): boolean {
    return this.bytes < MAX_BYTES && this.messages < MAX_MESSAGES;
  }

  private until(enough: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.wait = { enough, resolve, reject };
      if (this.signal.aborted) this.end(this.signal.reason);
      else this.progressed();
      this.watch ??= setInterval(() => this.look(), this.stallMs / LOOKS);
    });
  }

  private progressed(): void {
    this.progressAt = performance.now();
    this.heardAt = this.progressAt;
    const { wait } = this;
    if (!wait?.enough()) return;
    this.wait = undefined;
    wait.resolve();
  }

  private look(): void {
    const now = performance.now();
    const heard = this.heard();
    if (heard !== this.lastHeard) {
      this.lastHeard = heard;
      this.heardAt = now;
    }
    const takenMs = Math.round(now - this.progressAt);
    if (now - this.heardAt >= this.stallMs)
      this.end(new StreamEnd('stalled', `nothing was read for ${takenMs} ms, nor heard of the reader`));
    else if (takenMs >= LIVING * this.stallMs) this.end(new StreamEnd('stalled', `nothing was read for ${takenMs} ms`));
  }

  private end(reason: unknown): void {
    this.wait?.reject(reason);
    this.wait = undefined;
  }
}
