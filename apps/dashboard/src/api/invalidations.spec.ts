import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Invalidations } from './invalidations';

const OPERATION = { type: 'operation', operation: { id: 'o1', resource: { kind: 'volume' } } } as const;

describe('what is read again', () => {
  const client = new QueryClient();
  let reads: string[];
  let answers: (() => void)[];
  let stops: (() => void)[];
  let invalidations: Invalidations;

  /** A list that a page shows; its answers come when `answer` is called. */
  const show = (path: string): QueryObserver<number> => {
    const observer = new QueryObserver<number>(client, {
      queryKey: [path, {}],
      queryFn: () => {
        reads.push(path);
        return new Promise(resolve => answers.push(() => resolve(reads.length)));
      },
    });
    stops.push(observer.subscribe(() => {}));
    return observer;
  };
  const answer = async (): Promise<void> => {
    for (const each of answers.splice(0)) each();
    await vi.advanceTimersByTimeAsync(0);
  };

  beforeEach(() => {
    vi.useFakeTimers();
    [reads, answers, stops] = [[], [], []];
    invalidations = new Invalidations(client);
  });
  afterEach(() => {
    for (const stop of stops) stop();
    invalidations.stop();
    client.clear();
    vi.useRealTimers();
  });

  it('is what an event is about, once for a storm of them', async () => {
    show('/tenants/{tenant}/volumes');
    show('/tenants/{tenant}/users');
    await answer();
    for (let n = 0; n < 100; n++) invalidations.heard(OPERATION);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads).toEqual(['/tenants/{tenant}/volumes', '/tenants/{tenant}/users', '/tenants/{tenant}/volumes']);
  });

  it('is no total of a list: pages count those now and then', async () => {
    show('/tenants/{tenant}/totals/volumes');
    await answer();
    invalidations.heard(OPERATION);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads).toHaveLength(1);
  });

  it('is nothing while it is held, though an event was heard just before', async () => {
    show('/tenants/{tenant}/volumes');
    await answer();
    invalidations.heard(OPERATION);
    invalidations.hold();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reads).toHaveLength(1);
  });

  it('does not change what is shown by an answer that was under way when it was held', async () => {
    const shown = show('/tenants/{tenant}/volumes');
    await answer();
    invalidations.everything();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads).toHaveLength(2);
    invalidations.hold();
    await answer();
    expect(shown.getCurrentResult()).toMatchObject({ data: 1, fetchStatus: 'idle', status: 'success' });
  });

  it('is still read for the first time while it is held', async () => {
    const shown = show('/tenants/{tenant}/volumes');
    invalidations.hold();
    await answer();
    expect(shown.getCurrentResult()).toMatchObject({ data: 1, status: 'success' });
  });

  it('is everything after it was held', async () => {
    show('/tenants/{tenant}/users');
    await answer();
    invalidations.hold();
    invalidations.everything();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads).toHaveLength(2);
  });
});
