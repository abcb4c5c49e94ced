/**
 * Works on the next `ahead` items while one is used; results keep the order of the items. When the items end with an error,
 * what came before it is still handed on.
 */
export async function* readAhead<Item, Result>(
  items: AsyncIterable<Item>,
  ahead: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const running: Promise<Result>[] = [];
  const source = items[Symbol.asyncIterator]();
  let failure: { error: unknown } | undefined;
  let isDone = false;
  try {
    while (!isDone) {
      const next = await source.next().catch(error => {
        failure = { error };
        return { done: true, value: undefined } as const;
      });
      isDone = next.done === true;
      if (!next.done) {
        const result = work(next.value);
        // A later one may fail while an earlier one is used; whoever gets to it hears of it.
        result.catch(() => {});
        running.push(result);
        if (running.length > ahead) yield await running.shift()!;
      }
    }
    while (running.length > 0) yield await running.shift()!;
    if (failure) throw failure.error;
  } finally {
    if (!isDone) await source.return?.();
    await Promise.allSettled(running);
  }
}
