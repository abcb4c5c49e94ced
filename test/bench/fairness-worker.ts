/** A worker of operations that do nothing, as a process of its own: what it takes is the engine's share of any operation. */
import { OperationWorker } from '#operations/workers/worker';
import { Database } from '#platform/database/database';
import { CAP, NOTHING, PLACES } from '#test/bench/fairness-work';

const [, , appUrl, engineUrl, redis, redisPrefix] = process.argv as string[];
const database = await Database.connect({
  appUrl: appUrl!,
  engineUrl: engineUrl!,
  applicationName: 'trivet:bench',
  poolSize: 10,
});
const worker = new OperationWorker({
  database,
  handlers: [{ kind: NOTHING, steps: [], succeed: () => undefined, fail: () => {} }],
  probeBackend: async () => {},
  redis: redis!,
  redisPrefix: redisPrefix!,
  leaseMs: 15_000,
  reconcileMs: 2_000,
  concurrency: PLACES,
  tenantCap: CAP,
});
worker.start();
process.stdout.write('ready\n');
