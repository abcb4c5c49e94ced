/** A worker that makes one call and stops itself on the way: its whole request comes as JSON in the first argument. */
import type { ObjectBackend } from '#backends/object-backend';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { leaseSignal } from '#platform/lease-signal';
import { armFailpoints } from '#test/failpoints/failpoints';

const { config, credentials, owner, method, args, leaseMs, failpoint } = JSON.parse(process.argv[2]!);
armFailpoints(failpoint);
const backend = rgwKind.open(rgwKind.parseConfig(config), credentials, owner);
const until = performance.now() + leaseMs;
const signal = leaseSignal(AbortSignal.timeout(60_000), () => {
  const leftMs = until - performance.now();
  if (leftMs <= 0) throw new Error('the lease is lost');
  return leftMs;
});
const call = backend[method as keyof ObjectBackend] as unknown as (...args: unknown[]) => Promise<unknown>;
try {
  await call.call(backend, ...args, signal);
  process.stdout.write('done');
} catch (error) {
  process.stdout.write(`refused: ${(error as Error).message}`);
}
backend.close();
