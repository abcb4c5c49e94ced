import { setTimeout as delay } from 'node:timers/promises';
import type { eventRoutes } from '#admin/contract/overview';
import type { ApiClient, Sent } from './api-client.js';
import { ApiError } from './api-error.js';
import { readEvents } from './event-reader.js';
import { LiveLines } from './live-lines.js';
import { untilInterrupted } from './watch.js';

export interface Watched<T> {
  /** Whose events may change it. */
  query: Sent<typeof eventRoutes.stream>['query'];
  read(): Promise<T>;
  /** For a terminal. */
  lines(value: T): string[];
  /** For a file, pipe or script: a line for each thing that is not as it was. */
  changes(before: T | undefined, now: T): string[];
  /** Nothing changes it any more. */
  isOver?(value: T): boolean;
}

/** A storm of events reads once. */
const GATHER_MS = 400;
const REDRAW_MS = 1_000;

/**
 * Shows what is read, and again whenever an event says that it may be different: over itself at a terminal, else a line a
 * change. Until Ctrl-C, or until it is over. Throws what the API refuses.
 */
export async function watchChanges<T>(api: ApiClient, watched: Watched<T>, out = process.stdout): Promise<void> {
  const stop = untilInterrupted();
  const live = out.isTTY ? new LiveLines(out) : undefined;
  const bell = new Bell();
  let value: T | undefined;
  let lost = '';
  const draw = (): void => {
    if (value !== undefined) live?.show([...watched.lines(value), lost === '' ? 'live; Ctrl-C ends' : lost]);
  };
  const look = async (): Promise<void> => {
    const now = await watched.read();
    for (const line of live ? [] : watched.changes(value, now)) out.write(`${line}\n`);
    value = now;
    draw();
  };
  const listen = async (): Promise<void> => {
    for await (const message of readEvents(api, watched.query, stop.signal, () => bell.ring())) {
      lost = message.type === 'lost' ? `connection lost (${message.why}), retrying` : '';
      if (message.type === 'lost') draw();
      else bell.ring();
    }
  };
  const isOver = (): boolean => value !== undefined && (watched.isOver?.(value) ?? false);
  const follow = async (): Promise<void> => {
    while (!isOver() && (await bell.rung(stop.signal))) {
      await delay(GATHER_MS, undefined, { signal: stop.signal }).catch(() => {});
      if (stop.signal.aborted) return;
      await look().catch(error => {
        if (!(error instanceof ApiError) || !error.broken) throw error;
        bell.ring();
      });
    }
  };
  // How old things are goes on without an event.
  const ticking = live && setInterval(draw, REDRAW_MS);
  let listening: Promise<void> | undefined;
  try {
    await look();
    listening = listen();
    await Promise.race([follow(), listening]);
  } finally {
    clearInterval(ticking);
    stop.abort();
    await listening?.catch(() => {});
    live?.end();
  }
}

/** Remembers that it rang, once. */
class Bell {
  private isRung = false;
  private hear = (): void => {};

  ring(): void {
    this.isRung = true;
    this.hear();
  }

  /** False: the signal came first. */
  async rung(signal: AbortSignal): Promise<boolean> {
    if (!this.isRung && !signal.aborted)
      await new Promise<void>(resolve => {
        this.hear = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    this.isRung = false;
    return !signal.aborted;
  }
}
