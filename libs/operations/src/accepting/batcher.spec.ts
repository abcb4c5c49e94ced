import { describe, expect, it } from 'vitest';
import { Batcher } from '#operations/accepting/batcher';
import { StorageError } from '#platform/errors';

const refused = (code: string) => new StorageError('aborted', 'no', { cause: Object.assign(new Error('x'), { code }) });

/** Batches that stay under way until they are let go. */
class Sent {
  readonly batches: { key: string; items: readonly number[]; end(): void; fail(error: unknown): void }[] = [];
  readonly together = new Batcher<number, string>(
    (key, items) =>
      new Promise((resolve, reject) => {
        this.batches.push({ key, items, end: () => resolve(items.map(n => `done ${n}`)), fail: reject });
      }),
  );

  add(...items: number[]): Promise<PromiseSettledResult<string>[]> {
    return Promise.allSettled(items.map(n => this.together.add('k', n)));
  }

  items = () => this.batches.map(({ items }) => items);
}

/** Past what the queue does at the end of a turn. */
const turns = async (): Promise<void> => {
  for (let n = 0; n < 4; n++) await new Promise(resolve => setImmediate(resolve));
};

describe('what comes together', () => {
  it('of one turn is one batch, answered in its order; another key is another batch', async () => {
    const sent = new Sent();
    const all = sent.add(1, 2, 3);
    const other = sent.together.add('other', 9);
    await turns();
    expect(sent.batches.map(({ key, items }) => [key, items])).toEqual([
      ['k', [1, 2, 3]],
      ['other', [9]],
    ]);
    for (const batch of sent.batches) batch.end();
    expect(await all).toMatchObject([1, 2, 3].map(n => ({ value: `done ${n}` })));
    expect(await other).toBe('done 9');
  });

  it('goes out at once while a lane is free, and collects while none is', async () => {
    const sent = new Sent();
    const waits = [sent.add(1)];
    await turns();
    waits.push(sent.add(2));
    await turns();
    waits.push(sent.add(3), sent.add(4));
    await turns();
    expect(sent.items()).toEqual([[1], [2]]);
    sent.batches[0]!.end();
    await turns();
    expect(sent.items()).toEqual([[1], [2], [3, 4]]);
    for (const batch of sent.batches.slice(1)) batch.end();
    expect((await Promise.all(waits)).flat().every(({ status }) => status === 'fulfilled')).toBe(true);
  });

  it('is sent one by one when the database refused the batch: only who is at fault pays', async () => {
    const sent = new Sent();
    const all = sent.add(1, 2);
    await turns();
    sent.batches[0]!.fail(refused('TV001'));
    await turns();
    expect(sent.items()).toEqual([[1, 2], [1], [2]]);
    sent.batches[1]!.end();
    sent.batches[2]!.fail(refused('TV001'));
    expect(await all).toMatchObject([{ value: 'done 1' }, { status: 'rejected', reason: { kind: 'aborted' } }]);
  });

  it.each(['57P01', '08006', 'ECONNRESET'])('is not sent again after %s: it may have happened', async code => {
    const sent = new Sent();
    const all = sent.add(1, 2);
    await turns();
    sent.batches[0]!.fail(refused(code));
    await turns();
    expect(sent.batches).toHaveLength(1);
    expect((await all).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});
