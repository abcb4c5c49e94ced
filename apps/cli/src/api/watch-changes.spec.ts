import { EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { tenantRoutes } from '#admin/contract/tenants';
import { TerminalScreen } from '#test/support/terminal-screen';
import { ApiClient } from './api-client.js';
import { ApiError } from './api-error.js';
import { type Watched, watchChanges } from './watch-changes.js';

/** An output that somebody reads, who may leave. */
class Reader extends EventEmitter {
  text = '';
  isTTY = false;
  columns = 80;
  rows = 24;
  write = (text: string): boolean => {
    this.text += text;
    return true;
  };
  leave(): void {
    this.emit('error', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  }
}

class Terminal extends Reader {
  override isTTY = true;
  readonly screen = new TerminalScreen(40, 5);
  override columns = 40;
  override rows = 5;
  override write = this.screen.write;
}

/** An API whose stream of events says what it is told to. */
class Events {
  private controller!: ReadableStreamDefaultController<Uint8Array>;
  readonly lastIds: (string | undefined)[] = [];
  refusal: ApiError | undefined;
  ending: AbortSignal | undefined;
  readonly api = {
    endWith: (signal: AbortSignal) => {
      this.ending = signal;
    },
    stream: async (_route: unknown, _sent: unknown, signal: AbortSignal, headers: Record<string, string>) => {
      if (this.refusal) throw this.refusal;
      this.lastIds.push(headers['last-event-id']);
      return new ReadableStream<Uint8Array>({
        start: controller => {
          this.controller = controller;
          signal.addEventListener('abort', () => controller.error(signal.reason));
        },
      });
    },
  } as unknown as ApiClient;

  say(text: string): void {
    this.controller.enqueue(new TextEncoder().encode(text));
  }
  break(): void {
    this.controller.close();
  }
}

const unavailable = (status: number, retryable?: boolean): ApiError => {
  const problem = { title: 't', detail: 'not now', code: 'c', instance: 'i', operation: null, status, retryable };
  const answer = { status, url: 'http://gw/api', statusText: '' } as Response;
  return ApiError.of(answer, retryable === undefined ? undefined : (problem as never), 'from a proxy');
};

const counting = (read: (n: number) => number | Promise<number>, watched: Partial<Watched<number>> = {}) => {
  let n = 0;
  return {
    query: {},
    json: false,
    read: async () => read(++n),
    lines: value => [`value ${value}`],
    changes: (before, now) => (before === now ? [] : [`${before ?? 'none'} > ${now}`]),
    ...watched,
  } satisfies Watched<number>;
};
const NEVER = 3_600_000;

describe('what is watched', () => {
  it('is looked at again without an event: not all that changes says so', async () => {
    const out = new Reader();
    const { api } = new Events();
    const watching = watchChanges(
      api,
      counting(n => n),
      { out, lookMs: 5, gatherMs: 1 },
    );
    // The begin of the stream is one more look.
    await vi.waitFor(() => expect(out.text).toContain('2 > 3\n'), { timeout: 5_000 });
    out.leave();
    await watching;
  });

  it('says once that it does not see what is watched', async () => {
    const err = new Reader();
    const out = new Reader();
    const read = (n: number) => {
      if (n > 1) throw unavailable(503, true);
      return n;
    };
    const watched = counting(read);
    const spy = vi.spyOn(watched, 'read');
    const watching = watchChanges(new Events().api, watched, { out, err, lookMs: 5, gatherMs: 1 });
    await vi.waitFor(() => expect(spy).toHaveBeenCalledTimes(3), { timeout: 5_000 });
    out.leave();
    await watching;
    expect(err.text).toBe('trivet: connection lost (not now), retrying\n');
  });

  it.each([
    ['503 of a gateway', unavailable(503, true)],
    ['502 of a proxy', unavailable(502)],
    ['a connection that breaks', ApiError.broken('it broke')],
  ])('is shown on after %s, which is said beside it', async (_, error) => {
    const out = new Reader();
    const err = new Reader();
    const read = (n: number) => {
      if (n === 2) throw error;
      return n;
    };
    const watching = watchChanges(new Events().api, counting(read), { out, err, lookMs: 5, gatherMs: 1 });
    await vi.waitFor(() => expect(out.text).toContain('1 > 3\n'), { timeout: 5_000 });
    out.leave();
    await watching;
    expect(err.text).toBe(`trivet: connection lost (${error.message.split('\n')[0]}), retrying\n`);
  });

  it('ends with what the API refuses', async () => {
    const read = (n: number) => {
      if (n > 1) throw unavailable(403, false);
      return n;
    };
    const watching = watchChanges(new Events().api, counting(read), { out: new Reader(), lookMs: 5, gatherMs: 1 });
    await expect(watching).rejects.toThrow('not now');
  });

  it('ends when nobody reads it any more, also with a read under way', async () => {
    const out = new Reader();
    const events = new Events();
    // As a call does, by what it was given.
    const read = (n: number) =>
      n === 1
        ? n
        : new Promise<number>((_, reject) => events.ending!.addEventListener('abort', () => reject(new Error('late'))));
    const watched = counting(read);
    const spy = vi.spyOn(watched, 'read');
    const watching = watchChanges(events.api, watched, { out, lookMs: 5, gatherMs: 1 });
    await vi.waitFor(() => expect(spy).toHaveBeenCalledTimes(2), { timeout: 5_000 });
    out.leave();
    await watching;
    expect(out.text).toBe('none > 1\n');
  });

  it('resumes behind a heartbeat, and says so', async () => {
    const out = new Terminal();
    const events = new Events();
    const watching = watchChanges(
      events.api,
      counting(() => 1),
      { out, lookMs: NEVER },
    );
    await vi.waitFor(() => expect(events.lastIds).toEqual([undefined]));
    events.say('id: 5-0\n\n');
    events.break();
    await vi.waitFor(() => expect(out.screen.lines()[1]).toMatch(/^connection lost/));
    await vi.waitFor(() => expect(events.lastIds).toEqual([undefined, '5-0']), { timeout: 5_000 });
    events.say(': heartbeat\nid: 6-0\n\n');
    await vi.waitFor(() => expect(out.screen.lines()).toEqual(['value 1', 'live; Ctrl-C ends']));
    out.leave();
    await watching;
  });
});

describe('what is watched at a terminal', () => {
  it('is a line a change as JSON', async () => {
    const out = new Terminal();
    const watching = watchChanges(
      new Events().api,
      counting(n => n, { json: true }),
      { out, lookMs: NEVER },
    );
    await vi.waitFor(() => expect(out.screen.lines()).toEqual(['none > 1']));
    out.leave();
    await watching;
  });

  it('stays whole when it is over, and is not called live', async () => {
    const out = new Terminal();
    const lines = Array.from({ length: 8 }, (_, n) => `line ${n}`);
    const watched = counting(n => n, { lines: () => lines, isOver: value => value === 2 });
    await watchChanges(new Events().api, watched, { out, lookMs: 5, gatherMs: 1 });
    expect([...out.screen.scrolled, ...out.screen.lines()]).toEqual(lines);
    expect(out.screen.hasCursor).toBe(true);
  });

  it('leaves a cursor and one table, whatever is read when it ends', async () => {
    const out = new Terminal();
    await endWhileReading(out);
    expect(out.screen.lines()).toEqual(['value 1', 'live; Ctrl-C ends']);
    expect(out.screen.hasCursor).toBe(true);
  });
});

describe('what is watched elsewhere', () => {
  it('is told by nothing that is read after the end', async () => {
    const out = new Reader();
    await endWhileReading(out);
    expect(out.text).toBe('none > 1\n');
  });
});

/** The read does not heed the end, and is answered after it. */
async function endWhileReading(out: Reader): Promise<void> {
  let answer = (_: number): void => {};
  const late = new Promise<number>(resolve => {
    answer = resolve;
  });
  const watched = counting(n => (n === 1 ? n : late));
  const spy = vi.spyOn(watched, 'read');
  const watching = watchChanges(new Events().api, watched, { out, lookMs: 5, gatherMs: 1 });
  await vi.waitFor(() => expect(spy).toHaveBeenCalledTimes(2), { timeout: 5_000 });
  out.leave();
  const following = watching.then(() => new Promise(setImmediate));
  answer(2);
  await following;
}

describe('a call', () => {
  it('ends with the command that asks', async () => {
    const server = createServer(() => {}).listen(0, '127.0.0.1');
    await new Promise(resolve => server.once('listening', resolve));
    try {
      const api = new ApiClient({
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        token: 't',
      } as never);
      const stop = new AbortController();
      api.endWith(stop.signal);
      const call = api.call(tenantRoutes.list).catch(error => error.name);
      await new Promise(resolve => server.once('request', resolve));
      stop.abort();
      expect(await call).toBe('AbortError');
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
