import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { eventRoutes } from '#admin/contract/overview';
import type { ApiClient, Sent } from './api-client.js';
import { ApiError } from './api-error.js';
import { lostBy, pauseAfter, readEvents } from './event-reader.js';
import { LiveLines, type LiveOut } from './live-lines.js';
import { untilInterrupted } from './watch.js';

export interface Watched<T> {
  /** Whose events may change it. */
  query: Sent<typeof eventRoutes.stream>['query'];
  read(): Promise<T>;
  /** Each change is a line at a terminal, too. */
  json: boolean | undefined;
  /** For a terminal. */
  lines(value: T): string[];
  /** Below them, in sight however many there are. */
  foot?(value: T): string[];
  /** For a file, pipe or script: a line for each thing that is not as it was. */
  changes(before: T | undefined, now: T): string[];
  /** Nothing changes it any more. */
  isOver?(value: T): boolean;
}

/** A storm of events reads once. */
const GATHER_MS = 400;
/** What hosts and backends say of themselves (pools, health, usage) comes with no event. */
const LOOK_MS = 10_000;
const REDRAW_MS = 1_000;

interface Where {
  out?: LiveOut & Pick<EventEmitter, 'once'>;
  err?: Pick<LiveOut, 'write'>;
  lookMs?: number;
  gatherMs?: number;
}

/**
 * Shows what is read, and again whenever an event says that it may be different, and at times without one: over itself at a
 * terminal, else a line a change. Until Ctrl-C, until it is over, or until nobody reads it. Throws what the API refuses.
 */
export async function watchChanges<T>(
  api: ApiClient,
  watched: Watched<T>,
  { out = process.stdout, err = process.stderr, lookMs = LOOK_MS, gatherMs = GATHER_MS }: Where = {},
): Promise<void> {
  const stop = untilInterrupted(out);
  api.endWith(stop.signal);
  const live = out.isTTY && !watched.json ? new LiveLines(out) : undefined;
  const bell = new Bell();
  let value: T | undefined;
  const lost = { events: '', reads: '' };
  const draw = (): void => {
    if (value === undefined) return;
    const state = lost.events || lost.reads || 'live; Ctrl-C ends';
    live?.show(watched.lines(value), [...(watched.foot?.(value) ?? []), state]);
  };
  const connection = (of: keyof typeof lost, state: string): void => {
    const isNews = !lost.events && !lost.reads && state !== '';
    lost[of] = state;
    if (isNews && !live) err.write(`trivet: ${state}\n`);
    draw();
  };
  const look = async (): Promise<void> => {
    const now = await watched.read();
    if (stop.signal.aborted) return;
    for (const line of live ? [] : watched.changes(value, now)) out.write(`${line}\n`);
    value = now;
    connection('reads', '');
  };
  const listen = async (): Promise<void> => {
    for await (const message of readEvents(api, watched.query, stop.signal, () => bell.ring())) {
      connection('events', message.type === 'lost' ? lostBy(message.why) : '');
      if (message.type === 'event' || message.type === 'reset') bell.ring();
    }
  };
  const isOver = (): boolean => value !== undefined && (watched.isOver?.(value) ?? false);
  const follow = async (): Promise<void> => {
    let failures = 0;
    while (!isOver() && (await bell.rung(stop.signal))) {
      const pause = failures === 0 ? gatherMs : pauseAfter(failures - 1);
      await delay(pause, undefined, { signal: stop.signal }).catch(() => {});
      if (stop.signal.aborted) return;
      try {
        await look();
        failures = 0;
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!(error instanceof ApiError) || !error.passes) throw error;
        failures++;
        connection('reads', lostBy(error.message.split('\n')[0]!));
        bell.ring();
      }
    }
  };
  // How old things are goes on without an event.
  const ticking = live && setInterval(draw, REDRAW_MS);
  const looking = setInterval(() => bell.ring(), lookMs);
  let listening: Promise<void> | undefined;
  try {
    await look();
    listening = listen();
    await Promise.race([follow(), listening]);
  } catch (error) {
    // What was under way when it was to end is no failure of it.
    if (!stop.signal.aborted) throw error;
  } finally {
    clearInterval(ticking);
    clearInterval(looking);
    const whole = isOver() ? watched.lines(value!) : undefined;
    stop.abort();
    await listening?.catch(() => {});
    live?.end(whole);
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
    if (!this.isRung && !signal.aborted) {
      const heard = new Promise<void>(resolve => {
        this.hear = resolve;
      });
      signal.addEventListener('abort', this.hear);
      await heard;
      signal.removeEventListener('abort', this.hear);
    }
    this.isRung = false;
    return !signal.aborted;
  }
}
