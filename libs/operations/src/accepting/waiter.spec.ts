import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OperationWaiter } from '#operations/accepting/waiter';
import type { Database } from '#platform/database/database';

const TENANT = '01900000-0000-7000-8000-000000000000';

/** Rows to answer with, and a hand on the LISTEN connection. */
class FakeDatabase {
  readonly rows = new Map<string, Record<string, unknown>>();
  readonly asked: string[][] = [];
  failing = false;
  notify!: (channel: string, id: string) => void;
  reconnected!: () => void;
  stopped = false;

  listen(_: readonly string[], onNotify: (channel: string, id: string) => void, onConnect: () => void) {
    this.notify = onNotify;
    this.reconnected = onConnect;
    const stop = async (): Promise<void> => {
      this.stopped = true;
    };
    return { connected: () => true, stop };
  }

  async call(_: unknown, [, ids]: [string, string[]]) {
    this.asked.push(ids);
    if (this.failing) throw new Error('the database is away');
    return ids.flatMap(id => (this.rows.has(id) ? [{ id, ...row, ...this.rows.get(id) }] : []));
  }
}
const row = { state: 'pending', error: null, result: null, inFuture: false, circuit: null };

let database: FakeDatabase;
let waiter: OperationWaiter;
beforeEach(() => {
  // Not setImmediate: it is not about time.
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  database = new FakeDatabase();
  waiter = new OperationWaiter(database as unknown as Database);
});
afterEach(async () => {
  await waiter.close();
  vi.useRealTimers();
});

const wait = (id: string, ms = 60_000, signal?: AbortSignal) => waiter.wait(TENANT, id, Date.now() + ms, signal);

describe('a wait', () => {
  it('ends with the notification', async () => {
    const outcome = wait('a');
    database.rows.set('a', { state: 'succeeded', result: 7 });
    database.notify('trivet_done', 'a');
    expect(await outcome).toEqual({ state: 'succeeded', result: 7 });
  });

  it('ends by the poll when the notification was lost', async () => {
    const outcome = wait('a');
    database.rows.set('a', { state: 'succeeded' });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await outcome).toMatchObject({ state: 'succeeded' });
  });

  it('ends when the connection is back, whatever was missed meanwhile', async () => {
    const outcome = wait('a');
    database.rows.set('a', { state: 'cancelled' });
    database.reconnected();
    expect(await outcome).toEqual({ state: 'cancelled' });
  });

  it('outlives a database that is away', async () => {
    const outcome = wait('a');
    database.failing = true;
    database.notify('trivet_done', 'a');
    await vi.advanceTimersByTimeAsync(3_000);
    database.failing = false;
    database.rows.set('a', { state: 'succeeded' });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await outcome).toMatchObject({ state: 'succeeded' });
  });

  it('ends unfinished at its deadline, when its caller leaves, and when the process stops', async () => {
    const late = wait('a', 500);
    const leaving = new AbortController();
    const left = wait('a', 60_000, leaving.signal);
    const stopped = wait('a');
    const gone = wait('a', 60_000, AbortSignal.abort());
    expect(await gone).toEqual({ state: 'unfinished' });
    await vi.advanceTimersByTimeAsync(500);
    expect(await late).toEqual({ state: 'unfinished' });
    leaving.abort();
    expect(await left).toEqual({ state: 'unfinished' });
    await waiter.close();
    expect(await stopped).toEqual({ state: 'unfinished' });
    expect(database.stopped).toBe(true);
  });

  it('asks for nothing that nobody waits for any more', async () => {
    await Promise.all([wait('a', 0), vi.advanceTimersByTimeAsync(1)]);
    database.notify('trivet_done', 'a');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(database.asked).toEqual([]);
  });

  it('reads by one statement what ended in one transaction', async () => {
    const outcomes = ['a', 'b', 'c'].map(id => wait(id));
    for (const id of ['a', 'b', 'c']) {
      database.rows.set(id, { state: 'succeeded' });
      database.notify('trivet_done', id);
    }
    for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatchObject({ state: 'succeeded' });
    expect(database.asked).toEqual([['a', 'b', 'c']]);
  });

  it('ends by the notification alone, of several together, when there is nothing to read', async () => {
    const outcomes = [wait('a'), wait('b'), wait('b')];
    const other = wait('c');
    database.rows.set('c', { state: 'failed', error: { kind: 'internal' } });
    database.notify('trivet_succeeded', 'a,b,heard-elsewhere');
    for (const id of ['a', 'b', 'c']) database.notify('trivet_done', id);
    expect(await Promise.all(outcomes)).toEqual(Array(3).fill({ state: 'succeeded', result: null }));
    expect(await other).toMatchObject({ state: 'failed' });
    expect(database.asked).toEqual([['c']]);
  });

  it('ends at once when nothing came of its operation', async () => {
    const [first, second] = [wait('a'), wait('a')];
    waiter.leave('a');
    expect(await Promise.all([first, second])).toEqual([{ state: 'unfinished' }, { state: 'unfinished' }]);
    expect(waiter.size).toBe(0);
  });

  it('tells everybody who waits for the same operation, by one read', async () => {
    const outcomes = [wait('a'), wait('a'), wait('b')];
    database.rows.set('a', { state: 'succeeded' });
    database.rows.set('b', { state: 'succeeded' });
    await vi.advanceTimersByTimeAsync(1_000);
    for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatchObject({ state: 'succeeded' });
    expect(database.asked).toEqual([['a', 'b']]);
  });
});

const error = { kind: 'unavailable', message: 'down', retry: 'later' };

describe('what is told', () => {
  it.each([
    { what: 'failed', row: { state: 'failed', error }, outcome: { state: 'failed', error } },
    { what: 'parked', row: { state: 'needs_attention', error }, outcome: { state: 'needs_attention', error } },
    { what: 'retrying', row: { error, inFuture: true }, outcome: { state: 'retrying', error } },
    {
      what: 'behind an open circuit',
      row: { circuit: 'no route' },
      outcome: { state: 'retrying', error: { kind: 'unavailable', message: 'no route' } },
    },
    {
      what: 'running behind an open circuit',
      row: { state: 'running', circuit: 'no route' },
      outcome: { state: 'retrying', error: { kind: 'unavailable', message: 'no route' } },
    },
  ])('of an operation that is $what', async ({ row: stored, outcome }) => {
    const waiting = wait('a');
    database.rows.set('a', stored);
    database.notify('trivet_done', 'a');
    expect(await waiting).toMatchObject(outcome);
  });

  it.each([
    { what: 'running, whatever its last error', row: { state: 'running', error, inFuture: true } },
    { what: 'in line for the first time', row: {} },
    { what: 'only further back in the line', row: { error: { ...error, kind: 'aborted' }, inFuture: true } },
    { what: 'about to run again', row: { error, inFuture: false } },
  ])('nothing of an operation that is $what', async ({ row: stored }) => {
    let told = false;
    void wait('a').then(() => {
      told = true;
    });
    database.rows.set('a', stored);
    database.notify('trivet_done', 'a');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(told).toBe(false);
    expect(database.asked.length).toBeGreaterThan(1);
  });
});
