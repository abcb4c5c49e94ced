/** Works on the next `ahead` items while one is used; results keep the order of the items. */
export async function* readAhead<Item, Result>(
  items: AsyncIterable<Item>,
  ahead: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const running: Promise<Result>[] = [];
  try {
    for await (const item of items) {
      const result = work(item);
      // A later one may fail while an earlier one is used; whoever gets to it hears of it.
      result.catch(() => {});
      running.push(result);
      if (running.length > ahead) yield await running.shift()!;
    }
    while (running.length > 0) yield await running.shift()!;
  } finally {
    await Promise.allSettled(running);
  }
}
