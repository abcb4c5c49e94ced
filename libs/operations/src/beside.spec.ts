import { expect, it } from 'vitest';
import { beside } from '#operations/beside';

it('keeps nobody else waiting, and is not begun again before its end', async () => {
  const { signal } = new AbortController();
  let end: () => void = () => {};
  const [silent, other]: [number[], number[]] = [[], []];
  const rounds = [
    beside('silent', () => {
      silent.push(1);
      return new Promise<void>(resolve => {
        end = resolve;
      });
    }),
    beside('other', async () => void other.push(1)),
  ];
  for (let round = 0; round < 3; round++) {
    for (const begin of rounds) begin(signal);
    await new Promise(setImmediate);
  }
  expect([silent.length, other.length]).toEqual([1, 3]);
  end();
  await new Promise(setImmediate);
  for (const begin of rounds) begin(signal);
  expect([silent.length, other.length]).toEqual([2, 4]);
});

it('comes again after a failure', async () => {
  let rounds = 0;
  const failing = beside('failing', async () => {
    rounds++;
    throw new Error('not now');
  });
  failing(new AbortController().signal);
  await new Promise(setImmediate);
  failing(new AbortController().signal);
  expect(rounds).toBe(2);
});
