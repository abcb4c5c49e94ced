import { isRolledBack } from '#platform/database/database';

/** Enough that one stuck batch does not stop the others; few enough that batches form under load. */
const LANES = 2;
const MOST = 64;

interface Entry<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

interface Line<Item, Result> {
  waiting: Entry<Item, Result>[];
  underWay: number;
  scheduled: boolean;
}

/**
 * One transaction for what comes at the same moment: under load a statement, a commit and a notification serve many
 * operations instead of one. Nobody waits to be joined by others: what comes while all lanes are under way goes out with
 * the next one, and what comes alone goes out at once.
 *
 * A batch stands or falls as a whole. When the database has refused it, each of its items is sent alone, so that nobody
 * pays for another's lost lease or conflict.
 */
export class Batcher<Item, Result> {
  private readonly lines = new Map<string, Line<Item, Result>>();

  /**
   * @param send takes items of one key; answers in their order
   * @param refused does what a batch was refused for, in a line of its own; without it each item is sent alone in its batch's line
   */
  constructor(
    private readonly send: (key: string, items: readonly Item[]) => Promise<readonly Result[]>,
    private readonly refused?: (item: Item) => Promise<Result>,
  ) {}

  add(key: string, item: Item): Promise<Result> {
    let line = this.lines.get(key);
    if (!line) {
      line = { waiting: [], underWay: 0, scheduled: false };
      this.lines.set(key, line);
    }
    const { waiting } = line;
    const result = new Promise<Result>((resolve, reject) => waiting.push({ item, resolve, reject }));
    this.schedule(key, line);
    return result;
  }

  private schedule(key: string, line: Line<Item, Result>): void {
    if (line.scheduled || line.underWay >= LANES || line.waiting.length === 0) return;
    line.scheduled = true;
    // After this turn of the event loop: what arrived in one packet goes out in one batch.
    setImmediate(() => {
      line.scheduled = false;
      line.underWay++;
      void this.flush(key, line.waiting.splice(0, MOST)).finally(() => {
        line.underWay--;
        if (line.waiting.length > 0) this.schedule(key, line);
        else if (line.underWay === 0 && !line.scheduled) this.lines.delete(key);
      });
      this.schedule(key, line);
    });
  }

  private async flush(key: string, entries: readonly Entry<Item, Result>[]): Promise<void> {
    try {
      const results = await this.send(
        key,
        entries.map(entry => entry.item),
      );
      for (const [n, entry] of entries.entries()) entry.resolve(results[n]!);
    } catch (error) {
      const { refused } = this;
      if (refused && isRolledBack(error))
        for (const { item, resolve, reject } of entries) refused(item).then(resolve, reject);
      else if (entries.length > 1 && isRolledBack(error))
        await Promise.all(entries.map(entry => this.flush(key, [entry])));
      else for (const entry of entries) entry.reject(error);
    }
  }
}
