export interface Event {
  id: string;
  at: string;
  type: string;
  detail: Readonly<Record<string, unknown>>;
}

/** Events that differ in their numbers alone, as one: the last of them, with how many there were and when it began. */
export interface Run<E extends Event> {
  last: E;
  count: number;
  firstAt: string;
}

/** Numbers that each attempt has anew, and that say nothing beside each other. */
const COUNTERS = ['attempt', 'fence', 'dispatch', 'dispatchNo'];

export function runsOf<E extends Event>(events: readonly E[]): Run<E>[] {
  const runs: Run<E>[] = [];
  for (const event of events) {
    const before = runs.at(-1);
    if (before && sameOf(before.last) === sameOf(event)) {
      before.last = event;
      before.count++;
    } else runs.push({ last: event, count: 1, firstAt: event.at });
  }
  return runs;
}

const sameOf = ({ type, detail }: Event): string =>
  JSON.stringify([type, Object.entries(detail).filter(([name]) => !COUNTERS.includes(name))]);
