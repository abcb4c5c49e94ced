import { z } from 'zod';

export const fakeConfig = z.strictObject({
  /** SQLite file shared by all processes, or `:memory:name` inside one process. */
  file: z.string().min(1),
  endpoint: z.string().default('http://fake.invalid'),
  region: z.string().default('default'),
  /** Each call takes at least this long. */
  latencyMs: z.number().nonnegative().default(0),
  /** Objects that one emptyBucket call removes. */
  emptyPortion: z.number().int().positive().default(1000),
  /** Off for benchmarks and soak runs, where the log would only grow. */
  callLog: z.boolean().default(true),
});
export type FakeConfig = z.output<typeof fakeConfig>;
