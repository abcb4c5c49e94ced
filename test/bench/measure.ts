/** One line of a report. `ok` undefined: a figure that is shown and owes nothing. */
export interface Figure {
  name: string;
  value: string;
  limit: string;
  baseline: string;
  ok?: boolean;
  /** Of the value between rounds; above 15 % it is said. */
  spread?: number;
}

export interface BenchOptions {
  /** Only proves that it works: short rounds, no verdict worth keeping. */
  quick: boolean;
  /** How long the load of the memory figures lasts. */
  minutes?: number;
  /** Of the largest appliance that is filled in. */
  volumes?: number;
  /** Of the object store, instead of the fake. */
  backend?: string;
}

/** Of what bare grpc-js moves, a stream of changed blocks moves at least this. */
export const SHARE_OF_BARE = 0.6;

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

export const spread = (values: readonly number[]): number =>
  values.length < 2 ? 0 : (Math.max(...values) - Math.min(...values)) / median(values);

/** Runs `work` with so many callers for so long; gives calls a second. `work` gets a number that never repeats. */
export async function rate(callers: number, ms: number, work: (n: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const begin = performance.now();
  const caller = async () => {
    while (performance.now() - begin < ms) await work(next++);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (next * 1_000) / (performance.now() - begin);
}

/** Alternates two measurements, so that whatever else the machine does meets both alike. */
export async function alternate(
  rounds: number,
  first: () => Promise<number>,
  second: () => Promise<number>,
): Promise<[number[], number[]]> {
  const a: number[] = [];
  const b: number[] = [];
  for (let round = 0; round < rounds; round++) {
    a.push(await first());
    b.push(await second());
  }
  return [a, b];
}

export const perSecond = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`;
